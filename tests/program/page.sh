#!/usr/bin/env bash
# The pages of a small run, of a comparison, of a training run, of a load sweep and of a folder of runs, in a real browser: at
# 1280 and at 400 pixels, as printed, and on paper. They must say what their document says, run no text of a user, ask for
# no other file, write nothing to the console, not scroll sideways, cut nothing, have accessible markup, and the index must
# sort. usage: tests/program/page.sh WAGER. Exit 77 where there is no chromium.
set -u
program=$(realpath "$1")
tests=$(realpath "$(dirname "$0")")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "skipped: no chromium"; exit 77; }
base=$(mktemp -d "${TMPDIR:-/tmp}/wager-page.XXXXXX")
trap 'rm -rf "$base"' EXIT
cd "$base" || exit 1
failed=0
fail() { echo "FAIL $*"; failed=1; }
browse() { timeout 100 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$base/profile" --enable-logging=stderr "$@" 2>>log; }

# ---- the pages ------------------------------------------------------------------------------------------------------

for i in 1 2 3; do
  printf '{"id": "a-rather-long-name-of-a-prompt-without-a-break-%d", "category": "cats & dogs", "prompt": "The cat </script><script>attacked()</script><img src=x onerror=attacked()> sat %d"}\n' $i $i
  printf '{"category": "a-category-whose-name-is-far-too-long-for-a-margin", "prompt": "A dog ran %d"}\n' $i
done >prompts.jsonl
models=$(realpath "$tests/../../models")
cat >config.json <<END
{"name": "page", "question": "Does it fit? </script><b>", "target": {"model": "$models/story-target-q8_0.gguf", "threads": 1},
 "draft": {"kind": "model", "model": "$models/story-draft-q8_0.gguf", "length": 4}, "prompts": {"file": "prompts.jsonl"}, "max_tokens": 12, "trace": "probs",
 "sampling": {"temperature": 0}, "sweep": {"draft.length": [2, 4], "verify.rule": ["match", "rejection"]}}
END
# Grids of which one alone sweeps the rule: the names of the other's cells do not have it.
sed 's/"sweep": .*/"sweep": [{"draft.length": [2]}, {"draft.length": [2], "verify.rule": ["match"]}]}/' config.json >config3.json
mkdir runs
for seed in 1 2 3; do
  config=config.json
  [ $seed = 3 ] && config=config3.json
  "$program" run $config --out runs/run-$seed --set seed=$seed >/dev/null 2>&1 && "$program" report runs/run-$seed >/dev/null ||
    { echo "FAIL: no report"; exit 1; }
done
# A summary of a version that named no event of its calibrations.
mkdir runs/old && cp runs/run-1/{config.json,machine.json,requests.jsonl,summary.json} runs/old && sed -i 's/"event": *"[^"]*",//g' runs/old/summary.json &&
  "$program" report runs/old >/dev/null || { echo "FAIL: no report of an old run"; exit 1; }
mv runs/old old
"$program" compare runs/run-1 runs/run-2 --html runs/compare.html >/dev/null || { echo "FAIL: no comparison"; exit 1; }
for run in 1=2.5 2=9.5 3=0.5; do # what was measured under load is in any order; sorting is to move something
  sed -i 's/"speedup": [0-9.]*/"speedup": '"${run#*=}"'/g' runs/run-"${run%=*}"/summary.json
done
"$program" report runs >/dev/null || { echo "FAIL: no index"; exit 1; }
mkdir training # a training run, as the program writes it
cat >training/config.json <<'END'
{"seeds": [4, 7], "train": {"steps": 9}, "students": [{"name": "text", "loss": {"ce": 1}}, {"name": "a|</script><b>", "loss": {"kl": 0.5, "tv": 0.5}}]}
END
for step in 1 2 3 4 5 6; do
  for student in text-4 text-7 'a|</script><b>-4' 'a|</script><b>-7'; do
    printf '{"alpha": 0.4%d, "%s": 3.%d, "rows": 1000, "seconds": 1, "step": %d, "student": "%s"}\n' $step loss $step $step "$student" \
      $step held_out $step $step "$student"
  done
done >training/distill.jsonl
"$program" report training >/dev/null || { echo "FAIL: no page of training"; exit 1; }
pages=(runs/run-1/report runs/run-3/report runs/compare runs/index training/report old/report)
if command -v python3 >/dev/null; then
  server="python3 '$tests/../load/server.py' {port}"
  printf '{"name": "curve", "question": "Does </script><b> work?", "clients": [1, 2], "requests": 2, "servers": [{"name": "</script><b>", "command": "%s events=2"},
    {"name": "made", "command": "%s {gap}", "vary": {"gap": {"slow": "gap=9", "fast": "gap=2"}}}]}' "$server" "$server" >sweep.json
  "$program" load --sweep sweep.json --out load >/dev/null 2>&1
  if [ -f load/report.html ]; then pages+=(load/report); else "$program" load --help | grep -q 'without libcurl' || fail "no page of a sweep"; fi
