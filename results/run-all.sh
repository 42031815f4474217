#!/usr/bin/env bash
# Runs every experiment of configs/experiments and publishes its answer: docs/results.md gets the drawings and the machine between its
# markers, README.md the table of quickstart-smollm2, and results/<experiment>/ summary.json, config.json and the drawings (with gnuplot; without
# it the old ones stay). `wager report results/EXPERIMENT --md` prints the tables of a published summary.
# Raw folders and the pages (report.html) stay in build/results/.
# usage: results/run-all.sh [EXPERIMENT...]       WAGER=PROGRAM (build/release/wager)       LIMIT=SECONDS of one experiment (420)
# quickstart-smollm2 needs the model of `wager pull smollm2-135m-instruct`.
# Run it again after it was stopped: what is finished is kept, what was cut off goes on. For figures, on a machine that does nothing else.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
wager=${WAGER:-build/release/wager}
[ -x "$wager" ] || { echo "run-all: no program at $wager; build it (./quickstart.sh) or set WAGER" >&2; exit 2; }
build=$(sha256sum "$wager" | cut -c1-12)
shared=../shared/data
failed=()
unset COLUMNS # tables are published unfolded

# The region NAME of FILE becomes what stands on standard input. A file without the markers gets them at its end.
replace() { # FILE NAME
  local text
  text=$(mktemp)
  cat >"$text"
  grep -q "<!-- $2:begin -->" "$1" || printf '\n## %s\n\n<!-- %s:begin -->\n<!-- %s:end -->\n' "$2" "$2" "$2" >>"$1"
  awk -v text="$text" -v name="$2" '
    $0 == "<!-- " name ":begin -->" { print; while ((getline line < text) > 0) print line; skip = 1; next }
    $0 == "<!-- " name ":end -->" { skip = 0 }
    !skip' "$1" >"$1.tmp" && mv "$1.tmp" "$1"
  rm -f "$text"
}

