#!/usr/bin/env bash
# Everything a GPU is needed for, in one command and under ten minutes: builds (or takes binaries that were built elsewhere),
# runs the kernels' unit tests and the Prefix Law on the device, compares logits and texts with the CPU, asks the card what it
# allows, times passes and rounds of models whose weights it draws itself, holds transformers beside them where that is
# installed, and runs compute-sanitizer over small shapes. A section has its time; one that fails or runs out of it takes
# nothing from the others: the results so far are written after each, to results/gpu/<date>-<card>.json, and a short table is
# printed last. Never touches clocks, MIG or other settings of the card.
# usage: ./gpu-check.sh [FOLDER]   FOLDER: a build with -DWG_CUDA=ON, or its programs in one folder; build/gpu when left out,
#                                  built here if nvcc is there
# OUT: where logs go (FOLDER). RESULTS: where the JSON goes (results/gpu). WG_GPU=simt: tiny shapes, for programs whose cuda:0
# is emulated (tests/simt/gpu_check.sh). Exit status: 0, or 1 when a section failed, or could not end in its time.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
build=${1:-build/gpu}
log=${OUT:-$build}/gpu-check
results=${RESULTS:-results/gpu}
start=$SECONDS
mkdir -p "$log" "$results" || exit 1
rm -f "$log"/*.txt "$log"/*.err "$log"/*.f32 # of a run before this one
PATH=$PATH:/usr/local/cuda/bin

export WG_GPU=${WG_GPU:-cuda}
if [ "$WG_GPU" = simt ]; then
  card=emulated driver=none cap=0 all=${SECONDS_ALL:-590}
  big=tiny one=tiny small=tiny vocab=512 rows=1,2 some=1,2 far=8 few=4 repeats=1 tokens=6 cases=1
  units="draw move" tools="memcheck racecheck"
else
  command -v nvidia-smi >/dev/null || { echo "error: no nvidia-smi here; this needs an NVIDIA GPU" >&2; exit 1; }
  ask() { nvidia-smi "--query-gpu=$1" --format=csv,noheader 2>/dev/null | head -n 1; }
  card=$(ask name) driver=$(ask driver_version) cap=$(ask compute_cap | tr -d .) all=590
  [ -n "$card" ] || { echo "error: nvidia-smi names no card" >&2; exit 1; }
  big=llama-3.1-8b one=llama-3.2-1b small=draft-124m vocab=128256 rows=1,2,4,8,16,32,64 some=1,8,16,64 far=1024 few=128
  repeats=51 tokens=256 cases=60 tools="memcheck racecheck synccheck initcheck"
  units=
  for unit in tests/unit/cuda/test_gpu_*.c; do
    unit=${unit##*/test_gpu_} unit=${unit%.c}
    [[ $unit == device || $unit == decode ]] || units="$units $unit" # those two are about the emulation
  done
fi
export build log big one small rows some far few repeats tokens cases units cap vocab

# ---- sections

names=() states=() times=()
failed=0
name=$results/$(date -u +%Y-%m-%d)-$(tr -cs 'A-Za-z0-9\n' - <<<"$card" | sed 's/-*$//').json
started=$(date -u +%FT%TZ)
lines_of() { grep '^{.*}$' "$log/$1.txt" 2>/dev/null | paste -sd,; } # a line that was cut off in the middle is no result
write_json() {
  local i
  {
    printf '{"schema": 2, "date": "%s", "card": "%s", "driver": "%s", "commit": "%s", "seconds": %d,\n "sections": {' \
      "$started" "$card" "$driver" "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" $((SECONDS - start))
    for i in "${!names[@]}"; do
      [ "$i" -gt 0 ] && printf ', '
      printf '"%s": {"result": "%s", "seconds": %d}' "${names[$i]}" "${states[$i]}" "${times[$i]}"
    done
    printf '}'
    for i in "${names[@]}"; do
      [ -z "$(lines_of "$i")" ] || printf ',\n "%s": [%s]' "$i" "$(lines_of "$i")"
    done
    printf '}\n'
  } >"$name.new" && mv "$name.new" "$name"
}
section() { # NAME SECONDS COMMAND...: its output goes to the log folder, lines of JSON in it to the results
  local what=$1 limit=$2 from=$SECONDS left=$((all - (SECONDS - start))) state rc
  shift 2
  [ "$left" -lt "$limit" ] && limit=$left
  if [ "$limit" -lt 2 ]; then
    state="no time left" failed=1
  else
    timeout -k 5 "$limit" bash -c '"$@"' _ "$@" >"$log/$what.txt" 2>"$log/$what.err"
    rc=$?
    case $rc in
    0) state=passed ;;
    77) state=skipped ;;
    124 | 137) state="out of time" failed=1 ;;
    *) state=failed failed=1 && tail -n 5 "$log/$what.err" >&2 ;;
    esac
  fi
  names+=("$what") states+=("$state") times+=($((SECONDS - from)))
  write_json
}

