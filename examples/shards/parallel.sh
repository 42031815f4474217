#!/usr/bin/env bash
# Runs one experiment in shards without a scheduler: GNU parallel runs one job per shard, JOBS (2) at a time, then the script
# merges them. A second start resumes unfinished shards.
# usage: examples/shards/parallel.sh CONFIG FOLDER [SHARDS]        FOLDER/merged is the result
set -eu
config=$1 folder=$2 shards=${3:-4} wager=${WAGER:-build/release/wager}
mkdir -p "$folder"
parallel --will-cite -j "${JOBS:-2}" "$wager" run "$config" --resume --shard "{}/$shards" --out "$folder/{}" \
  ::: $(seq "$shards") >"$folder/log" 2>&1 || { tail -n 5 "$folder/log" >&2; exit 1; }
exec "$wager" merge "$folder/merged" $(seq -f "$folder/%g" "$shards")
