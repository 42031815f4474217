#!/usr/bin/env bash
# Compiles every kernel for generations of cards, links all of them into a program that opens the first device, or says why
# there is none, and holds what the compiler made of them to caps (resources.py says which).
# usage: tests/gpu/resources.sh [--all] [--into DIR] [FILE.cu ...]
#   --all   every generation that the project is built for (80 86 89 90a 100). Without it 80, 90a and 100: 86 and 89 run the
#           text of 80, and their machine code differs by little. ctest takes the short form, a build with WG_CUDA
#           (./test.sh cuda) all.
#   DIR     keeps what was made, for: tests/gpu/resources.py budgets DIR; and in DIR/objects what is linked, for
#           tests/gpu/pack.sh. What is there of the same text is not compiled again (made.sh).
# Needs nvcc (exit 77 without) and python3; all files when left out. A file and generation is a job, and as many run as there
# are processors; the generation that is linked (90a, whose budgets are looked at) has its host's side compiled too.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
archs="90a 80 100" into=
while true; do
  case ${1-} in
    --all) archs="90a 80 86 89 100"; shift ;;
    --into) into=$2; shift 2 ;;
    *) break ;;
  esac
done
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo "no nvcc here: resources not checked"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tmp=${into:-$work/made}
mkdir -p "$tmp/objects" || exit 1
named=$#
[ $# -gt 0 ] || set -- kernels/cuda/*.cu

. tests/gpu/made.sh

# FILE.cu GENERATION: leaves NAME.sm_GENERATION.{cubin,ptx,ptxas} in $tmp, the last the compiler's words, and an object where it is
# linked.
compile() {
  local name at out words
  name=$(basename "$1" .cu)
  at=$work/$2/$name out=$tmp/$name.sm_$2.cubin
  words=(-std=c++17 -O3 --fmad=false -I. -gencode "arch=compute_$2,code=sm_$2" -Xptxas -v)
  if [ "$2" = 90a ]; then words+=(-c); else words+=(-cubin); fi
  is_made "$out" "${words[@]}" && return
  rm -f "$out"*
  mkdir -p "$at"
  "$nvcc" "${words[@]}" --keep --keep-dir "$at" -MD -MF "$at/d" "$1" -o "$at/out" >"$at.ptxas" 2>&1 ||
    { cat "$at.ptxas" >&2; return 255; } # no more jobs
  [ "$2" = 90a ] && mv "$at/out" "$tmp/objects/$name.o" && mv "$at/$name"*.cubin "$at/out"
  mv "$at/out" "$out" && mv "$at/d" "$out.d" && mv "$at/$name.ptx" "$tmp/$name.sm_$2.ptx" &&
    mv "$at.ptxas" "$tmp/$name.sm_$2.ptxas" && rm -rf "${at:?}" && note_made "$out" "${words[@]}"
}
export -f compile made_digest is_made note_made
export nvcc work tmp
# The longest first, so that all processors end together.
by_size=$(ls -S "$@")
for a in $archs; do for file in $by_size; do echo "$file $a"; done; done |
  xargs -P "$(nproc)" -L 1 bash -c 'compile "$0" "$1"' || exit 1
# What is there of other files or generations is not looked at.
for made in "$tmp"/*.cubin; do
  name=$(basename "$made" .cubin)
  [[ $by_size == *"/${name%.sm_*}.cu"* ]] || rm -f "$tmp/$name".* "$tmp/objects/${name%.sm_*}.o"
  [[ " $archs " == *" ${name##*.sm_} "* ]] || rm -f "$tmp/$name".*
done
cat "$tmp"/*.sm_*.ptxas >"$tmp/ptxas"

failed=0
if [ "$named" -eq 0 ]; then
  cat >"$work/open.c" <<'C'
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
  for file in "$work/open.c" kernels/{quant_blocks,codebooks,codebook_table,cuda_pack,types,quantize_k}.c kernels/ref/*.c; do
    gcc -std=c11 -I. -c "$file" -o "$work/host_$(basename "$file" .c).o" || exit 1
  done
  { "$nvcc" "$tmp/objects"/*.o "$work"/*.o -lm -o "$work/open" && "$work/open"; } ||
    { echo "the kernels do not link, or do not say why there is no device" >&2; failed=1; }
fi
python3 -B tests/gpu/resources.py caps "$tmp" || failed=1
exit $failed
