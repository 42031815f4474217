#!/usr/bin/env bash
# Writes docs/newcomer.md: every command that README.md shows after ./quickstart.sh, in its order, with what it prints on this
# machine. WG_CPU=avx2 before it gives the log of a machine without AVX-512. Needs the program of ./quickstart.sh and gnuplot; run
# it on a machine that does nothing else. usage: [WG_CPU=LEVEL] docs/newcomer.sh
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
lines=28 # of a command's output that the page shows
W=build/release/wager T=models/story-target-q8_0.gguf D=models/story-draft-q8_0.gguf
[ -x $W ] || { echo "newcomer: no program at $W; ./quickstart.sh builds it" >&2; exit 2; }
page=$(mktemp) said=$(mktemp)
trap 'rm -f "$page" "$said"' EXIT
rm -rf build/mine.json build/a build/b

show() { # COMMAND...: its text, output, status and seconds, as a part of the page
  local status=0 begin=$EPOCHREALTIME total
  # shellcheck disable=SC2094
  (eval "$1") >"$said" 2>&1 </dev/null || status=$?
  total=$(wc -l <"$said")
  printf '```\n$ %s\n' "$1"
  head -n $lines "$said" | cut -c 1-160 | sed "s/-$(hostname)-/-HOST-/g"
  [ "$total" -le $lines ] || printf '[%d lines more]\n' $((total - lines))
  printf '```\n\nStatus %d, %.1f s.\n\n' $status "$(echo "$EPOCHREALTIME $begin" | awk '{ print $1 - $2 }')"
  [ $status = 0 ] || { echo "newcomer: status $status: $1" >&2; return 1; }
}

{
  cat <<'TEXT'
# The first commands, with what they print

For people who want to know what to expect before they install anything. `docs/newcomer.sh` runs the commands of [README.md](../README.md) in their order
and writes this page; nothing in it is typed. Speeds are those of the machine named in the first table, at the instruction set that `WG_CPU` allows.

TEXT
  show "${WG_CPU:+WG_CPU=$WG_CPU }./quickstart.sh"
  # The block of README.md that begins with the line of W, T and D; notes behind # are left out.
  awk '/^W=build\/release/ { on = 1 } on && /^```/ { exit } on' README.md | sed 's/  *# .*//' | while IFS= read -r line; do
    case $line in
    "W="*) ;;
    *) show "$(eval "printf '%s' \"$(printf '%s' "$line" | sed 's/"/\\"/g')\"")" ;;
    esac
  done
} >"$page"
cp "$page" docs/newcomer.md
