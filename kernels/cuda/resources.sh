#!/usr/bin/env bash
# Compiles every kernel for every generation of cards, and as PTX for those to come, links all of them into a program that opens
# the first device, or says why there is none, and holds what the compiler made of them to caps (resources.py says which).
# usage: kernels/cuda/resources.sh [--into DIR] [FILE.cu ...]    needs nvcc (exit 77 without) and python3; all files when left out
# DIR keeps what was made, for: kernels/cuda/resources.py budgets DIR
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
archs="80 86 89 90a 100"
if [ "${1-}" = --into ]; then
  tmp=$2
  shift 2
  rm -rf "$tmp" && mkdir -p "$tmp" || exit 1
  trap 'find "$tmp" -type f ! -name ptxas ! -name "*.ptx" ! -name "*.cubin" -delete' EXIT
else
  tmp=$(mktemp -d) || exit 1
  trap 'rm -rf "$tmp"' EXIT
fi
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo "no nvcc here: resources not checked"; exit 77; }
named=$#
[ $# -gt 0 ] || set -- kernels/cuda/*.cu
flags=(-gencode arch=compute_100,code=compute_100)
for a in $archs; do flags+=(-gencode "arch=compute_$a,code=sm_$a"); done
for file in "$@"; do
  "$nvcc" -std=c++17 -O3 --fmad=false --threads 2 -I. "${flags[@]}" -Xptxas -v --keep --keep-dir "$tmp" \
    -c "$file" -o "$tmp/$(basename "$file" .cu).o" >>"$tmp/ptxas" 2>&1 || { cat "$tmp/ptxas" >&2; exit 1; }
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
python3 -B kernels/cuda/resources.py caps "$tmp" || failed=1
exit $failed
