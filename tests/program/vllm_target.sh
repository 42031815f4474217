#!/usr/bin/env bash
# examples/vllm-target over a fake of vLLM's objects, which computes with wager's bits: greedy and sampled texts are those of the model
# run in the program, with plain decoding and trees of drafts, and marked law only. usage: tests/program/vllm_target.sh WAGER
set -u
wager=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
python3 -c 'import numpy' 2>/dev/null || { echo "SKIPPED: needs numpy"; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/wager-vllm.XXXXXX")
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $1"; head -5 "$dir/said"; exit 1; }
story=models/story-target-q8_0.gguf
export PYTHONPATH=tests/program/fake_vllm PYTHONDONTWRITEBYTECODE=1 FAKE_CARDS=4
generate() { "$wager" generate -m $story -p "Once upon a time there" -n 8 --json "$@" 2>"$dir/said" || fail "generate $*"; }
theirs="process:command=python3 examples/vllm-target/vllm_target.py $story --tensor 2 --pipeline 2 --executor ray"
ids() { sed -n 's/.*"ids":\[\([0-9,]*\)\].*/\1/p'; }
same() { # TEMPERATURE DRAFT
  own=$(generate -t "$1" --seed 3 | ids)
  generate -t "$1" --seed 3 --target "$theirs" --draft "$2" >"$dir/out"
  grep -q '"law_only":true' "$dir/out" || fail "not law only"
  [ -n "$own" ] && [ "$own" = "$(ids <"$dir/out")" ] || fail "$2 at temperature $1: another text"
}
same 0 none
same 1 model:model=models/story-draft-q8_0.gguf,length=3,width=2
if "$wager" generate -m $story -p x -n 4 --target "process:command=python3 examples/vllm-target/vllm_target.py $story" 2>"$dir/said"; then fail "one of four cards"; fi
grep -q "World size" "$dir/said" || fail "the engine's own message"
echo ok
