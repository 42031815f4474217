#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests: of the ordinary build, the laws over some of their settings; or with `all`
# the whole suite: all settings, wider trees, other architectures (GPU kernels on emulated threads, 64-bit Arm under qemu), the
# address and undefined-behaviour sanitizers, the hard build (smallest sizes, every invariant checked) and the thread sanitizer. The
# long law tests on the bundled pair run in the ordinary build alone. Run it from anywhere.
# usage: ./test.sh [all | dev asan hard tsan wide cuda ...]      (presets: each whole; cuda needs the toolkit)
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")"

.ci/install-packages gcc g++ libc6-dev cmake ninja-build pkg-config libjansson-dev libmd-dev libdivsufsort-dev libmicrohttpd-dev libcriterion-dev \
  python3-numpy python3-cffi libopenblas0-pthread libcurl4-openssl-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
.ci/install-packages libopenmpi-dev openmpi-bin || echo "ranks that are processes are not tested: no Open MPI"

whole=ON
[ $# -gt 0 ] || { whole=OFF; set -- dev; }
[ "$*" != all ] || set -- tsan asan hard dev
mkdir -p build
failed=
for preset in "$@"; do
  log=build/test-$preset.log
  echo "== $preset: building (log: $log)"
  if ! { cmake --preset "$preset" -DWG_WHOLE=$whole && cmake --build --preset "$preset"; } >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    echo "error: the $preset build failed; the whole log is $log. If build/$preset is from another compiler or place, remove it and run this again." >&2
    exit 1
  fi
  ctest --preset "$preset" -j 2 || failed="$failed $preset"
done
if [ -n "$failed" ]; then
  echo "error: tests failed in:$failed. Run one again with: ctest --preset PRESET -R NAME --output-on-failure" >&2
  exit 1
fi
