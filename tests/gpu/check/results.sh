# The results: result.json after every section, the logs as one archive, and the limits of what may come back from a machine
# under $OUT: at most 8 files, each under 16 MiB, plain names. What is too long for that is cut in the middle, with a note in
# its place and in result.json; nothing else is left out.
files_most=8 parts_most=3
part_bytes=${PART_BYTES:-15728640} log_bytes=${LOG_BYTES:-8388608} # smaller in tests
notes=()
watcher=

open_results() {
  commit=$(cat COMMIT 2>/dev/null || git describe --always --dirty --abbrev=12 2>/dev/null | words)
  started=$(date -u +%FT%TZ)
  out=${OUT:-results/gpu}
  folder=$out/$(date -u +%Y-%m-%d-%H%M%S)-$(plain_name "$card")-$(plain_name "${commit:-unknown}")
  work=$(mktemp -d) && log=$work/logs && mkdir -p "$log" "$folder" || { echo "error: cannot write to $folder" >&2; return 1; }
  export work log
  trap 'rm -rf "$work"; [ -z "$watcher" ] || kill "$watcher" 2>/dev/null' EXIT
  watch_card
}
plain_name() { tr -cs 'A-Za-z0-9._\n' - <<<"$1" | sed 's/^-*//; s/-*$//'; }
note() { notes+=("$(words <<<"$*")"); echo "note: $*" >&2; }

lines_of() { grep '^{.*}$' "$log/$1.txt" 2>/dev/null | paste -sd,; } # a line that was cut off in the middle is no result
write_json() {
  local i
  {
    printf '{"schema": 3, "date": "%s", "card": "%s", "commit": "%s", "mode": "%s", "seconds": %d,\n "machine": %s,\n' \
      "$started" "$card" "${commit:-unknown}" "$mode" $((SECONDS - start)) "$machine"
    printf ' "ended": "%s", "notes": [' "$ended"
    for i in "${!notes[@]}"; do [ "$i" = 0 ] || printf ', '; printf '"%s"' "${notes[$i]}"; done
    printf '],\n "sections": {'
    for i in "${!names[@]}"; do
      [ "$i" = 0 ] || printf ', '
      printf '\n  "%s": {"result": "%s", "seconds": %d, "limit": %d, "why": "%s"}' "${names[$i]}" "${states[$i]}" \
        "${times[$i]}" "${limits[$i]}" "${whys[$i]}"
    done
    printf '}'
    for i in "${!names[@]}"; do [ -z "${lines[$i]}" ] || printf ',\n "%s": [%s]' "${names[$i]}" "${lines[$i]}"; done
    printf '}\n'
  } >"$folder/result.new" && mv "$folder/result.new" "$folder/result.json"
}

# Files of more than $1 bytes: their two ends, and how much was between them.
cut_logs() {
  local file size half=$(($1 / 2))
  while IFS= read -r file; do
    size=$(stat -c %s "$file")
    head -c $half "$file" >"$file.cut"
    printf '\n[gpu-check: %d bytes left out here]\n' $((size - 2 * half)) >>"$file.cut"
    tail -c $half "$file" >>"$file.cut"
    mv "$file.cut" "$file"
    note "of the log ${file##*/}, $size bytes, the middle was left out"
  done < <(find "$log" -type f -size +"$1"c)
}
pack_logs() {
  local most=$log_bytes
  cut_logs $((most + 100))
  tar -C "$work" -czf "$work/logs.tar.gz" logs
  while [ "$(stat -c %s "$work/logs.tar.gz")" -gt $((parts_most * part_bytes)) ]; do
    most=$((most / 2))
    cut_logs $((most + 100))
    tar -C "$work" -czf "$work/logs.tar.gz" logs
  done
  rm -f "$folder"/logs.tar.gz*
  if [ "$(stat -c %s "$work/logs.tar.gz")" -le "$part_bytes" ]; then
    mv "$work/logs.tar.gz" "$folder/"
  else
    split -b "$part_bytes" -d "$work/logs.tar.gz" "$folder/logs.tar.gz." && rm "$work/logs.tar.gz"
  fi
}

close_results() {
  [ -z "$watcher" ] || { kill "$watcher" 2>/dev/null; wait "$watcher" 2>/dev/null; watcher=; }
  pack_logs
  write_json
  if command -v python3 >/dev/null; then
    python3 results/gpu/table.py --short "$folder/result.json" >"$folder/table.txt" 2>&1 || failed=1
  else
    echo "no python3 here; elsewhere: results/gpu/table.py --short result.json" >"$folder/table.txt"
  fi
  say_results
  keep_to_limits || failed=1
}
say_results() {
  local state i list
  echo "$card, $((SECONDS - start)) s, written to $folder (result.json, table.txt, logs.tar.gz)"
  [ -z "$ended" ] || echo "ended early: $ended"
  for state in passed "needs a card" failed "out of time" "no time left" "not run"; do
    list=
    for i in "${!names[@]}"; do [ "${states[$i]}" = "$state" ] && list="$list ${names[$i]}"; done
    [ -z "$list" ] || echo "$state:$list"
  done
  printf '%s\n' "${states[@]}" | grep '^skipped' | sort -u | while read -r state; do
    list=
    for i in "${!names[@]}"; do [ "${states[$i]}" = "$state" ] && list="$list ${names[$i]}"; done
    echo "$state:$list"
  done
  cat "$folder/table.txt"
}

# Too many files beside others in $OUT: the folder becomes one archive.
keep_to_limits() {
  [ -n "${OUT:-}" ] || return 0
  if [ "$(find "$OUT" -type f | wc -l)" -gt $files_most ]; then
    tar -C "$out" -czf "$folder.tar.gz" "${folder##*/}" && rm -r "$folder"
    echo "more than $files_most files in $OUT: these results are $folder.tar.gz"
  fi
  local bad
  bad=$(find "$OUT" -type f -size +16777215c; find "$OUT" -mindepth 1 -name '*[!A-Za-z0-9._-]*'; find "$OUT" -mindepth 4)
  [ "$(find "$OUT" -type f | wc -l)" -le $files_most ] || bad="$bad more than $files_most files"
  [ -z "$bad" ] || { echo "error: these would not come back from $OUT:" $bad >&2; return 1; }
}