find_program() { # in a build, or in a folder of programs
  local f
  for f in "$build/$1" "$build/tests/$1" "$build/tests/simt/$1"; do
    [ -x "$f" ] && { echo "$f"; return; }
  done
  echo "$1 is not in $build" >&2
  return 1
}
wager() { "$(find_program wager)" "$@"; }

build_here() {
  local targets
  [ "$cap" = 90 ] && cap=90a
  targets="wager law_prefix law_settle law_loop gpu_probe $(printf 'test_gpu_%s ' $units)"
  # shellcheck disable=SC2086
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWG_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$cap-real" &&
    cmake --build "$build" --target $targets
}
unit() { # all of them, whichever fails
  local t program failed=0
  for t in $units; do
    program=$(find_program "test_gpu_$t") && "$program" || { echo "test_gpu_$t failed" >&2; failed=1; }
  done
  return $failed
}
law() { "$(find_program law_prefix)" --cases "$2" --far "$3" --device "$1"; }
settle() { "$(find_program law_settle)" $((1 + cases / 60)); } # steps settled on the device: the CPU's texts
loop() { "$(find_program law_loop)"; } # rounds in one graph: the CPU's texts and counts
probe() {
  local program
  program=$(find_program gpu_probe) || return 77
  "$program"
}

model=models/wager-story-11m-q8_0.gguf draft=models/wager-story-1m-q8_0.gguf prompt='The old house' length=64
[ "$WG_GPU" = simt ] && model=$draft length=2
export model draft prompt length
text() { wager generate -m $model -p "$prompt" -n $length --temp 0 "$@" 2>/dev/null | sed 's/^\[.*output/output/'; }
texts() { # greedy text: the same for every drafter and place
  local want way
  want=$(text --device cuda:0) && [ -n "$want" ] || return 1
  for way in "--draft ngram" "-d $draft" "--draft model:model=$draft,device=cuda:0" "--draft none"; do
    # shellcheck disable=SC2086
    [ "$(text --device cuda:0 $way)" = "$want" ] || { echo "another text with $way" >&2; return 1; }
  done
  [ "$(text --device cuda:0/eager)" = "$want" ] || { echo "another text without recorded passes" >&2; return 1; }
  [ "$(text --draft "model:model=$draft,device=cuda:0")" = "$(text)" ] ||
    { echo "CPU: another text with its draft on the GPU" >&2; return 1; }
  [ "$(text --device cuda:0/exact)" = "$(text)" ] || { echo "exact: not the CPU's text" >&2; return 1; }
}
logits() { # exact: the CPU's bytes; strict: within 1e-2 of the largest
  local t=1,7,300,12,80,9,44,1000,5,6,7,8,9,10,11,12 d type file
  for type in q8_0 bf16; do
    file=$log/$type.gguf
    wager convert $model --type $type --out "$file" >&2 || return 1
    for d in cpu cuda:0 cuda:0/exact; do
      wager logits "$file" --tokens $t --device $d --out "$log/${d//[:\/]/-}.f32" >&2 || return 1
    done
    cmp "$log/cpu.f32" "$log/cuda-0-exact.f32" || return 1
    python3 - $type "$log/cpu.f32" "$log/cuda-0.f32" <<'PY' || return 1
import array, json, sys
a, b = (array.array('f', open(p, 'rb').read()) for p in sys.argv[2:])
off = max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, a))
print(json.dumps({"type": sys.argv[1], "difference": off, "logits": len(a)}))
sys.exit(not (len(a) == len(b) and off < 1e-2))
PY
  done
}
sanitizer() {
  command -v compute-sanitizer >/dev/null || return 77
  local t program failed=0
  for t in $units; do
    program=$(find_program "test_gpu_$t") &&
      compute-sanitizer --target-processes all --error-exitcode 9 --tool "$1" "$program" || { echo "$1: $t" >&2; failed=1; }
  done
  return $failed
}

