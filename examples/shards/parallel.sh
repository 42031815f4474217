#!/usr/bin/env bash
# The same without a scheduler: GNU parallel runs the shards, a job each, two at a time, and merges them. Started again, it
# goes on.
# usage: examples/shards/parallel.sh CONFIG FOLDER [SHARDS]        FOLDER/merged is the result
set -eu
config=$1 folder=$2 shards=${3:-4} wager=${WAGER:-build/release/wager}
mkdir -p "$folder"
parallel --will-cite -j "${JOBS:-2}" "$wager" run "$config" --resume --shard "{}/$shards" --out "$folder/{}" \
  ::: $(seq "$shards") >"$folder/log" 2>&1 || { tail -n 5 "$folder/log" >&2; exit 1; }
exec "$wager" merge "$folder/merged" $(seq -f "$folder/%g" "$shards")