fi

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
  need(document.scripts.length === 3 && !document.querySelector('main script, main img, main b, main iframe'), 'a text became markup')
  tells[data().kind]()
  parent.postMessage(name + ' ' + all('svg').filter(s => s.checkVisibility()).length + ' drawings ' + (bad.join('; ') || 'well'), '*')
})
/* Every number and text of the document is on the page. */
const data = () => JSON.parse(document.getElementById('data').textContent)
const tells = {}
const words = e => e.textContent.replace(/\s+/g, ' ').trim()
const table_of = begin => all('table').filter(t => t.caption.textContent.startsWith(begin)).flatMap(t => [...t.rows].map(r => [...r.cells].map(words)))
const has = (begin, ...texts) => { const cells = new Set(table_of(begin).flat()); for (const t of texts) need(cells.has(t), begin + ' lacks ' + t) }
const interval = (o, key, digits, unit) => o[key].toFixed(digits) + unit + (o[key + '_ci'] ? ' [' + o[key + '_ci'].map(v => v.toFixed(digits)).join(', ') + ']' : '')
tells.run = () => {
  const doc = data(), cells = doc.summary.cells, main = words(document.querySelector('main')), numbers = table_of('A line a cell')
  need(document.querySelector('h1').textContent === doc.question, 'another question')
  need(numbers.length === 1 + cells.length && numbers[0][1] === 'speed-up', 'the speed-up is not first: ' + numbers[0])
  need(numbers.slice(1).every((row, i) => row[0] === i + ' ' + doc.names[i]), 'a cell without its name')
  const best = document.querySelector('tr.best')
  need(words(best.cells[0]).startsWith(doc.best + ' ') && best.cells[1].getBoundingClientRect().right <= document.documentElement.clientWidth, 'the speed-up is not seen')
  const captions = { page: 'A line a cell', rounds: 'Passes with a draft', names: 'The same counts', losses: 'Of the nodes', use: "The target's passes",
    phases: 'Milliseconds', categories: 'Speed-up and acceptance by category', turns: 'Speed-up and acceptance by turn', parts: 'By component' }
  const named = cells.every(c => 'verify.rule' in c.cell), gone = named ? doc.tables.page.heads.findIndex(h => h.name === 'rule') : -1
  need(numbers[0].includes('rule') === !named, 'the rule is not said, or twice')
  for (const [key, t] of Object.entries(doc.tables))
    for (const r of t.rows) has(captions[key], ...r.values.filter((_, k) => key !== 'page' || k !== gone).map(v => [v].flat().join(' ')))
  cells.forEach((c, i) => {
    has('SHA-256', c.output_sha256)
    has('Acceptance by position', c.acceptance_by_position[0].toFixed(2))
    has('Steps that drafted', (100 * c.acceptance.acceptance_histogram[1] / c.spec_decode_num_drafts).toFixed(1) + ' %')
    const calibration = c.attribution.calibration
    need(main.includes('Do confidences mean what they say?') === !!calibration.event, 'calibrations')
    if (calibration.event) has('Against p', calibration.q.ece.toFixed(3), calibration.path.ece.toFixed(3))
  })
  has('Program, machine', doc.machine.started, doc.machine.cpu.model)
  need(all('pre').some(e => e.textContent === doc.config), 'no config')
  need(doc.texts.answers.length === 3 && doc.texts.answers.some(a => a.pieces.some(q => q[0] === 'a')), 'no accepted token')
  for (const a of doc.texts.answers) {
    const pre = all('pre').find(e => e.textContent === a.pieces.map(q => q[1]).join(''))
    need(all('h3').some(e => e.textContent === a.id + ', ' + a.category) && all('pre').some(e => e.textContent === a.prompt), 'no prompt ' + a.id)
    need(pre && [...pre.childNodes].map(n => (n.className || '') + n.textContent).join('|') === a.pieces.map(q => q.join('')).join('|'), 'an answer with other marks')
  }
  for (const w of doc.words) need(all('dt').some(e => e.id === 'w-' + w.name && words(e.nextSibling) === w.doc), 'no word ' + w.name)
  for (const f of doc.figures) need(all('figcaption').some(e => e.textContent === f.caption), 'no drawing ' + f.name)
  for (const sentence of (doc.answer + ' ' + doc.notes).replace(/[`*]/g, '').split(/\.\s/)) need(main.includes(sentence.trim()), 'not said: ' + sentence)
}
tells.compare = () => {
  const o = data().comparison, main = words(document.querySelector('main'))
  for (const q of o.pairs) {
    has('Speed-up over', interval(q, 'speedup_ratio', 3, 'x'), interval(q, 'tau_ratio', 3, 'x'), `${q.same_texts.equal} of ${q.same_texts.of}`, q.verdict,
      `${q.tok_s[1].toFixed(1)} A: ${q.tok_s[0].toFixed(1)}`)
    for (const part of q.by_category) has('By category', part.category, interval(part, 'speedup_ratio', 3, 'x'))
    for (const r of q.regressions) has('The prompts that lost most', r.id, r.speedup_ratio.toFixed(3) + 'x')
  }
  const d = o.pairs.map(q => q.same_texts.first_divergence).find(v => v)
  if (d) need(main.includes(`differ first in prompt ${d.id}`) && main.includes(`at token ${d.token}.`), 'no divergence')
  for (const w of o.warnings) need(main.includes(w), 'no warning ' + w)
  for (const r of o.config_diff) has('In the config', r.key, ...r.values)
  for (const r of o.machine_diff) has('Besides the config', r.key, ...r.values)
  o.runs.forEach((r, i) => has('The runs', 'AB'[i], r.path, r.started))
}
tells.training = () => {
  const doc = data()
  need(words(document.querySelector('.answer')) === doc.answer && document.querySelector('h1').textContent === doc.title, 'no answer')
  for (const t of doc.tables) has(t.caption, ...t.heads, ...t.rows.flat())
  need(all('figure').length === doc.figures.length, 'not all curves')
}
tells.load = () => {
  const doc = data()
  need(words(document.querySelector('main')).includes(doc.question), 'no question')
  for (const c of doc.summary.cells) has('A line a server', c.server, c.clients + ' clients', c.output_throughput.toFixed(1), c.p99_ttft_ms.toFixed(1), `${c.completed} of ${c.completed + c.failed}`)
  for (const s of doc.servers) need(all('dt').some(e => e.textContent === s.name && e.nextSibling.textContent === s.command), 'no server ' + s.name)
}
tells.index = () => {
  for (const r of data().runs) {
    has('The runs of this folder', r.path, interval(r, 'speedup', 2, 'x'), r.tau.toFixed(2), r.question)
    need(all('a').some(a => a.getAttribute('href') === r.path + '/report.html'), 'no link to ' + r.path)
  }
  sorts()
}
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
  { sed -e '/^<\/head>/,$d' -e "${4:-}" "$1"; echo '<script>{'; cat probe.js; echo '}</script>'; sed -n '/^<\/head>/,$p' "$1"; } >"probe-$2.html"
  echo "<iframe src=\"probe-$2.html#$2\" style=\"border:0;width:$3px;height:900px\"></iframe>" >>frame.html
}
echo '<!doctype html><body><script>addEventListener("message",e=>{let p=document.createElement("p");p.append("says "+e.data+" end");document.body.append(p)})</script>' >frame.html
as_printed='s|@media print|@media all|'
names=()
for page in "${pages[@]}"; do
  name=$(basename "${page%/report}")
  probe "$page.html" "$name-1280" 1280
  probe "$page.html" "$name-400" 400
  probe "$page.html" "$name-print" 717 "$as_printed" # A4 and letter, less the margins
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
  if command -v gnuplot >/dev/null && [[ $name != index-* && $says == 0\ drawings* ]]; then fail "$name: gnuplot is there, drawings are not"; fi
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
