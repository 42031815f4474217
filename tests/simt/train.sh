#!/usr/bin/env bash
# Training with cuda:0 emulated, cuBLAS included: the losses of a run there are those of the CPU to five digits, a run that goes
# on from a checkpoint has the bytes of one that was not cut off, checkpoints go from one device to the other, students are
# distilled there; and every way in which a device can be refused, or fail, is said and leaves the last checkpoint.
# usage: tests/simt/train.sh WAGER_GPU WAGER
set -u
gpu=$1 plain=$2
tmp=$(mktemp -d) || exit 1
model=$tmp/tiny.gguf
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }
head -c 9000 docs/training.md >"$tmp/text.txt"
"$plain" synth --like tiny --type f32 --out "$model" >/dev/null || fail "synth"
cat >"$tmp/train.json" <<JSON
{ "model": {"tokenizer": "$model", "layers": 2, "dim": 16, "heads": 4, "kv_heads": 2, "hidden": 40, "context": 72},
  "data": {"text": "$tmp/text.txt", "held_out": 0}, "output": {"name": "m", "type": "f32"},
  "train": {"steps": 4, "batch": 2, "micro": 1, "checkpoint": 2, "evaluate": 0} }
JSON
# near KEY A B: the numbers of a key in the lines of two logs differ by less than 1e-5 of them.
near() {
  python3 - "$@" <<'PY'
import json, sys
key, *logs = sys.argv[1:]
a, b = ([json.loads(line).get(key) for line in open(log)] for log in logs)
sys.exit(not (len(a) == len(b) > 2 and all(x == y if x is None else abs(x - y) <= 1e-5 * abs(x) for x, y in zip(a, b))))
PY
}
go() { # PROGRAM COMMAND FOLDER ARGS...
  "$1" "$2" "$tmp/$2.json" --out "$tmp/$3" --threads 2 "${@:4}" >"$tmp/out" 2>"$tmp/said"
}
refused() { # TEXT PROGRAM ARGS...: a run that ends with this message
  local text=$1
  shift
  go "$1" train refused "${@:2}" && fail "not refused: $text"
  grep -qF "$text" "$tmp/said" || fail "'$text' is not said: $(tail -n 2 "$tmp/said")"
  [ -z "$(ls "$tmp/refused" 2>/dev/null | grep gguf)" ] || fail "a model was written: $text"
  rm -rf "$tmp/refused"
}

# AdamW: with a head of its own, and as of a pruned model, which keeps its zeros: the last matrices of attention and MLP.
for kind in muon adamw; do
  set --
  [ $kind = adamw ] && set -- --set train.keep_zeros=true --set train.steps=3 --set model.tied=false
  go "$plain" train "cpu-$kind" --set "optimiser.kind=$kind" "$@" || fail "$kind on the CPU: $(cat "$tmp/said")"
  go "$gpu" train "gpu-$kind" --device cuda:0 --set "optimiser.kind=$kind" "$@" || fail "$kind on the device: $(cat "$tmp/said")"
  for key in loss norm; do
    near $key "$tmp/cpu-$kind/train.jsonl" "$tmp/gpu-$kind/train.jsonl" || fail "$kind: another $key than the CPU's"
  done
done
mkdir "$tmp/on" && (cd "$tmp/gpu-muon" && cp config.json train.jsonl ./*.tokens checkpoint-00000002.wgc ../on/)
cp -r "$tmp/on" "$tmp/over"
go "$gpu" train on --device cuda:0 --resume --set optimiser.kind=muon || fail "going on: $(cat "$tmp/said")"
for file in m.gguf checkpoint-00000004.wgc; do cmp "$tmp/on/$file" "$tmp/gpu-muon/$file" || fail "going on is another run"; done
go "$plain" train over --resume --set optimiser.kind=muon || fail "going over to the CPU: $(cat "$tmp/said")"
near loss "$tmp/over/train.jsonl" "$tmp/cpu-muon/train.jsonl" || fail "the CPU goes on from other weights"

# Losses of distillation are the host's; texts that students write come from the weights of the device.
cat >"$tmp/distill.json" <<JSON
{ "target": {"model": "$model"}, "students": [{"name": "a"}, {"name": "b", "loss": {"ce": 1}}],
  "distill": {"loss": {"tv": 1}, "sources": {"text": 1, "student": 1}, "refresh": 1, "prompt": 8, "documents": 0, "predict": false},
  "model": {"layers": 1, "dim": 16, "heads": 2, "hidden": 24, "context": 72}, "output": {"type": "f32"},
  "data": {"text": "$tmp/text.txt", "held_out": 0}, "train": {"steps": 3, "batch": 2, "micro": 1, "length": 40, "evaluate": 0} }
JSON
go "$plain" distill students-cpu || fail "distill on the CPU: $(cat "$tmp/said")"
go "$gpu" distill students --device cuda:0 || fail "distill on the device: $(cat "$tmp/said")"
near loss "$tmp/students-cpu/distill.jsonl" "$tmp/students/distill.jsonl" || fail "distill: another loss than the CPU's"

refused "device cuda:0: this build is without CUDA" "$plain" --device cuda:0
refused "device cuda:0: training knows one way of computing there; name it without /exact and /fast" "$gpu" --device cuda:0/exact
export WG_SIMT_CUBLAS=all
refused "its products need cuBLAS, and libcublas.so.13 is not found; install the toolkit's libraries, set LD_LIBRARY_PATH, or name the file in WG_CUBLAS" "$gpu" --device cuda:0
WG_SIMT_CUBLAS=cublasSetMathMode
refused "libcublas.so.13 lacks cublasSetMathMode; install the toolkit's libraries, or name another file in WG_CUBLAS" "$gpu" --device cuda:0
unset WG_SIMT_CUBLAS
export WG_SIMT_FAIL=cublasCreate_v2
refused "cuBLAS does not start: it needs 32 MiB and some more of the device's memory; free some of it" "$gpu" --device cuda:0
WG_SIMT_FAIL=cublasSgemmStridedBatched
refused "status 13; no checkpoint was written yet" "$gpu" --device cuda:0
grep -q "step 1: training on .* failed: cuBLAS's product of " "$tmp/said" || fail "a failed product is not told: $(cat "$tmp/said")"
unset WG_SIMT_FAIL
export WG_SIMT_MEMORY=34000000
refused "MB of the device's memory are free: lower the sequences of a pass (micro), the context, the vocabulary or the model" "$gpu" --device cuda:0
exit $failed
