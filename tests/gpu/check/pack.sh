#!/usr/bin/env bash
# One archive of what a machine with a card needs for gpu-check.sh and may not have: the programs (the CUDA runtime and the C++
# library linked into them), libraries, models, scripts, the commit. Then it is checked (check_pack.sh).
# usage: gpu-check.sh --pack [FILE [SUITE [KIND]]]   FILE: build/wager-gpu-check.tar.gz. SUITE: a gpu_suite that was built
#                      elsewhere; when left out it is built for sm_90a (ARCHS: for others) in build/pack. KIND: of check_pack.sh
# There: tar xzf FILE && cd wager-gpu-check && ./gpu-check.sh. Exit status 77 without nvcc.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
build=build/pack
file=${1:-build/wager-gpu-check.tar.gz} suite=${2:-}
PATH=$PATH:/usr/local/cuda/bin
name=wager-gpu-check

if [ -z "$suite" ]; then
  command -v nvcc >/dev/null || { echo "SKIPPED: no nvcc here to build the programs with" >&2; exit 77; }
  # one by one: what fails in a list of && does not end a script, and an old program would be packed
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWG_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=${ARCHS:-90a-real}" >&2
  cmake --build "$build" --target gpu_suite >&2
  suite=$build/tests/gpu/gpu_suite
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
at=$tmp/$name
mkdir -p "$at"/{bin,lib,models,configs/prompts,results/gpu,tests/gpu}
strip -o "$at/bin/gpu_suite" "$suite"
for library in $(ldd "$suite" | awk '/=> \// { print $3 }'); do # all but the C library's own
  case ${library##*/} in
  libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;;
  *) strip -o "$at/lib/${library##*/}" "$(readlink -f "$library")" ;;
  esac
done
cp models/story-target-q8_0.gguf models/story-draft-q8_0.gguf "$at/models/"
cp configs/prompts/quickstart.jsonl "$at/configs/prompts/"
cp results/gpu/table.py "$at/results/gpu/"
cp tests/gpu/peer_transformers.py "$at/tests/gpu/"
cp -r tests/gpu/check "$at/tests/gpu/"
cp gpu-check.sh LICENSE "$at/"
git describe --always --dirty --abbrev=12 >"$at/COMMIT" 2>/dev/null || echo unknown >"$at/COMMIT"
mkdir -p "$(dirname "$file")"
tar -C "$tmp" --sort=name --owner=0 --group=0 --numeric-owner -cf - $name | gzip -9 >"$file.new"
mv "$file.new" "$file"
tests/gpu/check/check_pack.sh "$file" "${3:-card}"
