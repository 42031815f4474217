#!/usr/bin/env bash
# The whole program with cuda:0 emulated: what is drafted where shows in no text (each way at one temperature), exact logits are
# the CPU's bytes, strict ones are near, and every way in which a device can be refused is said.
# usage: tests/simt/device.sh WAGER_GPU WAGER
set -u
gpu=$1 plain=$2 model=models/story-draft-q8_0.gguf
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }

text() { "$gpu" generate -m "$model" -p 'Once upon a time' -n 12 --seed 5 "$@" 2>>"$tmp/log" | sed 's/^\[.*output/output/; /^\[no draft: /d'; }
same_text() { # TEMPERATURE, the way whose text is wanted, the ways that must give it
  local temp=$1 way
  # shellcheck disable=SC2086
  text --temp "$temp" $2 >"$tmp/want"
  [ -s "$tmp/want" ] || fail "no text at temperature $temp with: $2"
  shift 2
  for way in "$@"; do
    # shellcheck disable=SC2086
    text --temp "$temp" $way >"$tmp/got"
    cmp -s "$tmp/want" "$tmp/got" || fail "temperature $temp, $way: another text: $(head -c 200 "$tmp/got")"
  done
}
same_text 0 "--device cpu" "--device cuda:0/exact -d $model" "--draft model:model=$model,device=cuda:0/exact"
same_text 0 "--device cuda:0" "--device cuda:0 --draft ngram"
same_text 0.8 "--device cuda:0" "--device cuda:0/eager/serial --draft ngram" "--device auto --draft layer_skip:mlp=1" \
  "--device cuda:0 --draft model:model=$model,length=3,device=cuda:0"

for type in q8_0 f16 bf16; do # a last bit of attention is a whole step of a quantised input now and then
  file=$model near=1e-4
  [ $type = q8_0 ] && near=1e-2
  [ $type = q8_0 ] || { file=$tmp/$type.gguf
    "$plain" convert "$model" --type $type --out "$file" >/dev/null || fail "convert $type"; }
  tokens=5,17,300,12,80,9,44,1000
  "$plain" logits "$file" --tokens $tokens --out "$tmp/cpu" >/dev/null || fail "logits on the CPU, $type"
  "$gpu" logits "$file" --tokens $tokens --device cuda:0/exact --out "$tmp/exact" >/dev/null || fail "logits, exact, $type"
  "$gpu" logits "$file" --tokens $tokens --device cuda:0 --out "$tmp/strict" >/dev/null || fail "logits, strict, $type"
  cmp "$tmp/cpu" "$tmp/exact" || fail "$type: exact logits are not the CPU's"
  python3 - "$tmp/cpu" "$tmp/strict" $near <<'PY' || fail "$type: strict logits are far from the CPU's"
import array, sys
a, b = (array.array('f', open(p, 'rb').read()) for p in sys.argv[1:3])
off = max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, a))
sys.exit(not (len(a) == len(b) and off < float(sys.argv[3])))
PY
done

# The fast mode says what it is, wherever a text or a claim comes out of it.
"$gpu" generate -m "$tmp/bf16.gguf" -p 'Once upon' -n 4 --device cuda:0/fast >"$tmp/out" 2>"$tmp/said" || fail "generate, fast"
grep -q "wager generate: cuda:0/fast does not keep the Prefix Law: texts may differ from plain decoding's" "$tmp/said" &&
  grep -q 'match (LOSSY)' "$tmp/out" || fail "generate does not say what the fast mode is"
"$gpu" generate -m "$tmp/bf16.gguf" -p 'Once upon' -n 4 --device cuda:0/fast --json 2>/dev/null | grep -q '"lossless":false' ||
  fail "generate --json calls the fast mode lossless"
echo '{"prompt": "Once upon a time"}' >"$tmp/prompts.jsonl"
cat >"$tmp/config.json" <<CONFIG
{ "name": "fast", "target": {"model": "$tmp/bf16.gguf", "device": "cuda:0/fast"}, "draft": {"kind": "ngram"},
  "verify": {"rule": "match"}, "prompts": {"file": "$tmp/prompts.jsonl"}, "max_tokens": 4 }
CONFIG
"$gpu" check "$tmp/config.json" | grep -q '^warning   cuda:0/fast does not keep the Prefix Law' || fail "check does not warn of the fast mode"
"$gpu" run "$tmp/config.json" --out "$tmp/run" >"$tmp/out" 2>"$tmp/said" || fail "run, fast: $(cat "$tmp/said")"
grep -q "warning: cuda:0/fast does not keep the Prefix Law: texts may differ from plain decoding's" "$tmp/said" &&
  grep -q '(lossy)' "$tmp/out" || fail "run does not say what the fast mode is: $(cat "$tmp/out")"
grep -q '"lossless": *false' "$tmp/run/summary.json" || fail "run calls the fast mode lossless"