# The datastore of the drafter retrieval: books where they are, else the prompts themselves. And the example of a plug-in, built
# anew whenever its source or the headers were changed.
prepare_drafters() {
  local texts=("$shared"/text/pd-books-children/*.md)
  [ -r "${texts[0]}" ] || texts=(configs/prompts/quickstart.jsonl)
  [ -s build/books.store ] ||
    "$wager" datastore build -m models/story-target-q8_0.gguf --out build/books.store "${texts[@]}" || return 1
  cmake -S examples/plugin-drafter -B build/plugin-drafter -DCMAKE_BUILD_TYPE=Release >/dev/null &&
    cmake --build build/plugin-drafter >/dev/null
}

# The compressed draft models of draft-compression: rounded, calibrated on a book where the books are (else on the prompts), and
# those that are pruned 2:4 and trained on: on the text, and on the target's law.
prepare_compressed() {
  local draft=models/story-draft-q8_0.gguf to=build/compressed text=$shared/text/pd-books-children whole=--keep=token_embd.weight=q8_0
  [ -d "$text" ] || text=configs/prompts/quickstart.jsonl
  mkdir -p $to
  compress() { # NAME FLAG...
    local name=$1
    shift
    [ -s "$to/$name.gguf" ] || "$wager" quantize $draft "$to/$name.gguf" $whole "$@" >/dev/null
  }
  compress q4_0-gptq --type q4_0 --calibrate "$text" && compress 3-bit --type q4_0 --bits 3 &&
    compress 3-bit-gptq --type q4_0 --bits 3 --calibrate "$text" && compress 2-bit --type q4_0 --bits 2 &&
    compress 2-bit-gptq --type q4_0 --bits 2 --calibrate "$text" &&
    compress 30-percent-sparsegpt --type q8_0 --prune 0.3 --calibrate "$text" &&
    compress 2-4 --type q8_2of4 && compress 2-4-sparsegpt --type q8_2of4 --calibrate "$text" || return 1
  [ -s $to/2-4-kl.gguf ] && return
  rm -rf $to/run
  "$wager" distill configs/distill/pruned.json --out $to/run --set "data.text=$text" >/dev/null &&
    cp $to/run/2-4-text.gguf $to/run/2-4-kl.gguf $to/
}

# The students of student-sizes take about an hour of two cores, so they are not trained here unasked.
prepare_sizes() {
  [ -s build/sizes/m2.0.gguf ] && return
  echo "run-all: no students in build/sizes: wager distill configs/distill/sizes.json --out build/sizes --set data.text=BOOKS" >&2
  return 1
}

overrides() { # NAME: what this machine lacks, said aloud
  if [ "$1" = drafters ] && [ ! -r "$shared/prompts/spec-bench/question.jsonl" ]; then
    echo "run-all: no $shared/prompts/spec-bench/question.jsonl: drafters runs on configs/prompts/quickstart.jsonl instead" >&2
    printf '%s\n' --set prompts.file=configs/prompts/quickstart.jsonl --set prompts.per_category=0
  fi
}

# The recorded rounds under every rule, tau without sampling noise, and the losses of drafter and rule.
replayed() { # OUT CONFIG
  printf 'Every rule on the recorded drafts (`wager replay`):\n\n'
  "$wager" replay "$1" --rule all || return 1
  printf '\ntau given the texts (`wager replay --exact`):\n\n'
  "$wager" replay --exact "$2" --cell 0 --length 2 --length 4 --length 8 --tree 2-2-1 || return 1
  printf '\nWho loses what (`wager replay --attribution`):\n\n'
  "$wager" replay "$1" --attribution || return 1
}

# The drawings that this run has something for, as SVG files.
draw() { # OUT NAME
  local plot folder=$1/figures
  command -v gnuplot >/dev/null || { echo "run-all: no gnuplot: the drawings of results/$2 stay as they are" >&2; return; }
  rm -rf "$folder"
  "$wager" report "$1" --figures "$folder" >/dev/null || return
  for plot in speedups drafters lengths; do
    rm -f "results/$2/$plot.svg"
    [ ! -f "$folder/$plot.svg" ] || cp "$folder/$plot.svg" "results/$2/"
  done
}

# Markdown of the drawings that are published of an experiment.
pictures() { # NAME
  local plot
  for plot in speedups drafters lengths; do
    [ ! -f "results/$1/$plot.svg" ] || printf '![%s of %s](../results/%s/%s.svg)\n\n' "$plot" "$1" "$1" $plot
  done
}

# What README.md says of the quickstart.
published() { # OUT RESULTS
  printf '%s\n' "SmolLM2-135M-Instruct (Q4_1) without a draft model at chat, code edits, summaries with quotes and structured output" \
    "(\`configs/prompts/tasks.jsonl\`); \`results/run-all.sh quickstart-smollm2\` repeats it." '' \
    '```console' "\$ build/release/wager report $2 --table"
  "$wager" report "$2" --table || return 1
  printf '```\n\n'
  "$wager" report "$1" --md | tail -n 1
}

run_one() { # CONFIG
  local name out more trace=steps started=$SECONDS
  ! grep -q '"trace": "probs"' "$1" || trace=probs
  name=$(basename "$1" .json)
  out=build/results/$build/$name-$(sha256sum "$1" | cut -c1-8)
  mapfile -t more < <(overrides "$name")
  [ "$name" != drafters ] || prepare_drafters || return 1
  [ "$name" != draft-compression ] || prepare_compressed || return 1
  [ "$name" != student-sizes ] || prepare_sizes || return 1
  mkdir -p "build/results/$build"
  timeout -s INT -k 20 "${LIMIT:-420}" "$wager" run "$1" --resume --out "$out" --set trace=$trace "${more[@]}" >"$out.table" || return 1
  mkdir -p "results/$name"
  "$wager" report "$out" >/dev/null || return 1
  cp "$out/summary.json" "$out/config.json" "results/$name/" || return 1
  draw "$out" "$name"
  { pictures "$name"; "$wager" report "$out" --md | tail -n 1; } | replace docs/results.md "$name"
  [ $trace = steps ] || replayed "$out" "$1" >"results/$name/replay.txt" || return 1
  if [ "$name" = quickstart-smollm2 ]; then
    published "$out" "results/$name" | replace README.md results
  fi
  echo "run-all: $name in $((SECONDS - started)) s"
}

[ -f docs/results.md ] || { echo "run-all: docs/results.md is missing" >&2; exit 1; }
[ $# -gt 0 ] || set -- $(cd configs/experiments && ls -- *.json | sed 's/\.json$//')
for name in "$@"; do
  run_one "configs/experiments/$name.json" || { echo "run-all: $name failed" >&2; failed+=("$name"); }
done
python3 results/acceptance_ranks.py | replace docs/results.md acceptance-ranks
"$wager" report build/results >/dev/null
echo "run-all: $# experiments in $SECONDS s, ${#failed[@]} failed ${failed[*]-}"
[ ${#failed[@]} -eq 0 ]
