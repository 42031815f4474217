# The commands of sections (plan.sh). Each writes lines of JSON to standard output, which become its results, and what is wrong
# to standard error. Exit status 77: skipped, the last line says why. Set by run.sh when a failure is run again: MODE, words
# behind a device's name (/eager, /serial), and TOOL, what a program is started with. Sizes: settings.sh.

suite() { ${TOOL:-} "$suite" "$@"; }
wager() { suite wager "$@"; }
find_suite() { # [FOLDER]
  local f
  if [ $# -eq 0 ] && [ -x bin/gpu_suite ]; then set -- bin; fi
  if [ $# -eq 0 ]; then
    set -- build/gpu
    command -v nvcc >/dev/null && { build_here || return 1; }
  fi
  for f in "$1/gpu_suite" "$1/tests/gpu/gpu_suite"; do
    [ -x "$f" ] && { suite=$f; export suite; return; }
  done
  echo "error: no gpu_suite in $1 and no nvcc to build it; build elsewhere, name the folder" >&2
  return 1
}
build_here() {
  local cap
  cap=$(timeout 10 nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
  [ "${cap:-90}" = 90 ] && cap=90a
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DWG_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$cap-real" &&
    cmake --build build/gpu --target gpu_suite
} >&2

skip() { echo "$*" >&2; return 77; }
canary() { suite canary; }
probe() { suite probe "$1"; }
unit() { suite unit "$1"; }
law() { suite law_prefix --cases "$(($2 > 0 ? $2 : 1))" --far "$3" --device "$1${MODE:-}"; }
settle() { suite law_device_verify $((1 + cases / 60)) ${MODE:-}; } # steps settled on the device: the CPU's texts
loop() { suite law_device_decode "$runs" ${MODE:-}; } # rounds in one graph: the CPU's texts and counts

# FIELD KEY COMMAND...: fails when a line of JSON with KEY in it says that FIELD is false; on a card also when it does not say
# that it is true. That is how a recording or a loop that was given up shows.
holding() {
  local field=$1 key=$2
  shift 2
  "$@" | awk -v field="\"$field\": *" -v key="\"$key\"" -v strict="$mode" '
    { print; fflush() }
    index($0, key) && ($0 ~ field "false" || (strict == "cuda" && $0 !~ field "true")) {
      print "not " field ": " $0 >"/dev/stderr"
      bad = 1
    }
    END { exit bad }'
  local rc=("${PIPESTATUS[@]}")
  [ "${rc[0]}" -ne 0 ] && return "${rc[0]}"
  return "${rc[1]}"
}

text() { wager generate -m $model -p "$prompt" -n $length --temp 0 "$@" 2>/dev/null | sed 's/^\[.*output/output/; /^\[no draft: /d'; }
text_is() { # WANT WHAT ARGS...
  local got
  got=$(text "${@:3}")
  [ -n "$got" ] && [ "$got" = "$1" ] || { echo "another text: $2" >&2; return 1; }
}
texts() { # greedy text: the same for every drafter and place
  local on=cuda:0${MODE:-} exact=cuda:0/exact${MODE:-} cpu gpu failed=0 way
  cpu=$(text) && [ -n "$cpu" ] || { echo "no text on the CPU" >&2; return 1; }
  for way in "--draft ngram" "-d $draft"; do
    # shellcheck disable=SC2086
    text_is "$cpu" "CPU, $way" $way || failed=1
  done
  [ $failed = 0 ] || return 1
  echo '{"texts": "cpu", "same": true}'
  gpu=$(wager generate -m $model -p "$prompt" -n $length --temp 0 --device "$on" | sed 's/^\[.*output/output/; /^\[no draft: /d')
  [ -n "$gpu" ] || return 1
  for way in "--draft ngram" "-d $draft" "--draft model:model=$draft,device=$on" "--draft none"; do
    # shellcheck disable=SC2086
    text_is "$gpu" "$on, $way" --device "$on" $way || failed=1
  done
  text_is "$gpu" "without recorded passes" --device cuda:0/eager || failed=1
  text_is "$cpu" "CPU, its draft on the GPU" --draft "model:model=$draft,device=$on" || failed=1
  text_is "$cpu" "$exact is not the CPU's" --device "$exact" || failed=1
  [ $failed = 0 ] && echo '{"texts": "device", "same": true}'
  return $failed
}
logits() { # TYPE: exact: the CPU's bytes; strict: within 1e-2 of the largest
  local t=1,7,300,12,80,9,44,1000,5,6,7,8,9,10,11,12 d at=$work/logits-$1-${MODE//\//-} failed=0
  mkdir -p "$at" && wager convert $model --type "$1" --out "$at/model.gguf" >&2 || return 1
  for d in cpu cuda:0/exact${MODE:-} cuda:0${MODE:-}; do
    wager logits "$at/model.gguf" --tokens $t --device "$d" --out "$at/${d//[:\/]/-}.f32" >&2 || return 1
  done
  d=${MODE:-} d=${d//\//-}
  cmp "$at/cpu.f32" "$at/cuda-0-exact$d.f32" >&2 || failed=1
  suite compare "$1" "$at/cpu.f32" "$at/cuda-0$d.f32" 1e-2 || failed=1
  [ $failed = 1 ] || rm -r "$at" # what differs goes with the logs
  [ $failed = 0 ] || { rm -f "$at/model.gguf" && mv "$at" "$log/"; }
  return $failed
}

sanitizer() { # TOOL UNIT
  local rc
  command -v compute-sanitizer >/dev/null || { skip "no compute-sanitizer"; return; }
  TOOL="compute-sanitizer --target-processes all --error-exitcode 9 --tool $1" unit "$2" 2>&1 | tee "$log/$1-$2.out"
  rc=${PIPESTATUS[0]}
  if [ "$rc" -ne 0 ] && grep -q 'Device not supported' "$log/$1-$2.out"; then
    skip "compute-sanitizer: device not supported"
    return
  fi
  [ "$rc" -eq 0 ] || { grep -m 3 '=========' "$log/$1-$2.out"; echo "$1: test_gpu_$2" ; } >&2
  return "$rc"
}
profile() { # four kernels, each in a pass of two layers of an 8 B model, every launch made anew
  command -v ncu >/dev/null || { skip "no ncu"; return; }
  local kernel type rows failed=0
  while read -r kernel type rows; do
    ncu --target-processes all --kernel-name-base function -k "regex:^$kernel" --launch-skip 12 --launch-count 2 --set full \
      --clock-control none "$suite" wager bench forward -m "$(shape $big "$type"):layers=2" --device cuda:0/eager \
      --rows "$rows" --context $far --repeats 1 --json </dev/null >"$log/ncu-$kernel.out" 2>&1
    if grep -q 'ERR_NVGPUCTRPERM\|LibraryNotLoaded' "$log/ncu-$kernel.out"; then
      skip "ncu may not read the counters here"
      return
    elif grep -q '==PROF== Profiling' "$log/ncu-$kernel.out"; then
      echo "{\"profiled\": \"$kernel\", \"type\": \"$type\", \"rows\": $rows}"
    else
      { tail -n 3 "$log/ncu-$kernel.out"; echo "ncu saw no $kernel"; } >&2
      failed=1
    fi
  done <<LIST
fused_fragments bf16 1
fused_stripes q8_0 1
matmul_fragments bf16 64
attend_tiles bf16 8
LIST
  return $failed
}

# A model that exists as a name alone; its weights are drawn on the device.
shape() { echo "synth:$1:$2:context=8192${3:+:$3}"; }
forward() { # SHAPE TYPE DEVICE ROWS CONTEXT
  wager bench forward -m "$(shape "$1" "$2")" --device "$3" --rows "$4" --context "$5" --repeats $repeats --json
}
optional() { # DEVICE COMMAND...: skipped where this build knows no such device, or the machine lacks its library
  local why
  why=$(wager generate -m "$(shape tiny bf16)" --device "$1" -p x -n 1 2>&1 >/dev/null | grep -m 1 'is unknown\|no cuBLASLt')
  [ -z "$why" ] || { skip "$why"; return; }
  shift
  "$@"
}
training() { # a pass forward and backward beside the products of cuBLAS alone, and an update by Muon
  # shellcheck disable=SC2086
  wager bench train -m $trained --device "cuda:0${MODE:-}" --repeats $(((repeats + 4) / 5)) --json
}
typed() { # TYPE COMMAND...: skipped where this build knows no such type of weights
  wager inspect "$(shape tiny "$1")" >/dev/null 2>&1 || { skip "this build has no type $1"; return; }
  shift
  "$@"
}
rounds() { # SHAPE TEMPERATURE RULE ARGS...: passes of the parts of a round, then plain decoding and rounds
  local shape=$1 temperature=$2 rule=$3
  shift 3
  forward "$shape" bf16 cuda:0 1,5 $few &&
    wager bench round -m "$(shape "$shape" bf16)" --device cuda:0 --rule "$rule" --temp "$temperature" -n $tokens --repeats 7 \
      --json "$@"
}
oracle() { rounds "$1" "$2" match --draft synthetic:ahead=memory,rate=0.8,k=4; }
drafted() { # SHAPE DRAFT TEMPERATURE ARGS...: with --steps the host makes the rounds, else a loop on the device
  local target=$1 with="model:model=$(shape "$2" bf16 vocab=$vocab),device=cuda:0,length=4" temperature=$3 rule=match
  [ "$temperature" = 0 ] || rule=rejection
  shift 3
  rounds "$target" "$temperature" "$rule" --draft "$with" "$@"
}
peer() {
  [ "$mode" != simt ] || { skip "nothing beside an emulated device"; return; }
  command -v python3 >/dev/null || { skip "no python3"; return; }
  python3 tests/gpu/peer_transformers.py --target $one --draft $small --tokens $tokens --device cuda
}

env_and() { # NAME=VALUE... COMMAND...
  while [[ ${1:-} == [A-Z]*=* ]]; do export "${1?}"; shift; done
  "$@"
}
with_memcheck() {
  command -v compute-sanitizer >/dev/null || { skip "no compute-sanitizer"; return; }
  TOOL="compute-sanitizer --target-processes all --error-exitcode 9 --tool memcheck" "$@"
}