# What was recorded, and what fell back to launches and to the host's steps, is in the JSON of both benches.
bench() { # what the JSON must hold, then arguments of wager bench
  local want=$1
  shift
  "$gpu" bench "$@" -m "$model" --repeats 2 --json >"$tmp/out" 2>"$tmp/said" || fail "bench $*: $(cat "$tmp/said")"
  python3 - "$tmp/out" "$want" <<'PY' || fail "bench $*: not $want: $(cat "$tmp/out")"
import json, sys
r = [json.loads(line) for line in open(sys.argv[1])]
sys.exit(not eval(sys.argv[2], {"r": r}))
PY
}
loops="--draft model:model=$model,device=cuda:0,length=3"
bench '[x["recorded"] for x in r] == [True, True, False]' forward --rows 1,8,65 --device cuda:0
bench 'r[0]["recorded"] is False' forward --rows 2 --device cuda:0/eager
bench 'r[0]["recorded"] is None' forward --rows 2 --device cpu
# shellcheck disable=SC2086
bench '[(x["recorded"], x["looped"]) for x in r] == [(True, True)] * 2' round --device cuda:0 $loops --rule match --temp 0 -n 12
# shellcheck disable=SC2086
bench '[(x["recorded"], x["looped"]) for x in r] == [(True, False)] * 2' round --steps --device cuda:0 $loops --rule match --temp 0 -n 12
bench '[(x["recorded"], x["looped"]) for x in r] == [(None, None)]' round --device cpu --rule match --temp 0 -n 4
export WG_SIMT_FAIL=cudaGraphAddNode # no WHILE node: the host makes the rounds
bench 'r[0]["recorded"] and not r[0]["looped"]' round --device cuda:0 --rule match --temp 0 -n 12
grep -q 'rounds could not be recorded as a loop, the host makes them: operation not supported' "$tmp/said" ||
  fail "it is not said why there is no loop: $(cat "$tmp/said")"
export WG_SIMT_FAIL=cudaGraphInstantiate
bench 'not r[0]["recorded"] and not r[0]["looped"]' round --device cuda:0 --rule match --temp 0 -n 12
bench 'r[0]["recorded"] is False' forward --rows 2 --device cuda:0
unset WG_SIMT_FAIL

refused() { # what the message must hold, then the command
  local part=$1
  shift
  "$@" >"$tmp/out" 2>&1 && fail "not refused: $*"
  grep -q -- "$part" "$tmp/out" || fail "\"$part\" is not in: $(head -c 300 "$tmp/out")"
}
if "$plain" generate -m "$model" -p x -n 1 --device cuda:0 2>&1 | grep -q 'without CUDA'; then
  refused 'device cuda:0/fast: this build is without CUDA' "$plain" generate -m "$model" -p x -n 1 --device cuda:0/fast
  "$plain" generate -m "$model" -p x -n 1 --device auto >/dev/null 2>&1 || fail "auto does not fall back"
fi
refused 'expected cuda:0, or nothing for the rules of the host' "$gpu" prove --device cuda:1
"$gpu" prove --device cuda:0 --rule block --tree 1-1 --vocab 3 --cases 7 | grep -q '  exact$' || fail "a device's rule is not proved"
if "$plain" generate -m "$model" -p x -n 1 --device cuda:0 2>&1 | grep -q 'without CUDA'; then
  refused 'draw by themselves, and their decisions cannot be enumerated' "$plain" prove --device cuda:0 --rule block --tree 1 --cases 1
fi
refused 'there is no device 3' "$gpu" generate -m "$model" -p x -n 1 --device cuda:3
refused 'device "gpu" is unknown; expected cpu' "$gpu" generate -m "$model" -p x -n 1 --device gpu
refused 'device "cuda:0/eager/exact" is unknown' "$gpu" generate -m "$model" -p x -n 1 --device cuda:0/eager/exact
refused 'device "cuda:0/serial/eager" is unknown' "$gpu" generate -m "$model" -p x -n 1 --device cuda:0/serial/eager
refused 'device "cuda:0/exact/fast" is unknown' "$gpu" generate -m "$model" -p x -n 1 --device cuda:0/exact/fast
refused 'cuda:0 keeps no cache of type q8; expected f32' "$gpu" generate -m "$model" -p x -n 1 --device cuda:0 --kv-type q8
refused '--kv-type q4: expected one of: f32, f16, bf16, q8' "$gpu" generate -m "$model" -p x -n 1 --kv-type q4
export WG_SIMT_MEMORY=600000
refused 'out of memory on cuda:0.*a weight matrix' "$gpu" generate -m "$model" -p x -n 1 --device cuda:0
export WG_SIMT_MEMORY=4500000
refused 'out of memory.*lower max_rows' "$gpu" generate -m "$model" -p x -n 1 --device cuda:0
exit $failed
