#!/usr/bin/env bash
# Renders the report of a small run at 1280 and at 400 pixels: it must draw, and the page itself must not scroll sideways.
# usage: tests/program/page.sh WAGER. Exit 77 where there is no chromium.
set -u
program=$(realpath "$1")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "skipped: no chromium"; exit 77; }
base=$(mktemp -d "${TMPDIR:-/tmp}/wager-page.XXXXXX")
trap 'rm -rf "$base"' EXIT
cd "$base" || exit 1
"$program" synth --like tiny --type f32 --seed 1 --out target.gguf >/dev/null || exit 1
printf '{"id": "a-rather-long-name-of-a-prompt-without-a-break", "prompt": "The cat sat"}\n{"prompt": "A dog ran"}\n' >prompts.jsonl
cat >config.json <<'END'
{"name": "page", "question": "Does it fit?", "target": {"model": "target.gguf", "threads": 1}, "draft": {"kind": "ngram"},
 "prompts": {"file": "prompts.jsonl"}, "max_tokens": 24, "trace": "steps", "sampling": {"temperature": 0},
 "sweep": {"draft.k": [2, 4], "verify.rule": ["match", "rejection"]}}
END
"$program" run config.json --out run >/dev/null 2>&1 && "$program" report run >/dev/null || { echo "FAIL: no report"; exit 1; }

browse() { timeout 100 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$base/profile" "$@" 2>/dev/null; }
failed=0
for width in 1280 400; do
  # The page in a frame of that width, which tells how wide it wants to be.
  sed 's|</body>|<script>addEventListener("load",()=>parent.postMessage(document.documentElement.scrollWidth,"*"))</script></body>|' \
    run/report.html >probe.html
  cat >frame.html <<END
<!doctype html><body><script>addEventListener("message",e=>document.body.append("wants "+e.data+" end"))</script>
<iframe src="probe.html" style="border:0;width:${width}px;height:900px"></iframe></body>
END
  wants=$(browse --allow-file-access-from-files --virtual-time-budget=5000 --dump-dom "file://$base/frame.html" |
    sed -n 's/.*wants \([0-9]*\) end.*/\1/p')
  browse --hide-scrollbars --window-size="$width,2000" --screenshot="$base/page-$width.png" "file://$base/run/report.html" >/dev/null
  size=$(wc -c <"page-$width.png" 2>/dev/null || echo 0)
  if [ "${wants:-none}" = none ]; then echo "FAIL $width: the page did not load"; failed=1
  elif [ "$wants" -gt "$width" ]; then echo "FAIL $width: the page is $wants pixels wide"; failed=1
  elif [ "$size" -lt 10000 ]; then echo "FAIL $width: the screenshot has $size bytes"; failed=1
  else echo "ok $width: $wants pixels wide, screenshot of $size bytes"; fi
done
exit "$failed"
