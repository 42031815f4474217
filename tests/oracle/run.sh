#!/usr/bin/env bash
# The forward pass against an independent one in float64: run.sh WAGER MODELS. Chains and a tree on models of odd shapes and all
# weight types. Exits 77 (skipped) when there is no python3 with numpy.
set -u
wager=$1 models=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=/usr/bin/python3 # the one that the distribution's numpy belongs to
"$python" -c 'import numpy' 2>/dev/null || python=python3
"$python" -c 'import numpy' 2>/dev/null || { echo "SKIPPED: needs python3 with numpy (python3-numpy)"; exit 77; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/wager oracle.XXXXXX")
trap 'rm -rf "$dir"' EXIT
"$models" "$dir" >"$dir/list" || exit 1
checks=0
while IFS= read -r line; do
  model=${line% *} tolerance=${line##* }
  for tree in "" "--parents=-1,0,0,1,1,2,3,6"; do
    "$wager" logits "$model" --tokens 3,40,7,299,11,12,5,8 $tree --out "$dir/rows.f32" >/dev/null &&
      "$python" "$here/forward_oracle.py" "$model" --tokens 3,40,7,299,11,12,5,8 $tree --compare "$dir/rows.f32" --tolerance "$tolerance" || exit 1
    checks=$((checks + 1))
  done
done <"$dir/list"
echo "oracle: $checks comparisons, all within tolerance"
[ "$checks" -gt 0 ]
