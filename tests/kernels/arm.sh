#!/usr/bin/env bash
# Cross-compiles kernelcheck for 64-bit Arm and runs it under qemu on two processors: one without the dot-product extension, so
# that the plain variants run and the choice of level is tested, and one with it. Their bits must be those of
# tests/golden/kernels.txt, which are the same on every machine.
# usage: tests/kernels/arm.sh BUILD-FOLDER      (exit 77 without the cross compiler or qemu)
set -u -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$1
compiler=$(command -v aarch64-linux-gnu-gcc) ||
  { echo "no aarch64-linux-gnu-gcc here (package gcc-aarch64-linux-gnu): Arm not checked"; exit 77; }
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
  { echo "no qemu-aarch64 here (package qemu-user-static): Arm not checked"; exit 77; }
sysroot=$(realpath "$(dirname "$("$compiler" -print-file-name=libc.so)")/..")
mkdir -p "$build" || exit 1
log=$build/build.log
{ cmake -S "$root" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64.cmake" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DWG_KERNELS_ONLY=ON && cmake --build "$build" -j 2; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
for run in cortex-a57:neon max:dotprod; do
  cpu=${run%:*} level=${run#*:}
  "$root/tests/kernels/digest.sh" "$qemu" -L "$sysroot" -cpu "$cpu" "$build/kernelcheck" --level "$level" || exit 1
done
# The first processor has no dotprod to ask for.
if "$qemu" -L "$sysroot" -cpu cortex-a57 "$build/kernelcheck" --level dotprod --op add >/dev/null 2>&1; then
  echo "error: level dotprod was taken on a cortex-a57, which has no such instruction" >&2
  exit 1
fi
