#!/usr/bin/env bash
# Fails when a kernel spills, keeps a stack frame, or takes more registers or shared memory than its cap, on any architecture.
# usage: kernels/cuda/resources.sh LIBRARY      (a library or object with device code; needs cuobjdump)
set -u -o pipefail
registers=168    # with 128 threads a block, two blocks fit an SM of 64 K registers and more
shared=49152     # static: what every architecture gives without asking
report=$(cuobjdump --dump-resource-usage "$1" 2>/dev/null | c++filt) || { echo "cuobjdump cannot read $1" >&2; exit 1; }
awk -v registers=$registers -v shared=$shared '
  /^Fatbin (elf|ptx) code/ || /^=+/ { next }
  /arch = sm_/ { arch = $3 }
  /Function / { name = $0; sub(/^ *Function /, "", name); sub(/:$/, "", name) }
  /REG:/ {
    split("", v)
    n = split($0, part, " ")
    for (i = 1; i <= n; i++) { split(part[i], kv, ":"); v[kv[1]] = kv[2] }
    seen++
    arches[arch] = 1
    if (v["REG"] > most) most = v["REG"]
    if (v["STACK"] > 0 || v["LOCAL"] > 0 || v["REG"] > registers || v["SHARED"] > shared) {
      printf "%s %s: %s registers, stack %s, local %s, shared %s\n", arch, name, v["REG"], v["STACK"], v["LOCAL"], v["SHARED"]
      bad++
    }
  }
  END {
    for (a in arches) list = list " " a
    if (!seen) { print "no kernel found"; exit 1 }
    printf "%d kernels on%s: at most %d registers; %d over the caps (%d registers, no stack, no local memory, %d bytes shared)\n", \
      seen, list, most, bad, registers, shared
    exit bad > 0
  }' <<<"$report"
