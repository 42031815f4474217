#!/usr/bin/env bash
# Measures the tables of docs/performance.md: behind "<!-- v TYPE CACHE THREADS... -->" up to "<!-- end -->" comes a pass of n rows
# at three contexts with so many threads, on the 1.1 B shape in that type. The rest of the file is left alone.
# usage: docs/performance.sh PROGRAM FOLDER     FOLDER takes the models; RUN="..." is put before every measurement
set -u
program=$(realpath "$1") folder=$2
file=$(dirname "${BASH_SOURCE[0]}")/performance.md
made=$(mktemp)
trap 'rm -f "$made"' EXIT

# One line for each context: the milliseconds of one row, its share of the stream, v of the other numbers of rows.
measure() {
  local model=$folder/tinyllama-1.1b-$1.gguf
  [ -e "$model" ] || "$program" synth --like tinyllama-1.1b --type "$1" --context 8192 --out "$model" >/dev/null || return 1
  echo '| threads | context | 1 row | of the stream | v(4) | v(8) | v(16) | v(32) | v(64) | 64 rows, of products from cache |'
  echo '|---|---|---|---|---|---|---|---|---|---|'
  for threads in "${@:3}"; do
    ${RUN:-} "$program" bench forward -m "$model" --rows 1,4,8,16,32,64 --context 0,1024,4096 --kv-type "$2" --repeats 5 \
      --threads $threads --json || return 1
  done | awk -F'[:,{}]' '
    { for (i = 2; i < NF; i += 2) { gsub(/"/, "", $i); x[$i] = $(i + 1) } }
    x["rows"] == 1 { printf "| %d | %d | %.1f ms | %.0f %% |", x["threads"], x["context"], x["ms"], 100 * x["gb_s"] / x["stream_gb_s"] }
    x["rows"] != 1 { printf " %.2f |", x["v"] }
    x["rows"] == 64 { printf " %.0f %% |\n", 100 * x["gmac_s"] / x["cache_gmac_s"] }'
}

skip=0
while IFS= read -r line; do
  case $line in
  "<!-- v "*)
    skip=1
    read -ra words <<<"$line"
    printf '%s\n' "$line"
    measure "${words[@]:2:${#words[@]}-3}" || exit 1
    ;;
  "<!-- end -->") skip=0 ;;
  esac
  [ $skip = 1 ] || printf '%s\n' "$line"
done <"$file" >"$made"
cat "$made" >"$file"
