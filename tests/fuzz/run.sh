#!/usr/bin/env bash
# Builds the fuzz targets (preset fuzz: clang) and runs all of them, or those named, in turn, each for SECONDS, beginning with the
# committed corpora. New inputs go to build/fuzz/corpus/TARGET; a finding stays in build/fuzz/found/TARGET-*, and its name is printed.
# usage: tests/fuzz/run.sh SECONDS [gguf json trace ...]       exit status 1 when a target found something
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage="usage: tests/fuzz/run.sh SECONDS [TARGET ...]"
case ${1:-} in '' | *[!0-9]*) echo "error: SECONDS is '${1:-}', expected a number of seconds for each target. $usage" >&2; exit 2 ;; esac
seconds=$1
shift
[ $# -gt 0 ] || set -- $(cd tests/fuzz && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')
for name in "$@"; do
  [ -f "tests/fuzz/fuzz_$name.c" ] || { echo "error: no fuzz target '$name': there is no tests/fuzz/fuzz_$name.c" >&2; exit 2; }
done

.ci/install-packages clang libc6-dev cmake ninja-build pkg-config libjansson-dev libmd-dev libdivsufsort-dev libcriterion-dev
mkdir -p build/fuzz/found
log=build/fuzz/build.log
{ cmake --preset fuzz && cmake --build --preset fuzz; } >"$log" 2>&1 || { tail -n 25 "$log" >&2; exit 1; }

failed=
for name in "$@"; do
  grown=build/fuzz/corpus/$name log=build/fuzz/found/$name.log
  mkdir -p "$grown"
  status=ok
  "build/fuzz/tests/fuzz_$name" -max_total_time="$seconds" -artifact_prefix="build/fuzz/found/$name-" "$grown" \
    $(ls -d "tests/fuzz/corpus/$name" 2>/dev/null) >"$log" 2>&1 || { status=FOUND failed="$failed $name"; }
  runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log")
  printf '%-14s %-6s %12s runs  %6s inputs kept\n' "$name" "$status" "${runs:-?}" "$(ls "$grown" | wc -l)"
  [ "$status" = ok ] || { sed -n '/ERROR\|SUMMARY\|Test unit written/p' "$log"; echo "  $log"; }
done
[ -z "$failed" ] || { echo "error: found something in:$failed" >&2; exit 1; }
