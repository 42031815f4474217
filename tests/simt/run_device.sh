#!/usr/bin/env bash
# wager run with cuda:0 emulated: timed arms take the device's own path (the records say how many passes it verified and decoded),
# and alpha, traces and texts are those of a run on the CPU, from the untimed second pass.
# usage: tests/simt/run_device.sh WAGER_GPU
set -u
gpu=$1 model=$PWD/models/story-draft-q8_0.gguf
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
printf '%s\n' '{"prompt": "Once upon a time"}' '{"prompt": "A dog and a dog and a"}' >"$tmp/prompts.jsonl"

run() { # NAME DEVICE, then more --set
  local name=$1 device=$2
  shift 2
  cat >"$tmp/$name.json" <<CONFIG
{ "name": "device", "seed": 5, "target": {"model": "$model", "device": "$device", "threads": 1},
  "verify": {"rule": "rejection"}, "sampling": {"temperature": 0.8},
  "prompts": {"file": "$tmp/prompts.jsonl"}, "max_tokens": 7, "batch": 2,
  "sweep": {"draft": [{"kind": "model", "model": "$model", "length": 2, "temperature": 0.6, "device": "$device"},
                      {"kind": "ngram", "k": 3},
                      {"kind": "recycle", "nodes": 4}]} }
CONFIG
  "$gpu" run "$tmp/$name.json" --out "$tmp/$name" "$@" >"$tmp/out" 2>&1 ||
    { echo "FAILED: run $name: $(cat "$tmp/out")" >&2; exit 1; }
}
run cpu cpu
run exact cuda:0/exact --set trace=probs
run off cuda:0/exact --set alpha=false

python3 - "$tmp" <<'PY' || exit 1
import json, sys
tmp, failed = sys.argv[1], 0
def fail(text):
    global failed
    failed = 1
    print("FAILED:", text, file=sys.stderr)
def cells(name): return json.load(open(f"{tmp}/{name}/summary.json"))["cells"]
def baseline(name):
    return [l["speculative_decoding"] for l in map(json.loads, open(f"{tmp}/{name}/requests.jsonl")) if l["arm"] == "baseline"]

both = ["requests", "failed", "tokens", "target_passes", "drafted", "accepted", "tau", "output_sha256", "acceptance_by_position"]
measured = ["alpha", "alpha_star"]
for name in "exact", "off":
    for i, (want, got) in enumerate(zip(cells("cpu"), cells(name))):
        for key in both + (measured if name == "exact" else []):
            if want[key] != got[key]:
                fail(f"{name}, cell {i}: {key} is {got[key]}, on the CPU {want[key]}; {got.get('first_failure')}")
        watches = want["drafter"] == "recycle"  # looks at the target's rows, which therefore come to the host
        verified, decoded, passes = got["device_verified_passes"], got["device_decoded_passes"], got["target_passes"]
        if verified != (0 if watches else passes):
            fail(f"{name}, cell {i}: the device verified {verified} of {passes} passes")
        if (decoded > 0) == watches or decoded > verified:
            fail(f"{name}, cell {i}: the device decoded {decoded} of {verified} rounds")
        if want["device_verified_passes"] or want["device_decoded_passes"]:
            fail(f"cell {i}: a run on the CPU speaks of a device")
        if name == "off" and (got["alpha"] is not None or got["alpha_star"] is not None):
            fail("alpha was measured, although it is off")
    for line in baseline(name):
        if line["num_device_verified_steps"] != line["target_passes"] or line["num_device_decoded_steps"] == 0:
            fail(f"{name}: the baseline is not decoded on the device: {line}")
if not all(c["alpha"] for c in cells("cpu")[:1]):
    fail("nothing was measured")
taken = {}  # an emulated device is through with a window before the host hears of its first round
for s in map(json.loads, open(f"{tmp}/exact/steps.jsonl")):
    key = s["cell"], s["prompt"]
    taken[key] = taken.get(key, 0) + s["phase_ms"]["verify"]
if not taken or not all(taken.values()):
    fail("the passes of a request took no time")
sys.exit(failed)
PY
# The device is asked for many rounds at once. A resumed run whose costs are known replays graphs for warm-ups, prompts and loops of
# rounds alone: fewer than half of the rounds that it decoded.
"$gpu" synth --like tiny --type f32 --seed 1 --out "$tmp/tiny.gguf" >"$tmp/out" || exit 1
sed "s|$model|$tmp/tiny.gguf|; s/\"max_tokens\": 7, \"batch\": 2,/\"max_tokens\": 60, \"alpha\": false, \"draft\": {\"kind\": \"ngram\", \"k\": 2} }/; /sweep/,\$d" \
  "$tmp/exact.json" >"$tmp/many.json"
"$gpu" run "$tmp/many.json" --out "$tmp/many" >"$tmp/out" 2>&1 || { echo "FAILED: run many: $(cat "$tmp/out")" >&2; exit 1; }
rm "$tmp/many/summary.json" && : >"$tmp/many/requests.jsonl"
WG_SIMT_REPLAYS=$tmp/replays "$gpu" run "$tmp/many.json" --resume --out "$tmp/many" >"$tmp/out" 2>&1 ||
  { echo "FAILED: resume: $(cat "$tmp/out")" >&2; exit 1; }
rounds=$(sed 's/.*"num_device_decoded_steps":\([0-9]*\).*/\1/' "$tmp/many/requests.jsonl" | awk '{ n += $1 } END { print n }')
echo "$(cat "$tmp/replays") graphs replayed for $rounds rounds"
[ "$rounds" -gt 150 ] && [ $((2 * $(cat "$tmp/replays"))) -lt "$rounds" ] ||
  { echo "FAILED: the device is not asked for many rounds at once" >&2; exit 1; }
# The trace's rounds are the timed ones: the recorded rule, settled again, keeps what the run kept.
"$gpu" replay "$tmp/exact" --json >"$tmp/out" 2>&1 || { echo "FAILED: replay: $(cat "$tmp/out")" >&2; exit 1; }
