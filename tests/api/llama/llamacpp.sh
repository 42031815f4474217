#!/bin/sh
# SPDX-License-Identifier: MIT
# Targets of kind llamacpp over the stub: chains, trees and batches give the text of plain decoding in fewer passes, in the program
# and in examples/llama.cpp; what is refused.
# usage: tests/api/llama/llamacpp.sh WAGER LLAMA_TARGET STUB.so STUB_WITHOUT.so STUB_OTHER.so, from the root
set -eu
wager=$1 example=$2 stub=$(realpath "$3") old=$4 other=$5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$wager" synth --like tiny --type f32 --seed 1 --out "$dir/model.gguf" >/dev/null # for its tokenizer
cp "$dir/model.gguf" "$dir/recurrent.gguf"
cp "$dir/model.gguf" "$dir/missing.gguf"
generate() { "$wager" generate -m "$dir/model.gguf" --target "llamacpp:library=$stub" -p "the cat and the dog" -n 120 --temp 0.7 --json "$@"; }
example() { # LIBRARY MODEL KEYS: the text to $dir/text, passes to $passes
  "$example" "$1" "$2" "the cat and the dog" "$3" >"$dir/text" 2>"$dir/said" || return 1
  passes=$(sed -n 's/^[0-9]* tokens in \([0-9]*\) passes of libllama (law only)$/\1/p' "$dir/said")
  [ "$(wc -l <"$dir/said")" = 1 ]
}
number() { sed -n "s/.*\"$1\":\"*\([0-9a-f]*\).*/\1/p" "$dir/out"; }
generate >"$dir/out"
plain=$(number output_sha256)
grep -q '"law_only":true' "$dir/out" || { echo "not law only"; exit 1; }
[ "$(number target_passes)" = 120 ] || { cat "$dir/out"; exit 1; }
for draft in "ngram:k=5" "recycle:nodes=20,depth=5" "suffix:tree=true"; do
  generate --draft "$draft" >"$dir/out" || exit 1
  [ "$(number output_sha256)" = "$plain" ] || { echo "$draft changed the text"; exit 1; }
  [ "$(number target_passes)" -lt 100 ] || { echo "$draft: $(number target_passes) passes"; exit 1; }
  echo "$draft: $(number target_passes) passes"
done

# The example.
sampled='"sampling": {"temperature": 0.7}, "max_tokens": 120'
"$wager" generate -m "$dir/model.gguf" --target "llamacpp:library=$stub" -p "the cat and the dog" -n 120 --temp 0.7 >"$dir/plain" 2>/dev/null
example "$stub" "$dir/model.gguf" "$sampled" || { cat "$dir/said"; exit 1; }
[ -s "$dir/text" ] && grep -qF "$(cat "$dir/text")" "$dir/plain" || { echo "the example's text"; exit 1; }
[ "$passes" = 120 ] || { echo "the example: $passes passes"; exit 1; }
mv "$dir/text" "$dir/plain"
example "$stub" "$dir/model.gguf" "$sampled"', "verify": {"rule": "match"}, "draft": {"kind": "suffix", "tree": true}' || { cat "$dir/said"; exit 1; }
cmp "$dir/plain" "$dir/text" || { echo "a draft changed the example's text"; exit 1; }
[ "$passes" -lt 100 ] || { echo "the example: $passes passes"; exit 1; }
example "$old" "$dir/model.gguf" "$sampled" && { echo "the example accepted an old library"; exit 1; }
grep -q 'llama_target: .*has no llama_memory_seq_cp; it is another library, or of another version' "$dir/said" || { cat "$dir/said"; exit 1; }

# Batches: trees of several sequences in one request. Every text is that of its sequence alone.
for i in 1 2 3 4 5 6 7; do echo "{\"prompt\": \"the cat $i and the dog\"}"; done >"$dir/prompts.jsonl"
for batch in 1 3; do
  cat >"$dir/c.json" <<END
{"name": "llama", "target": {"kind": "llamacpp", "library": "$stub", "model": "model.gguf"}, "draft": {"kind": "suffix", "tree": true, "k": 12},
 "verify": {"rule": "match"}, "sampling": {"temperature": 0.7}, "prompts": {"file": "prompts.jsonl"}, "max_tokens": 60, "batch": $batch}
END
  "$wager" run "$dir/c.json" --out "$dir/run-$batch" >/dev/null 2>"$dir/said" || { cat "$dir/said"; exit 1; }
  grep -o '"output_sha256":"[0-9a-f]*"' "$dir/run-$batch/requests.jsonl" | sort >"$dir/texts-$batch"
  grep -q '"failed": *0' "$dir/run-$batch/summary.json" || { echo "batch $batch: requests failed"; exit 1; }
done
cmp "$dir/texts-1" "$dir/texts-3" || { echo "batches change texts"; exit 1; }

refuses() { # what it says, model, library
  "$wager" generate -m "$dir/$2.gguf" --target "llamacpp:library=$3" -p x >"$dir/out" 2>"$dir/said" && { echo "accepted: $2 $3"; exit 1; }
  grep -q "$1" "$dir/said" || { echo "$2 $3: said"; cat "$dir/said"; exit 1; }
}
refuses 'target llamacpp: libllama cannot load .*missing.gguf' missing "$stub"
refuses 'recurrent.gguf has a recurrent state, which rejected drafts cannot be taken out of' recurrent "$stub"
refuses 'has no llama_memory_seq_cp; it is another library, or of another version' model "$old"
refuses 'has other parameters than are known here; use another version of llama.cpp' model "$other"
refuses 'nothere.so: cannot open shared object file' model "$dir/nothere.so"

# The real library (WG_LIBLLAMA: its libllama.so; tests/conformance/llama_cpp.py library makes it; a development test): greedy texts
# with chains and trees are those without drafts. They are short: libllama rounds a batch of many tokens otherwise than one of one
# (logits are up to 0.5 % apart), and in longer texts of this model the two best tokens come as near as that.
[ -n "${WG_LIBLLAMA:-}" ] || { echo "SKIPPED in part: the real libllama (WG_LIBLLAMA=libllama.so)"; exit 0; }
real() {
  "$wager" generate -m models/story-target-q8_0.gguf --target "llamacpp:library=$WG_LIBLLAMA" --threads 2 -p "Once upon a time" -n 32 --json "$@" \
    >"$dir/out" 2>"$dir/said" || { cat "$dir/said"; exit 1; }
  [ ! -s "$dir/said" ] || { echo "libllama said:"; cat "$dir/said"; exit 1; }
}
example "$WG_LIBLLAMA" models/story-target-q8_0.gguf '"draft": {"kind": "suffix", "tree": true}, "max_tokens": 40' || { cat "$dir/said"; exit 1; }
[ "$passes" -lt 40 ] || { echo "the example: $passes passes"; exit 1; }
real
plain=$(number output_sha256)
for draft in ngram:k=5 recycle:nodes=40,depth=6 suffix:tree=true model:model=models/story-draft-q8_0.gguf,length=4; do
  real --draft "$draft"
  [ "$(number output_sha256)" = "$plain" ] || { echo "$draft changed the text"; exit 1; }
  [ "$(number target_passes)" -lt 32 ] || { echo "$draft: $(number target_passes) passes"; exit 1; }
  echo "$draft: $(number target_passes) passes instead of 32"
done
