#!/usr/bin/env bash
# From a fresh machine to the first result: installs what is missing, builds, and asks the bundled pair of models what
# speculation buys. Run it from anywhere, as often as you like.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")"

.ci/install-packages gcc libc6-dev cmake ninja-build pkg-config libjansson-dev libmd-dev libdivsufsort-dev libmicrohttpd-dev libcurl4-openssl-dev gnuplot-nox

log=build/quickstart.log
mkdir -p build
echo "building (log: $log)"
if ! { cmake --preset release -DWG_TESTS=OFF && cmake --build --preset release; } >"$log" 2>&1; then
  tail -n 25 "$log" >&2
  echo "error: the build failed; the whole log is $log. If build/release is from another compiler or place, remove it and run this again." >&2
  exit 1
fi
echo "running configs/experiments/quickstart.json"
build/release/wager run configs/experiments/quickstart.json "$@"
echo
echo "next, a text of which accepted draft tokens are green:"
echo "  build/release/wager generate -m models/story-target-q8_0.gguf --draft model:model=models/story-draft-q8_0.gguf,length=3 -p 'Once upon a time' -n 120"
