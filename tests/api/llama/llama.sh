#!/bin/sh
# SPDX-License-Identifier: MIT
# examples/llama.cpp over the stub: chains and trees give the text of plain decoding in fewer passes; what it refuses.
# usage: tests/api/llama/llama.sh LLAMA_TARGET STUB.so STUB_WITHOUT.so, from the root
set -eu
program=$1 stub=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
base='"sampling": {"temperature": 0.7}, "verify": {"rule": "match"}, "max_tokens": 120'
passes() { sed -n 's/^120 tokens in \([0-9]*\) passes of libllama (law only)$/\1/p' "$dir/said"; }
"$program" "$stub" model "the cat and the dog" "{$base}" > "$dir/plain" 2> "$dir/said" || { cat "$dir/said"; exit 1; }
[ "$(passes)" = 120 ] || { cat "$dir/said"; exit 1; }
for draft in '{"kind": "ngram", "k": 5}' '{"kind": "recycle", "nodes": 20, "depth": 5}' '{"kind": "suffix", "tree": true}'; do
  "$program" "$stub" model "the cat and the dog" "{$base, \"draft\": $draft}" > "$dir/text" 2> "$dir/said" || { echo "$draft"; cat "$dir/said"; exit 1; }
  cmp "$dir/plain" "$dir/text" || { echo "$draft changed the text"; exit 1; }
  [ "$(passes)" -lt 100 ] || { echo "$draft: $(passes) passes"; exit 1; }
  echo "$draft: $(passes) passes"
done
refuses() { # what it says, arguments
  say=$1; shift
  "$program" "$@" > "$dir/text" 2> "$dir/said" && { echo "accepted: $*"; exit 1; }
  grep -q "$say" "$dir/said" || { echo "$*: said"; cat "$dir/said"; exit 1; }
}
refuses 'cannot load missing' "$stub" missing x
refuses 'has a recurrent state' "$stub" recurrent x
refuses 'has no llama_memory_seq_cp; it is older or younger than the header' "$3" model x
refuses 'nothere.so' "$dir/nothere.so" model x
refuses 'unknown key "daft"' "$stub" model x '{"daft": {}}'
