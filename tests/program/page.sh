#!/usr/bin/env bash
# The pages of a small run, of a comparison and of a folder of runs, in a real browser: at 1280 and at 400 pixels, as printed,
# and on paper. They must render, write nothing to the console, not scroll sideways, cut nothing, have accessible markup, and
# the index must sort. usage: tests/program/page.sh WAGER. Exit 77 where there is no chromium.
set -u
program=$(realpath "$1")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "skipped: no chromium"; exit 77; }
base=$(mktemp -d "${TMPDIR:-/tmp}/wager-page.XXXXXX")
trap 'rm -rf "$base"' EXIT
cd "$base" || exit 1
failed=0
fail() { echo "FAIL $*"; failed=1; }
browse() { timeout 100 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$base/profile" --enable-logging=stderr "$@" 2>>log; }

# ---- the pages ------------------------------------------------------------------------------------------------------

"$program" synth --like tiny --type f32 --seed 1 --out target.gguf >/dev/null || exit 1
for i in 1 2 3; do
  printf '{"id": "a-rather-long-name-of-a-prompt-without-a-break-%d", "category": "cats & dogs", "prompt": "The cat sat %d"}\n' $i $i
  printf '{"category": "a-category-whose-name-is-far-too-long-for-a-margin", "prompt": "A dog ran %d"}\n' $i
done >prompts.jsonl
cat >config.json <<'END'
{"name": "page", "question": "Does it fit?", "target": {"model": "target.gguf", "threads": 1},
 "draft": {"kind": "model", "model": "target.gguf", "length": 4}, "prompts": {"file": "prompts.jsonl"}, "max_tokens": 12, "trace": "steps",
 "sampling": {"temperature": 0}, "sweep": {"draft.length": [2, 4], "verify.rule": ["match", "rejection"]}}
END
mkdir runs
for seed in 1 2 3; do
  "$program" run config.json --out runs/run-$seed --set seed=$seed >/dev/null 2>&1 && "$program" report runs/run-$seed >/dev/null ||
    { echo "FAIL: no report"; exit 1; }
done
"$program" compare runs/run-1 runs/run-2 --html runs/compare.html >/dev/null || { echo "FAIL: no comparison"; exit 1; }
for run in 1=2.5 2=9.5 3=0.5; do # what was measured under load is in any order; sorting is to move something
  sed -i 's/"speedup": [0-9.]*/"speedup": '"${run#*=}"'/g' runs/run-"${run%=*}"/summary.json
done
"$program" report runs >/dev/null || { echo "FAIL: no index"; exit 1; }

# ---- what a page says of itself, in a frame of a given width ----------------------------------------------------------

cat >probe.js <<'END'
const name = location.hash.slice(1), all = q => [...document.querySelectorAll(q)], bad = []
const need = (ok, what) => { if (!ok && bad.length < 5) bad.push(what) }
addEventListener('error', e => bad.push('error ' + e.message))
addEventListener('load', () => {
  const width = document.documentElement.clientWidth, at = e => e.outerHTML.slice(0, 60).replace(/\s+/g, ' ')
  need(document.documentElement.scrollWidth <= width, 'the page is ' + document.documentElement.scrollWidth + ' pixels wide')
  need(document.documentElement.lang === 'en', 'no language')
  need(document.querySelectorAll('h1').length === 1, 'not one h1')
  for (const t of all('table')) {
    need(t.caption && t.caption.textContent, 'a table without caption')
    need([...t.querySelectorAll('th')].every(h => h.scope), 'a head without scope')
    need([...t.tBodies[0].rows].every(r => r.cells[0].tagName === 'TH' || r.previousElementSibling), 'a row without head')
    const box = t.closest('.wide')
    need(box.tabIndex === 0 && box.getAttribute('aria-label'), 'a table that the keyboard cannot scroll')
    if (name.endsWith('print')) need(t.scrollWidth <= box.clientWidth + 1, 'cut on paper: ' + t.caption.textContent.slice(0, 40))
  }
  for (const s of all('svg')) {
    const words = s.getAttribute('aria-labelledby').split(' ').map(i => document.getElementById(i))
    need(s.getAttribute('role') === 'group' && words.length === 2 && words.every(w => w && w.textContent), 'a drawing without words')
    if (!s.checkVisibility()) continue
    walk(s)
    const edge = s.getBoundingClientRect()
    need(edge.right <= width + 1, 'a drawing wider than the page')
    for (const t of s.querySelectorAll('text')) {
      const r = t.getBoundingClientRect()
      need(r.left >= edge.left - 1 && r.right <= edge.right + 1 && r.bottom <= edge.bottom + 1, 'cut: ' + t.textContent)
      need(r.height >= 8 || name.endsWith('print'), 'too small to read: ' + t.textContent)
    }
  }
  for (const a of all('a[href^="#"]')) need(document.getElementById(a.hash.slice(1)), 'a link to nowhere: ' + at(a))
  need(new Set(all('[id]').map(e => e.id)).size === all('[id]').length, 'an id twice')
  if (name.startsWith('index')) sorts()
  parent.postMessage(name + ' ' + all('svg').filter(s => s.checkVisibility()).length + ' drawings ' + (bad.join('; ') || 'well'), '*')
})
const walk = drawing => { // from point to point by keyboard; each says what it is
  const points = [...drawing.querySelectorAll('.pt')], tip = drawing.parentNode.querySelector('.tip')
  const says = p => p.querySelector('title').textContent, press = (p, key) => p.dispatchEvent(new KeyboardEvent('keydown', { key }))
  need(points.length > 0 && points.every(p => /: .*[0-9]/.test(says(p))), 'a point that says nothing')
  need(points.filter(p => p.tabIndex === 0).length === 1, 'not one stop of the tabulator')
  const hint = tip.textContent
  points[0].focus()
  need(document.activeElement === points[0] && tip.textContent === says(points[0]), 'the first point does not speak')
  press(points[0], 'ArrowLeft')
  need(document.activeElement === points[0], 'before the first point')
  if (points.length > 1) press(points[0], 'ArrowRight')
  if (points.length > 1) need(document.activeElement === points[1] && tip.textContent === says(points[1]), 'the second point does not speak')
  document.activeElement.blur()
  need(tip.textContent === hint, 'it goes on speaking')
}
const sorts = () => {
  const column = i => all('tbody tr').map(r => r.cells[i].textContent), first = () => all('tbody th')[0].textContent
  const button = text => all('th button').find(b => b.textContent === text)
  need(all('thead button').length === all('thead th').length, 'a column that does not sort')
  need(first() === 'run-3', 'the newest run is not first')
  button('best speed-up').focus()
  need(document.activeElement === button('best speed-up'), 'a button that the keyboard does not reach')
  document.activeElement.click()
  need(first() === 'run-2', 'the fastest run is not first: ' + first())
  need(button('best speed-up').parentNode.ariaSort === 'descending' && all('[aria-sort]').length === 1, 'no aria-sort')
  button('run').click()
  need(column(0).join() === 'run-1,run-2,run-3', 'not by name: ' + column(0))
  button('run').click()
  need(column(0).join() === 'run-3,run-2,run-1' && button('run').parentNode.ariaSort === 'descending', 'not back: ' + column(0))
}
END
probe() { # PAGE NAME WIDTH [SED]: a copy that reports, and the frame that it stands in
  sed -e "${4:-}" -e 's|</head>|<script src="probe.js"></script></head>|' "$1" >"probe-$2.html"
  echo "<iframe src=\"probe-$2.html#$2\" style=\"border:0;width:$3px;height:900px\"></iframe>" >>frame.html
}
echo '<!doctype html><body><script>addEventListener("message",e=>{let p=document.createElement("p");p.append("says "+e.data+" end");document.body.append(p)})</script>' >frame.html
as_printed='s|@media print|@media all|'
names=()
for page in run-1/report compare index; do
  name=$(basename "${page%/report}")
  probe "runs/$page.html" "$name-1280" 1280
  probe "runs/$page.html" "$name-400" 400
  probe "runs/$page.html" "$name-print" 717 "$as_printed" # A4 and letter, less the margins
  names+=("$name-1280" "$name-400" "$name-print")
done
browse --allow-file-access-from-files --virtual-time-budget=20000 --dump-dom "file://$base/frame.html" | sed 's|</p>|\n|g' >dom
for name in "${names[@]}"; do
  says=$(sed -n "s/.*says $name \(.*\) end.*/\1/p" dom | sed 's/&amp;/\&/g')
  case $says in
  *" well") echo "ok $name: ${says% well}" ;;
  '') fail "$name: the page did not load" ;;
  *) fail "$name: $says" ;;
  esac
  if command -v gnuplot >/dev/null && [[ $name == run-* && $says == 0\ drawings* ]]; then fail "$name: gnuplot is there, drawings are not"; fi
