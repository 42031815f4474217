#!/usr/bin/env bash
# Writes the tables of docs/verification.md and results/laws.md: between "<!-- wager ARGS -->" and "<!-- end -->" goes the output of
# the program with ARGS: of `list` as it is, of other commands the columns that do not depend on rounding; between
# "<!-- law_NAME ARGS -->" and the end the output of that test, which stands in tests/ beside the program. --check changes nothing
# and fails when a table is not what the program says. usage: docs/verification.sh PROGRAM [--check]
set -u
program=$(realpath "$1")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
made=$(mktemp)
trap 'rm -f "$made" "$made.out"' EXIT

# The page FILE with new tables, in $made.
write_tables() {
  local file=$1 skip=0 line args
  while IFS= read -r line; do
    case $line in
    "<!-- wager "*)
      skip=1
      printf '%s\n' "$line"
      read -ra args <<<"${line//[<>]/}"
      "$program" "${args[@]:2:${#args[@]}-3}" >"$made.out" || exit 1
      if [ "${args[2]}" = list ]; then
        cat "$made.out"
        continue
      fi
      printf '```\n'
      awk '{ law = $12; for (i = 13; i <= NF; i++) law = law " " $i
             printf "%-19s %-19s %7s %7s %7s  %s\n", $1, $2, $9, $10, $11, NR == 1 ? "law" : law }' "$made.out"
      printf '```\n'
      ;;
    "<!-- law_"*)
      skip=1
      printf '%s\n```\n' "$line"
      read -ra args <<<"$line"
      "$(dirname "$program")/tests/${args[1]}" "${args[@]:2:${#args[@]}-3}" 2>"$made.out" || exit 1
      printf '```\n'
      ;;
    "<!-- end -->") skip=0 ;;
    esac
    [ $skip = 1 ] || printf '%s\n' "$line"
  done <"$file" >"$made"
}

status=0
for page in docs/verification.md results/laws.md; do
  write_tables "$root/$page"
  if [ "${2:-}" != --check ]; then
    cat "$made" >"$root/$page"
  elif ! diff -u "$root/$page" "$made"; then
    echo "$page is not up to date; run docs/verification.sh PROGRAM" >&2
    status=1
  fi
done
exit $status
