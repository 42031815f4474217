#!/usr/bin/env bash
# Writes the tables of docs/verification.md: between "<!-- wager ARGS -->" and "<!-- end -->" goes the output of the program
# with ARGS: of `list` as it is, of other commands the columns that do not depend on rounding; between "<!-- law_NAME ARGS -->" and
# the end the output of that test, which stands in tests/ beside the program. --check changes nothing and fails when a table is not
# what the program says. usage: docs/verification.sh PROGRAM [--check]
set -u
program=$(realpath "$1")
file=$(dirname "${BASH_SOURCE[0]}")/verification.md
made=$(mktemp)
trap 'rm -f "$made" "$made.out"' EXIT
skip=0
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
if [ "${2:-}" != --check ]; then
  cat "$made" >"$file"
  exit
fi
status=0
diff -u "$file" "$made" || { echo "docs/verification.md is not up to date; run docs/verification.sh PROGRAM" >&2; status=1; }
exit $status
