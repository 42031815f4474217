#!/bin/sh
# Every tracked .c, .h, .cu and .cpp file is as clang-format 14 writes it by .clang-format. Generated files are left out.
# usage: tests/format.sh [--fix], from the root; --fix rewrites the files. Exit 77, a skip: there is no clang-format 14, or no git.
format=clang-format-14
command -v $format >/dev/null || format=clang-format
$format --version 2>/dev/null | grep -q 'version 14\.' || { echo "SKIPPED: needs clang-format 14"; exit 77; }
files=$(git ls-files '*.c' '*.h' '*.cu' '*.cpp' 2>/dev/null | grep -Ev '^core/text/(unicode|normal)_table\.c$')
[ -n "$files" ] || { echo "SKIPPED: needs the git repository, for the list of files"; exit 77; }
if [ "${1:-}" = --fix ]; then exec $format -i $files; fi
all=$(echo "$files" | wc -l)
bad=$($format --dry-run $files 2>&1 | sed -n 's/: warning: .*clang-format-violations.*//p' | cut -d: -f1 | sort -u)
[ -z "$bad" ] || echo "$bad" | sed 's/$/: not as clang-format writes it/'
echo "$all files, $(printf '%s' "$bad" | grep -c .) to be formatted (tests/format.sh --fix)"
[ "$all" -gt 400 ] && [ -z "$bad" ]
