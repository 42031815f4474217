#!/bin/sh
# Every tracked .c, .h, .cu and .cpp file is as clang-format 14 writes it by .clang-format, and has no line, comments included, of
# more than 128 columns. Generated files are left out.
# usage: tests/format.sh [--fix], from the root; --fix rewrites the files. Exit 77, a skip: there is no clang-format 14, or no git.
format=clang-format-14
command -v $format >/dev/null || format=clang-format
$format --version 2>/dev/null | grep -q 'version 14\.' || { echo "SKIPPED: needs clang-format 14"; exit 77; }
files=$(git ls-files '*.c' '*.h' '*.cu' '*.cpp' 2>/dev/null | grep -Ev '^core/text/(unicode|normal|grapheme)_table\.c$')
[ -n "$files" ] || { echo "SKIPPED: needs the git repository, for the list of files"; exit 77; }
if [ "${1:-}" = --fix ]; then exec $format -i $files; fi
all=$(echo "$files" | wc -l)
bad=$($format --dry-run $files 2>&1 | sed -n 's/: warning: .*clang-format-violations.*//p' | cut -d: -f1 | sort -u)
[ -z "$bad" ] || echo "$bad" | sed 's/$/: not as clang-format writes it/'
long=$(LC_ALL=C.UTF-8 grep -nE '^.{129,}' $files /dev/null | cut -d: -f1,2)
[ -z "$long" ] || echo "$long" | sed 's/$/: more than 128 columns/'
echo "$all files, $(printf '%s' "$bad" | grep -c .) to be formatted (tests/format.sh --fix)"
[ "$all" -gt 400 ] && [ -z "$bad$long" ]
