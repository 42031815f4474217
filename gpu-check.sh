#!/usr/bin/env bash
# Everything a GPU is needed for, in one command and under ten minutes: builds (or takes binaries that were built elsewhere), runs the
# kernels' unit tests and the Prefix Law on the device, compares logits and texts with the CPU, runs compute-sanitizer over small
# shapes, asks the card what it allows, and times passes. Each section has its time; one that fails stops no other. Writes
# results/gpu/<date>-<card>.json and prints a short table last. Never touches clocks, MIG or other settings of the card.
# usage: ./gpu-check.sh [FOLDER]     FOLDER: a build with -DWG_CUDA=ON; build/gpu when left out, built here if nvcc is there
set -u
cd "$(dirname "${BASH_SOURCE[0]}")"
build=${1:-build/gpu}
out=${OUT:-$build}
log=$out/gpu-check
start=$SECONDS
mkdir -p "$log" results/gpu

command -v nvidia-smi >/dev/null || { echo "error: no nvidia-smi here; this needs an NVIDIA GPU" >&2; exit 1; }
card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
[ -n "$card" ] || { echo "error: nvidia-smi names no card" >&2; exit 1; }
PATH=$PATH:/usr/local/cuda/bin

names=() states=() times=()
failed=0
note() { names+=("$1"); states+=("$2"); times+=("$3"); }
section() { # NAME SECONDS COMMAND...: its output goes to the log folder
  local name=$1 limit=$2 from=$SECONDS left=$((590 - (SECONDS - start))) rc
  shift 2
  [ "$left" -lt "$limit" ] && limit=$left
  if [ "$limit" -lt 5 ]; then note "$name" "no time left" 0; failed=1; return; fi
  timeout "$limit" "$@" >"$log/$name.txt" 2>"$log/$name.err"
  rc=$?
  case $rc in
  0) note "$name" passed $((SECONDS - from)) ;;
  77) note "$name" skipped $((SECONDS - from)) ;;
  124 | 137) note "$name" "out of time" $((SECONDS - from)); failed=1 ;;
  *) note "$name" failed $((SECONDS - from)); failed=1; tail -n 5 "$log/$name.err" >&2 ;;
  esac
}

build_here() {
  [ "$cap" = 90 ] && cap=90a
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWG_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$cap-real" &&
    cmake --build "$build" --target wager law_prefix gpu_probe test_gpu_rows test_gpu_matmul test_gpu_attention \
      test_gpu_move test_gpu_graphs test_gpu_sample test_gpu_settle law_settle law_loop
}
unit() {
  local t
  for t in rows matmul attention move graphs sample settle; do WG_GPU=cuda "$build/tests/simt/test_gpu_$t" || return 1; done
}
law() { "$build/tests/law_prefix" --cases "$2" --far "$3" --device "$1"; }
settle() { "$build/tests/simt/law_settle" 2; } # steps settled on the device: the CPU's texts
loop() { "$build/tests/simt/law_loop"; }         # rounds in one graph: the CPU's texts and counts

