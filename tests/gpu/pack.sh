#!/usr/bin/env bash
# The archive of gpu-check.sh for a card, made of what a build without WG_CUDA has: its objects, and the kernels for sm_90a that
# tests/gpu/resources.sh --into COMPILED left. Only the probe is compiled here. Then packed and checked (check_pack.sh): its
# size, symbol versions, libraries, the card's code, the plan, and that its canary says why there is no card.
# usage: tests/gpu/pack.sh COMPILED BUILD ARCHIVE        exit status 77 without nvcc
# Not here: that it runs in a minimal Debian (tests/gpu/check/rehearse.sh: root, debootstrap and Debian's packages).
set -eu
compiled=$(realpath "$1") build=$2 archive=$3 # the link runs elsewhere
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) ||
  { echo "SKIPPED: no nvcc here to compile the kernels with"; exit 77; }
objects=$compiled/objects
[ -e "$objects/verify.o" ] || { echo "no objects in $objects: run cuda_resources first" >&2; exit 1; }
probes=$compiled/probes
mkdir -p "$probes"
. tests/gpu/made.sh
for file in probe probe_kernels; do
  words=(-std=c++17 -O3 --fmad=false -I. -gencode "arch=compute_90a,code=sm_90a" -c "tests/gpu/$file.cu")
  is_made "$probes/$file.o" "${words[@]}" && continue
  "$nvcc" "${words[@]}" -MD -MF "$probes/$file.o.d" -o "$probes/$file.o"
  note_made "$probes/$file.o" "${words[@]}"
done
printf '"%s"\n' "$objects"/*.o "$probes"/*.o >"$objects/list" # what the target's link reads
rm -f "$build/tests/gpu/gpu_suite_card" # its objects are unknown to the build
cmake --build "$build" --target gpu_suite_card >"$compiled/link" 2>&1 || { tail -n 20 "$compiled/link" >&2; exit 1; }
exec ./gpu-check.sh --pack "$archive" "$build/tests/gpu/gpu_suite_card" card