done

# ---- the screen, and paper --------------------------------------------------------------------------------------------

for width in 1280 400; do
  browse --hide-scrollbars --window-size="$width,2000" --screenshot="$base/page-$width.png" "file://$base/runs/run-1/report.html" >/dev/null
  size=$(wc -c <"page-$width.png" 2>/dev/null || echo 0)
  if [ "$size" -lt 20000 ]; then fail "$width: the screenshot has $size bytes"; else echo "ok $width: a screenshot of $size bytes"; fi
done
browse --print-to-pdf="$base/page.pdf" --no-pdf-header-footer "file://$base/runs/run-1/report.html" >/dev/null
pages=$(grep -a -c '/Type /Page$' page.pdf 2>/dev/null)
if [ "${pages:-0}" -lt 2 ]; then fail "paper: ${pages:-no} pages"; else echo "ok paper: $pages pages"; fi
if command -v pdftotext >/dev/null && pdftotext page.pdf page.txt; then
  for words in 'Does it fit?' 'same text' 'rule=rejection' 'intervals' "$(grep -o '"output_sha256": *"[0-9a-f]\{16\}' runs/run-1/summary.json | tail -1 | grep -o '[0-9a-f]*$')"; do
    tr -d '\n' <page.txt | grep -qF -- "$words" || fail "paper: it does not say '$words'"
  done
fi
if grep ':CONSOLE' log; then fail "the console is not empty"; fi
exit "$failed"
