#!/bin/sh
# Every tracked .c, .h, .cu and .cpp file is as clang-format 14 writes it by .clang-format. Generated files are left out.
# usage: tests/format.sh [--fix], from the root; --fix rewrites the files. Exit 77, a skip: there is no clang-format 14, or no git.
format=clang-format-14
command -v $format >/dev/null || format=clang-format
$format --version 2>/dev/null | grep -q 'version 14\.' || { echo "SKIPPED: needs clang-format 14"; exit 77; }
files=$(git ls-files '*.c' '*.h' '*.cu' '*.cpp' 2>/dev/null | grep -v '^core/text/unicode_table\.c$')
[ -n "$files" ] || { echo "SKIPPED: needs the git repository, for the list of files"; exit 77; }
if [ "${1:-}" = --fix ]; then exec $format -i $files; fi
bad=0 all=0
for file in $files; do
  all=$((all + 1))
  $format "$file" | cmp -s - "$file" || { echo "$file: not as clang-format writes it"; bad=$((bad + 1)); }
done
echo "$all files, $bad to be formatted (tests/format.sh --fix)"
[ $all -gt 400 ] && [ $bad = 0 ]
