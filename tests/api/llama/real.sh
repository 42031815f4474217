#!/bin/sh
# SPDX-License-Identifier: MIT
# examples/llama.cpp over the real libllama: the bundled pair's target, greedy, with chains, trees and the bundled draft model. The
# text is that of plain decoding, in fewer passes. Texts are short: libllama rounds a batch of many tokens otherwise than one of one
# (logits are up to 0.5 % apart), and in longer texts of this model the two best tokens come as near as that.
# usage: tests/api/llama/real.sh CC LIBWAGER.so, from the root. WG_LIBLLAMA: libllama.so; WG_LLAMA_SOURCE: the folder of its source
# (tests/conformance/llama_cpp.py library makes the library and prints both). Exits 77 (skipped) without them.
set -eu
[ -n "${WG_LIBLLAMA:-}" ] && [ -n "${WG_LLAMA_SOURCE:-}" ] || { echo "SKIPPED: needs WG_LIBLLAMA and WG_LLAMA_SOURCE"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
program=$dir/llama_target
"$1" -std=gnu11 -O2 -Wall -Werror examples/llama.cpp/llama_target.c -I"$WG_LLAMA_SOURCE/include" -I"$WG_LLAMA_SOURCE/ggml/include" \
  -Iinclude "$2" -Wl,-rpath,"$(dirname "$2")" -ldl -o "$program"
model=models/wager-story-11m-q8_0.gguf
base='"sampling": {"temperature": 0}, "max_tokens": 32'
run() { # PROMPT CONFIG: the text to $dir/text, passes to $passes
  "$program" "$WG_LIBLLAMA" "$model" "$1" "{$2}" >"$dir/text" 2>"$dir/said" || { echo "$2"; cat "$dir/said"; exit 1; }
  passes=$(sed -n 's/^[0-9]* tokens in \([0-9]*\) passes of libllama (law only)$/\1/p' "$dir/said")
  [ "$(wc -l <"$dir/said")" = 1 ] || { echo "libllama said:"; cat "$dir/said"; exit 1; }
}
for prompt in "Once upon a time" "The old man looked at the sea."; do
  run "$prompt" "$base"
  mv "$dir/text" "$dir/plain"
  plain=$passes
  for draft in '{"kind": "ngram", "k": 5}' '{"kind": "recycle", "nodes": 40, "depth": 6}' '{"kind": "suffix", "tree": true}' \
    '{"kind": "model", "model": "models/wager-story-1m-q8_0.gguf", "length": 4}'; do
    run "$prompt" "$base, \"draft\": $draft"
    cmp "$dir/plain" "$dir/text" || { echo "$draft changed the text"; exit 1; }
    [ "$passes" -lt "$plain" ] || { echo "$draft: $passes passes, plain decoding $plain"; exit 1; }
    echo "$draft: $passes passes instead of $plain"
  done
done
