#!/usr/bin/env bash
# Runs kernelcheck's quick sweep and compares the digest of each op's bits with tests/golden/kernels.txt: one file for every
# machine, as the same seed gives the same inputs and the specification the same bits. The same run compares the vector
# variants of the machine with those bits.
# usage: tests/kernels/digest.sh [EMULATOR...] KERNELCHECK [--level NAME]      (WG_UPDATE=1 writes the file)
set -u -o pipefail
golden=$(dirname "${BASH_SOURCE[0]}")/../golden/kernels.txt
got=$("$@" --quick --digest --seed 1) || { printf '%s\n' "$got" "error: $* failed" >&2; exit 1; }
if [ -n "${WG_UPDATE:-}" ]; then
  printf '%s\n' "$got" >"$golden"
fi
diff -u "$golden" <(printf '%s\n' "$got") || {
  echo "error: these bits differ from other machines'. If ops.h has changed on purpose: WG_UPDATE=1 $0 $*" >&2
  exit 1
}
echo "same bits: $*"
