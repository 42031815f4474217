#!/usr/bin/env bash
# Compiles every kernel for every generation and fails when one spills, keeps a stack frame, or takes more registers or static
# shared memory than its cap.
# usage: kernels/cuda/resources.sh [FILE.cu ...]      (needs nvcc; all files when left out; exit 77 without nvcc)
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo "no nvcc here: resources not checked"; exit 77; }
archs="80 86 89 90a 100"
registers=168    # three blocks of 128 threads fit the 64 K registers of an SM
shared=49152     # static: what every generation gives without asking
[ $# -gt 0 ] || set -- kernels/cuda/*.cu
flags=()
for a in $archs; do flags+=(-gencode "arch=compute_$a,code=sm_$a"); done
out=$(mktemp) || exit 1
trap 'rm -f "$out" "$out.o"' EXIT
for file in "$@"; do
  "$nvcc" -std=c++17 -O3 --fmad=false --threads 2 -I. "${flags[@]}" -Xptxas -v -c "$file" -o "$out.o" \
    >>"$out" 2>&1 || { cat "$out" >&2; exit 1; }
done
awk -v registers=$registers -v shared=$shared '
  /Compiling entry function/ { split($0, q, "\047"); name = q[2]; arch = q[4] }
  /bytes stack frame/ { stack = $1; spill = $5 + $9 }
  /Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5) + 0
    smem = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
    seen[arch]++; kernels++
    if (used > most) most = used
    if (stack + spill > 0 || used > registers + 0 || smem > shared + 0) {
      printf "%s %s: %d registers, %d bytes of stack, %d of spills, %d shared\n", arch, name, used, stack, spill, smem
      bad++
    }
  }
  END {
    if (!kernels) { print "no kernel seen"; exit 1 }
    for (a in seen) list = list " " a
    printf "%d kernels for%s: at most %d registers; over a cap: %d (%d registers, %d bytes shared, no stack, no spills)\n",
      kernels, list, most, bad, registers, shared
    exit bad > 0
  }' "$out"
