#!/usr/bin/env bash
# Compiles every kernel for every generation, and as PTX for those to come, and fails when one spills, keeps a stack frame, or
# takes more registers or static shared memory than its cap; or when, where kernels overlap (9.0 and newer), one reads or writes
# global memory before it has waited for those before it (wg_depend of cuda.h). Kernels that read their weights early are named
# below. All of them are then linked into a program that opens the first device, or says why there is none.
# usage: kernels/cuda/resources.sh [FILE.cu ...]      (needs nvcc; all files when left out; exit 77 without nvcc)
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo "no nvcc here: resources not checked"; exit 77; }
archs="80 86 89 90a 100"
registers=168    # three blocks of 128 threads fit the 64 K registers of an SM
shared=49152     # static: what every generation gives without asking
# read before they wait: weights, to which the emulation holds them
early="fused_stripes fused_fragments fused_codes matmul_stripes matmul_fragments matmul_codes"
ordinary="go_on" # kernels that begin when those before have ended: nodes that the runtime adds to a graph
named=$#
[ $# -gt 0 ] || set -- kernels/cuda/*.cu
flags=(-gencode arch=compute_100,code=compute_100)
for a in $archs; do flags+=(-gencode "arch=compute_$a,code=sm_$a"); done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for file in "$@"; do
  "$nvcc" -std=c++17 -O3 --fmad=false --threads 2 -I. "${flags[@]}" -Xptxas -v --keep --keep-dir "$tmp" \
    -c "$file" -o "$tmp/$(basename "$file" .cu).o" >>"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
done
failed=0
if [ "$named" -eq 0 ]; then
  cat >"$tmp/open.c" <<'C'
#include <stdio.h>
#include "kernels/cuda/gpu.h"
int main(void)
{
    wg_gpu g = { .ordinal = 0 };
    char why[WG_GPU_WHY] = "";
    const int none = wg_gpu_cuda()->open(&g, 0, why);
    printf("linked; %s\n", none ? why : g.card);
    if (!none) wg_gpu_cuda()->close(&g);
    return none && !why[0];
}
C
  for file in "$tmp/open.c" kernels/quant_blocks.c kernels/cuda_pack.c kernels/types.c kernels/ref/*.c; do
    gcc -std=c11 -I. -c "$file" -o "$tmp/host_$(basename "$file" .c).o" || exit 1
  done
  { "$nvcc" "$tmp"/*.o -lm -o "$tmp/open" && "$tmp/open"; } ||
    { echo "the kernels do not link, or do not say why there is no device" >&2; failed=1; }
fi
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
  }' "$tmp/out" || failed=1
awk -v early="$early" -v ordinary="$ordinary" '
  function end() { if (name != "" && !waited) { print name ": never waits for the kernels before it"; bad++ } name = "" }
  /^\.(visible |weak )?\.?entry/ || /^\.entry/ {
    end()
    name = $0; sub(/.*entry /, "", name); sub(/\(.*/, "", name)
    if (index(name, ordinary)) { name = ""; next }
    kernels++; waited = told = reads = 0
    n = split(early, e, " ")
    for (i = 1; i <= n; i++) if (index(name, e[i])) reads = 1
  }
  /^}/ { end() }
  name == "" { next }
  /griddepcontrol\.wait/ { waited = 1 }
  waited || told { next }
  /^[ \t]*(@!?%p[0-9]+ )?(ld|st|ldu|atom|red|cp|call|prefetch)[.a-z]*/ {
    if ($0 ~ /(ld|st)\.(volatile\.)?(param|shared|const|local)/) next
    if (reads && $0 ~ /[ \t](ld\.global|cp\.async|prefetch)/) next
    printf "%s: before it waits for the kernels before it:%s\n", name, $0
    told = 1; bad++
  }
  END { printf "%d kernels that overlap: %d touch memory too early\n", kernels, bad; exit bad > 0 || !kernels }
' "$tmp"/*90a*.ptx "$tmp"/*100*.ptx || failed=1
exit $failed