# A model that exists as a name alone; its weights are drawn on the device.
shape() { echo "synth:$1:$2:context=8192${3:+:$3}"; }
forward() { # SHAPE TYPE DEVICE ROWS CONTEXT
  wager bench forward -m "$(shape "$1" "$2")" --device "$3" --rows "$4" --context "$5" --repeats $repeats --json
}
optional() { # DEVICE COMMAND...: 77 where this build knows no such device, or the machine lacks its library
  wager generate -m "$(shape tiny bf16)" --device "$1" -p x -n 1 2>&1 >/dev/null | grep -q 'is unknown\|no cuBLASLt' && return 77
  shift
  "$@"
}
typed() { # TYPE COMMAND...: 77 where this build knows no such type of weights
  wager inspect "$(shape tiny "$1")" >/dev/null 2>&1 || return 77
  shift
  "$@"
}
rounds() { # SHAPE ARGS...: passes of the parts of a round, then plain decoding and rounds
  local shape=$1
  shift
  forward "$shape" bf16 cuda:0 1,5 $few &&
    wager bench round -m "$(shape "$shape" bf16)" --device cuda:0 --rule match --temp 0 -n $tokens --repeats 7 --json "$@"
}
oracle() { rounds "$1" --draft synthetic:ahead=memory,rate=0.8,k=4; }
drafted() { # SHAPE DRAFT ARGS...: with --steps the host makes the rounds, else a loop on the device
  local target=$1 with="model:model=$(shape "$2" bf16 vocab=$vocab),device=cuda:0,length=4"
  shift 2
  rounds "$target" --draft "$with" "$@"
}
peer() {
  [ "$WG_GPU" = simt ] && return 77
  python3 tests/gpu/peer_transformers.py --target $one --draft $small --tokens $tokens --device cuda
}
export -f find_program wager build_here unit law settle loop probe text texts logits sanitizer shape forward optional typed \
  rounds oracle drafted peer

# ---- in this order, because the time may end

if [ $# -eq 0 ] && command -v nvcc >/dev/null; then section build 240 build_here; fi
find_program wager >/dev/null 2>&1 ||
  { echo "error: no wager in $build and no nvcc to build it; build elsewhere, name the folder" >&2; exit 1; }
section unit 60 unit
section law 40 law cuda:0 $cases 0
section law_far 30 law cuda:0 $((cases / 8)) 1
section law_exact 40 law cuda:0/exact $cases 0
section settle 40 settle
section loop 40 loop
section logits 20 logits
section texts 40 texts
section probe 60 probe
section forward_8b_bf16 40 forward $big bf16 cuda:0 $rows $far
section forward_1b_bf16 20 forward $one bf16 cuda:0 $rows $far
for type in q4_0 q4_k q8_0; do section forward_8b_$type 20 forward $big $type cuda:0 $some $far; done
section forward_8b_f8 40 typed f8_e4m3 forward $big f8_e4m3 cuda:0 $some $far
section forward_124m_bf16 15 forward $small bf16 cuda:0 1,2 $few
section oracle_8b_bf16 30 oracle $big
section oracle_1b_bf16 20 oracle $one
section drafted_1b_bf16 30 drafted $one $small
section steps_1b_bf16 30 drafted $one $small --steps
section fast_8b_bf16 30 optional cuda:0/fast forward $big bf16 cuda:0/fast $rows $far
section fast_1b_bf16 20 optional cuda:0/fast forward $one bf16 cuda:0/fast $rows $far
section eager_1b_bf16 20 forward $one bf16 cuda:0/eager $some $far
section far_8b_bf16 40 forward $big bf16 cuda:0 1,8 $((4 * far))
section peer 60 peer
for tool in $tools; do section sanitizer_$tool 40 sanitizer $tool; done

# ---- the short table

echo "$card, $((SECONDS - start)) s, written to $name (logs: $log)"
for state in passed skipped failed "out of time" "no time left"; do
  list=
  for i in "${!names[@]}"; do [ "${states[$i]}" = "$state" ] && list="$list ${names[$i]}"; done
  [ -z "$list" ] || echo "$state:$list"
done
python3 results/gpu/table.py --short "$name" || cat "$name"
exit $failed