models=models/wager-story-11m-q8_0.gguf
draft=models/wager-story-1m-q8_0.gguf
text() { "$build/wager" generate -m $models -p 'The old house' -n 64 --temp 0 "$@" 2>/dev/null | sed 's/^\[.*output/output/'; }
texts() { # greedy text: the same for every drafter and place
  local want way
  want=$(text --device cuda:0) && [ -n "$want" ] || return 1
  for way in "--draft ngram" "-d $draft" "--draft model:model=$draft,device=cuda:0" "--draft none"; do
    # shellcheck disable=SC2086
    [ "$(text --device cuda:0 $way)" = "$want" ] || { echo "another text with $way" >&2; return 1; }
  done
  [ "$(text --device cuda:0/eager)" = "$want" ] || { echo "another text without recorded passes" >&2; return 1; }
  [ "$(text --draft "model:model=$draft,device=cuda:0")" = "$(text)" ] || { echo "CPU: another text with its draft on the GPU" >&2; return 1; }
  [ "$(text --device cuda:0/exact)" = "$(text)" ] || { echo "exact: not the CPU's text" >&2; return 1; }
}
logits() { # exact: the CPU's bytes; strict: within 1e-2 of the largest
  local t=1,7,300,12,80,9,44,1000,5,6,7,8,9,10,11,12 d
  for d in cpu cuda:0 cuda:0/exact; do
    "$build/wager" logits $models --tokens $t --device $d --out "$log/${d//[:\/]/-}.f32" || return 1
  done
  cmp "$log/cpu.f32" "$log/cuda-0-exact.f32" || return 1
  python3 - "$log/cpu.f32" "$log/cuda-0.f32" <<'PY'
import array, sys
a, b = (array.array('f', open(p, 'rb').read()) for p in sys.argv[1:])
off = max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, a))
print("largest difference over largest logit:", off)
sys.exit(not (len(a) == len(b) and off < 1e-2))
PY
}
rounds() { # a round in a loop of the device, and made by the host: plain decoding, and chains of a draft model
  "$build/wager" bench round -m $models --draft "model:model=$draft,device=cuda:0,length=4" --device cuda:0 --repeats 5 -n 256 --json "$@"
}
sanitizer() {
  command -v compute-sanitizer >/dev/null || return 77
  local tool t sane="compute-sanitizer --target-processes all --error-exitcode 9 --tool"
  for tool in memcheck racecheck synccheck initcheck; do
    for t in rows attention move sample settle; do
      WG_GPU=cuda $sane $tool "$build/tests/simt/test_gpu_$t" || return 1
    done
  done
}
bench() {
  local shape=$1 type=$2 rows=$3 device=$4 file
  file=$(mktemp -u "${TMPDIR:-/tmp}/wager-XXXXXX.gguf")
  "$build/wager" synth --like "$shape" --type "$type" --seed 1 --out "$file" >/dev/null || return 1
  "$build/wager" bench forward -m "$file" --device "$device" --rows "$rows" --context 1024 --repeats 5 --json
  local rc=$?
  rm -f "$file"
  return $rc
}

if command -v nvcc >/dev/null && [ $# -eq 0 ]; then section build 240 build_here; fi
[ -x "$build/wager" ] || { echo "error: no $build/wager, no nvcc to build it; build elsewhere, name the folder" >&2; exit 1; }
export -f build_here unit law settle loop rounds text texts logits sanitizer bench
export build log models draft cap
section unit 60 bash -c unit
section law 60 bash -c 'law cuda:0 60 0'
section law-far 40 bash -c 'law cuda:0 8 1'
section law-exact 60 bash -c 'law cuda:0/exact 60 0'
section settle 40 bash -c settle
section loop 40 bash -c loop
section logits 30 bash -c logits
section texts 60 bash -c texts
section probe 60 "$build/tests/gpu_probe"
section rounds 20 bash -c rounds
section rounds-steps 20 bash -c 'rounds --steps'
section bench-1b 90 bash -c 'bench llama-3.2-1b bf16 1,2,4,8,16,32,64 cuda:0'
section bench-1b-eager 60 bash -c 'bench llama-3.2-1b bf16 1,8,64 cuda:0/eager'
section sanitizer 120 bash -c sanitizer

name=results/gpu/$(date -u +%Y-%m-%d)-$(tr -cs 'A-Za-z0-9\n' - <<<"$card" | sed 's/-*$//').json
{
  printf '{"schema": 1, "date": "%s", "card": "%s", "driver": "%s",\n "commit": "%s", "sections": {' "$(date -u +%FT%TZ)" "$card" \
    "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)" "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
  for i in "${!names[@]}"; do
    printf '%s"%s": {"result": "%s", "seconds": %d}' "$([ "$i" -gt 0 ] && echo ', ')" "${names[$i]}" "${states[$i]}" "${times[$i]}"
  done
  probe=$(cat "$log/probe.txt" 2>/dev/null)
  printf '},\n "probe": %s' "${probe:-null}"
  for i in rounds rounds-steps bench-1b bench-1b-eager; do
    key=${i/bench-1b/bench_1b_bf16}
    printf ',\n "%s": [%s]' "${key//-/_}" "$(grep '^{' "$log/$i.txt" 2>/dev/null | paste -sd,)"
  done
  printf '}\n'
} >"$name.new" && mv "$name.new" "$name"

echo "$card, $((SECONDS - start)) s, written to $name (logs: $log)"
for i in "${!names[@]}"; do printf '  %-12s %-14s %4d s\n' "${names[$i]}" "${states[$i]}" "${times[$i]}"; done
tr ',' '\n' <"$log/probe.txt" 2>/dev/null | sed 's/[{}"]//g; s/^ */  /' | grep -v '^ *$'
grep -h "^{" "$log"/rounds*.txt "$log"/bench-1b*.txt 2>/dev/null | sed 's/,"stages.*//; s/^/  /' | cut -c1-150
exit $failed
