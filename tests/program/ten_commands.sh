#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The commands of docs/models.md from two folders to a report, word for word, on folders of the same form: ten_commands.sh WAGER. Exits
# 77 (skipped) without python3, which writes the folders.
set -u
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
command -v python3 >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/wager-ten.XXXXXX")
trap 'rm -rf "$dir"' EXIT
python3 tests/program/miniature_pair.py "$dir" || exit 1
# The block behind the heading; its first two lines name the program and the folders.
sed -n '/^## From a folder to a report/,$p' docs/models.md | sed -n '/^```$/,/^```$/p' | sed '/^```$/d; /^W=/d; /^M=/d' |
  sed "s|build/|$dir/|g" | sed -e ':a' -e '/\\$/N; s/\\\n */ /; ta' >"$dir/commands"
ln -s "$program" "$dir/wager" # the commands write $W without quotes, and a folder may have a space
W=$dir/wager M=$dir/Qwen3-8B D=$dir/Qwen3-0.6B n=0
export NO_COLOR=1
while IFS= read -r line; do
  n=$((n + 1))
  if ! eval "$line" >"$dir/out" 2>"$dir/err" </dev/null || [ ! -s "$dir/out" ]; then
    echo "FAILED: $line"
    head -n 5 "$dir/out" "$dir/err"
    exit 1
  fi
done <"$dir/commands"
[ "$n" = 10 ] || { echo "FAILED: $n commands, expected 10"; exit 1; }
grep -q '</html>' "$dir/run/report.html" || { echo "FAILED: no report"; exit 1; }
# What is smaller while it is loaded has the bits of what is smaller on the disk.
"$W" quantize "$M" "$dir/q8.gguf" --type q8_0 >/dev/null 2>&1 || exit 1
hash_of() { "$W" logits "$@" --tokens 1,2,3,4 2>/dev/null | grep -o 'hash [0-9a-f]*'; }
hash_of "$M" --quantize q8_0 >"$dir/hash-1"
hash_of "$dir/q8.gguf" >"$dir/hash-2"
[ -s "$dir/hash-1" ] && cmp "$dir/hash-1" "$dir/hash-2" || { echo "FAILED: other logits when quantised at load"; exit 1; }
echo "$n commands"
