#!/bin/sh
# SPDX-License-Identifier: MIT
# Targets of kind llamacpp over the stub: chains, trees and batches give the text of plain decoding in fewer passes; what is refused.
# usage: tests/api/llama/llamacpp.sh WAGER STUB.so STUB_WITHOUT.so STUB_OTHER.so, from the root
set -eu
wager=$1 stub=$(realpath "$2") old=$3 other=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$wager" synth --like tiny --type f32 --seed 1 --out "$dir/model.gguf" >/dev/null # for its tokenizer
cp "$dir/model.gguf" "$dir/recurrent.gguf"
cp "$dir/model.gguf" "$dir/missing.gguf"
generate() { "$wager" generate -m "$dir/model.gguf" --target "llamacpp:library=$stub" -p "the cat and the dog" -n 120 --temp 0.7 --json "$@"; }
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
