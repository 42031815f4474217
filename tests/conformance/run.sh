#!/usr/bin/env bash
# The program against what others compute or read: run.sh transformers|export|draft|head|traces WAGER. export: folders that `wager
# convert` writes (check_export.py). draft: an exported student drafts as in transformers (check_draft.py). head: drafts of one that
# was trained have the rows that speculators gives (check_head.py). transformers: logits, greedy texts and tau against the results in
# reference.json. traces: a reader written from docs/traces.md draws every decision of three cells again, from whole and from cut
# rows, and must refuse a wrong seed and a changed byte. Exits 77 (skipped) when there is no python3, or for traces no numpy.
# WG_MODELS_PYTHON: a Python with torch and transformers, for export, draft and head.
set -u
what=$1 wager=$(realpath "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.." || exit 1
python=/usr/bin/python3 # the one that the distribution's numpy belongs to
"$python" -c 'import numpy' 2>/dev/null || python=python3
dir=$(mktemp -d "${TMPDIR:-/tmp}/wager conformance.XXXXXX")
trap 'rm -rf "$dir"' EXIT
if [ "$what" = transformers ]; then
  command -v "$python" >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
  "$python" "$here/check.py" "$wager" "$dir"
  exit
fi
if [ "$what" = export ] || [ "$what" = draft ] || [ "$what" = head ]; then
  python=${WG_MODELS_PYTHON:-$python}
  command -v "$python" >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
  "$python" "$here/check_$what.py" "$wager" $([ "$what" = draft ] && echo --quick)
  exit
fi
"$python" -c 'import numpy' 2>/dev/null || { echo "SKIPPED: needs python3 with numpy (python3-numpy)"; exit 77; }
"$wager" run "$here/traced.json" --out "$dir/run" >/dev/null 2>"$dir/said" || { cat "$dir/said"; exit 1; }
trace=$dir/run/trace.wgt
"$python" "$here/read_trace.py" "$trace" || exit 1
"$wager" run "$here/traced.json" --out "$dir/cut" --set trace_rows=top >/dev/null 2>"$dir/said" || { cat "$dir/said"; exit 1; }
said=$("$python" "$here/read_trace.py" "$dir/cut/trace.wgt") || { echo "$said"; exit 1; }
echo "$said"
case $said in *" 0 cut"*) echo "FAILED: no row was cut" && exit 1 ;; esac
fails() { # WHAT MESSAGE ARGS: the reader must refuse
  local out
  if out=$("$python" "$here/read_trace.py" "${@:3}" 2>&1); then
    echo "FAILED: $1 was not found"
    exit 1
  fi
  case $out in *"$2"*) ;; *) echo "FAILED: $1: $out" && exit 1 ;; esac
}
fails "another seed" "the draw says" "$trace" --seed 1
printf '\001' | dd of="$trace" bs=1 seek=$(($(stat -c %s "$trace") / 2)) conv=notrunc 2>/dev/null
fails "a changed byte" "has another sum" "$trace"
