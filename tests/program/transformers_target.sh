#!/usr/bin/env bash
# The bundled target as a Hugging Face folder, served by transformers (examples/process-target/transformers_target.py): its greedy
# text is that of the model run in the program, plain and with drafts, its hidden states are near; sampled rounds pass the audit. usage:
# tests/program/transformers_target.sh WAGER. WG_MODELS_PYTHON: a python with torch and transformers. Exits 77 without them.
set -u
wager=$(realpath "$1") python=${WG_MODELS_PYTHON:-python3}
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
"$python" -c 'import torch, transformers, numpy' 2>/dev/null || { echo "SKIPPED: needs torch and transformers (WG_MODELS_PYTHON=python)"; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/wager-transformers.XXXXXX")
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $1"; head -5 "$dir/said"; exit 1; }
"$wager" convert models/story-target-q8_0.gguf "$dir/hf" >/dev/null 2>"$dir/said" || fail "convert"
generate() { "$wager" generate -m "$dir/hf" -p "Once upon a time" -n 40 --json "$@" 2>"$dir/said" || fail "generate $*"; }
theirs=process:command="$python examples/process-target/transformers_target.py $dir/hf --threads 1"
ids() { sed -n 's/.*"ids":\[\([0-9,]*\)\].*/\1/p'; }
own=$(generate | ids)
for draft in none recycle:nodes=20 suffix:tree=true model:model=models/story-draft-q8_0.gguf,length=4; do
  generate --target "$theirs" --draft "$draft" >"$dir/out" || exit 1
  grep -q '"law_only":true' "$dir/out" || fail "not law only"
  [ -n "$own" ] && [ "$own" = "$(ids <"$dir/out")" ] || fail "$draft: the greedy text differs"
  echo "$draft: $(sed -n 's/.*"target_passes":\([0-9]*\).*/\1/p' "$dir/out") passes"
done
printf 'Once upon a time there was a dog who liked to run.' >"$dir/text"
states() { "$wager" taps -m "$dir/hf" --text "$dir/text" --taps 0,1,5,6,7 --type f32 "$@" >/dev/null 2>"$dir/said" || fail "taps $*"; }
states --out "$dir/own"
states --out "$dir/theirs" --target "$theirs"
"$python" - "$dir/own/hs_0.safetensors" "$dir/theirs/hs_0.safetensors" <<'END' >"$dir/said" || fail "hidden states differ"
import json, struct, sys
import numpy as np
def states(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    at = json.loads(data[8:8 + n])["hidden_states"]
    first, end = at["data_offsets"]
    return np.frombuffer(data[8 + n + first:8 + n + end], np.float32).reshape(at["shape"])
own, theirs = states(sys.argv[1]), states(sys.argv[2])
off = np.linalg.norm(own - theirs, axis=-1) / np.linalg.norm(own, axis=-1)
print("relative errors of taps", off.max(0))
sys.exit(not (own.shape == theirs.shape and off.max() < 2e-3))
END
cat "$dir/said"
generate --target "$theirs" --draft model:model=models/story-draft-q8_0.gguf,length=4 --rule rejection --temp 0.8 --audit >"$dir/out"
grep -q '"found":null' "$dir/out" || fail "the audit: $(cat "$dir/out")"
