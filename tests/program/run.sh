#!/usr/bin/env bash
# Runs the program as a user would. usage: tests/program/run.sh WAGER [--update]
# tests/bad/COMMAND.txt are transcripts of wrong command lines. A case is a line `## name`, a shell command (`$ ` begins it, `> `
# continues it), what must stand on stderr, exactly, and a line `= STATUS`. In the command wager is the program, $T a folder of two
# tiny models of one vocabulary (target.gguf, draft.gguf) and a prompt file, and nothing else. In the text the folder is written $T,
# the list of all drafters or rules @drafters@ or @rules@, and that of the rules for trees of a law @iid_rules@ or @coupled_rules@.
# --update rewrites the transcripts, to be reviewed with git diff.
set -u
program=$(realpath "$1")
update=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
base=$(mktemp -d "${TMPDIR:-/tmp}/wager program.XXXXXX")
trap 'chmod -R u+w "$base"; rm -rf "$base"' EXIT
wager() { "$program" "$@"; }
export NO_COLOR=1

prepare() {
  wager synth --like tiny --type f32 --seed 1 --out "$base/target.gguf" &&
    wager synth --like tiny --type q8_0 --seed 2 --out "$base/draft.gguf" || return 1
  printf '{"prompt": "The cat sat"}\n{"prompt": "A dog ran"}\n' >"$base/prompts.jsonl"
} >/dev/null

# The names of all drafters or rules, as messages list them.
names() { wager list "$1" --json | sed -n "s/.*\"kind\":\"$2\".*\"name\":\"\([a-z_]*\)\".*/\1/p" | paste -sd, | sed 's/,/, /g'; }
drafters=$(names drafters drafter) rules=$(names rules rule)
# The rules that verify trees of a law, as messages list them; `notes`: with what they say of themselves.
rules_for() { # LAW [notes]
  wager list rules --json | grep -v '"chains":true' | sed -n "s/.*\"kind\":\"rule\",\"laws\":\"[^\"]*$1[^\"]*\",\"name\":\"\([a-z_]*\)\",\"note\":\"\([^,\"]*\).*/\1 (\2)/p" |
    if [ "${2:-}" = notes ]; then sed 's/ (lossless)//; s/(lossless at/(at/; s/(LOSSY)/(lossy)/'; else sed 's/ .*//'; fi | paste -sd, | sed 's/,/, /g'
}
iid_rules=$(rules_for iid) coupled_rules=$(rules_for coupled notes)
for list in "$drafters" "$rules" "$iid_rules" "$coupled_rules"; do
  [ -n "$list" ] || { echo "FAIL: wager list names no drafters or no rules"; exit 1; }
done

passed=0 failed=0 case_files=
shopt -s extglob
fail() { echo "FAIL $1"; failed=$((failed + 1)); }
ok() { passed=$((passed + 1)); }

# What a head computes, and what is assumed where its config is silent.
heads() {
  expect head-dialect "^head      of speculators's layout: 1 layers of width 32 over states of width 32, 200 of 512 tokens$" wager inspect "$base/head"
  expect head-assumed '^assumed   norm_output = false$' wager inspect "$base/head"
  expect head-json '"assumed": \{' wager inspect "$base/head" --json
  expect head-first '^flag      fc_bias$' wager inspect "$base/head/eagle-1"
  expect head-first-assumed '^assumed   bias = as the tensors have it$' wager inspect "$base/head/eagle-1"
  expect head-markov '^markov    vanilla$' wager inspect "$base/head/dspark"
  expect head-anchor '^assumed   sample_from_anchor = true$' wager inspect "$base/head/dspark"
  expect head-mask '^mask      token 1$' wager inspect "$base/head/p-eagle"
  local kind at=$base/head
  for kind in eagle block mtp; do
    [ $kind = eagle ] || at=$base/head/$kind
    printf '{"name": "heads", "target": {"model": "%s"}, "draft": {"kind": "%s", "model": "%s", "length": 3},
      "prompts": {"file": "%s"}, "max_tokens": 6}' "$base/target.gguf" $kind "$at" "$base/prompts.jsonl" >"$base/head.json"
    expect "head-run-$kind" "^$kind .* yes *$" wager run "$base/head.json" --out "$base/head-$kind"
  done
  if wager check "$base/head.json" --set draft.kind=block >"$base/out" 2>"$base/err"; then fail "a head of another kind"
  elif grep -q 'draft.model: drafter block: .* is an MTP head, which another drafter runs: take mtp$' "$base/err"; then ok
  else fail "a head of another kind: $(cat "$base/err")"; fi
}

# Hidden states of texts and of a run's answers, in both layouts; the scalar reference writes the same bytes.
tap_dumps() {
  local t=$base/taps
  expect taps '^wrote .*: 2 samples, 19 tokens, taps 1, 2, width 32, bf16$' \
    wager taps -m "$base/target.gguf" --out "$t" --prompts "$base/prompts.jsonl"
  expect taps-read ': hidden states as vLLM writes them, 2 samples, 19 tokens, 2 taps .*, width 32, bf16$' wager taps "$t"
  expect taps-cut '^1 of them were longer and are cut' \
    wager taps -m "$base/target.gguf" --out "$t-cut" --text "$base/prompts.jsonl" --taps 3,0 --tokens 5 --type f32
  WG_CPU=ref wager taps -m "$base/target.gguf" --out "$t-ref" --text "$base/prompts.jsonl" --taps 3,0 --tokens 5 --type f32 \
    --threads 1 >"$base/out"
  if cmp "$t-cut/hs_0.safetensors" "$t-ref/hs_0.safetensors"; then ok; else fail "taps: the scalar reference differs"; fi
  printf '{"name": "t", "target": {"model": "target.gguf"}, "draft": {"kind": "ngram"}, "verify": {"rule": "match"},
    "prompts": {"file": "prompts.jsonl"}, "max_tokens": 5}' >"$base/t.json"
  wager run "$base/t.json" --out "$t-run" >"$base/out" 2>&1 || fail "taps: no run"
  expect taps-run ': 2 samples, 29 tokens, taps 0, 2, width 32' wager taps -m "$base/target.gguf" --out "$t-cache" \
    --layout deepspec --prompts "$base/prompts.jsonl" --run "$t-run" --taps 0,2 --shard-mb 1
  expect taps-cache '"layout":"deepspec","samples":2,"taps":\[0,2\],.*"tokens":29,"trained_tokens":10' wager taps "$t-cache" --json
}

# What a plan says first and last, outside the project's folder; what it offers to paste runs, with the draft it judged best.
plans() {
  local paste lines=$base/plan
  (cd / && wager plan "$base/target.gguf" -d "$base/draft.gguf" --draft ngram:k=3 --draft recycle -n 24 --seconds 20) >"$lines" 2>"$base/err"
  if [ $? = 0 ] && head -1 "$lines" | grep -q '^budget  at most 20 s '; then ok; else fail "plan: no budget first"; cat "$base/err"; fi
  if tail -2 "$lines" | head -1 | grep -Eq '^(Speculate: |Do not speculate: |Undecided: ).*\.$'; then ok; else fail "plan: no sentence"; cat "$lines"; fi
  for draft in "model:model=$base/draft.gguf,length=4" ngram:k=3 recycle:nodes=8 ngram:k=4 suffix:k=8 'lookahead:n=3,window=1'; do
    if grep -Fq "  $draft" "$lines"; then ok; else fail "plan: $draft was not tried"; fi
  done
  paste=$(tail -1 "$lines")
  if (eval "${paste/-n 200/-n 9}") >"$base/out" 2>&1 && grep -q '^\[9 tokens, .*, match, output ' "$base/out"; then ok
  else fail "plan: what it offers to paste does not run: $paste"; fi
  wager plan -m "$base/target.gguf" -p "$base/prompts.jsonl" -n 12 --chat vicuna --system Hm. --temp 0.7 --json >"$lines" 2>"$base/err"
  expect plan-json '^budget [a-z ]+ True --rule rejection --temp 0.7 -n 200 -p$' python3 -c '
import json, shlex, sys
o = [json.loads(line) for line in open(sys.argv[1])]
words = shlex.split(o[-1]["paste"])
tried = [x["draft"] for x in o if x["kind"] == "tried"]
ours = "--draft" not in words or words[words.index("--draft") + 1] in tried
template = words[words.index("--chat") + 1 :][:3] == ["vicuna", "--system", "Hm."]
print(o[0]["kind"], o[-1]["verdict"], ours and template, *words[-8:-1])' "$lines"
}

# A result that cannot be written is a failure that is told, whatever the command; a reader that had enough is none.
outputs() {
  local m=models/story-draft-q8_0.gguf command
  for command in "generate $m -p hi -n 3 --json" "generate $m -p hi -n 3" "tokenize $m hi" "list rules" "inspect $m" "run configs/experiments/quickstart.json --dry-run" --help --version; do
    wager $command >&- 2>"$base/err" </dev/null
    if [ $? = 1 ] && grep -qx 'wager: standard output is closed; the output is lost' "$base/err"; then ok; else fail "closed output: $command"; fi
    wager $command >/dev/full 2>"$base/err" </dev/null
    if [ $? = 1 ] && grep -q 'cannot write all of the output; is the disk full' "$base/err"; then ok; else fail "full output: $command"; fi
  done
  wager synth --like tiny --out "$base/closed.gguf" >&- 2>"$base/err" <&-
  if [ $? = 1 ] && wager inspect "$base/closed.gguf" >"$base/out"; then ok; else fail "closed output: a file got what was to be printed"; fi
  if (set -o pipefail; wager list columns | head -n 1) >"$base/out" 2>"$base/err" && [ ! -s "$base/err" ]; then ok; else fail "a reader that had enough"; fi
}

# A draft model for other engines: both forms and the card; the folder's logits are those of the source as f32.
exports() {
  local made="$base/made student" student=models/story-draft-q8_0.gguf
  expect export '^model.safetensors read again: 64 rows of logits, at most 0 from those of the source as f32 ' \
    wager export $student --to "$made" --format both --for models/story-target-q8_0.gguf --name student
  expect export-files '^README.md config.json generation_config.json model.safetensors student.gguf tokenizer.json tokenizer_config.json $' \
    sh -c 'ls "$1" | tr "\n" " "' - "$made"
  expect export-card "^llama-server -m models/.* -md '.*/made student/student.gguf' --spec-type draft-simple" cat "$made/README.md"
  expect export-unmeasured '^Not measured\. ' cat "$made/README.md"
  expect export-json '"source_as": "f16"' wager export $student --to "$base/made-f16" --type f16 --json
  printf '{"model": {"tokenizer": "%s", "dim": 16, "layers": 1, "heads": 2, "context": 16}, "data": {"text": "%s", "held_out": 0},
    "train": {"steps": 3, "batch": 1, "micro": 1}, "output": {"type": "f32"}}' "$PWD/$student" "$base/prompts.jsonl" >"$base/train.json"
  if wager train "$base/train.json" --out "$base/trained" >"$base/out" 2>"$base/err"; then
    expect export-checkpoint '^# m$' sh -c '"$@" >/dev/null && cat "$0/README.md"' "$base/made-checkpoint" \
      "$program" export "$base/trained/checkpoint-00000003.wgc" --to "$base/made-checkpoint" --format both --name m
    if [ "$(ls -A "$base/made-checkpoint" | wc -l)" = 7 ] && cmp "$base/made-checkpoint/m.gguf" "$base/trained/model.gguf"; then ok
    else fail "export: another model than the run wrote"; fi
  else grep -q OpenBLAS "$base/err" && echo "SKIPPED: export of a checkpoint: no OpenBLAS"; fi
  wager logits "$made" --tokens 1,2,3 >"$base/want" && wager convert $student --out "$base/made-f32.gguf" --type f32 >"$base/out"
  if wager logits "$base/made-f32.gguf" --tokens 1,2,3 | cmp - "$base/want"; then ok; else fail "export: other logits"; fi
}

# The folder of a case, made again when the last one left something in it.
new_folder() { # DIR
  if [ -d "$1" ]; then
    chmod -R u+w "$1"
    rm -rf "$1"
  fi
  mkdir "$1" && ln -s "$base"/*.gguf "$base/prompts.jsonl" "$1/"
}

whole() { IFS= read -r -d '' "$1" <"$2"; } # VARIABLE FILE: read without a process, as four hundred cases are

# The error must be the transcript's, and nothing may be left behind, but made*. `seen`: the error and the status of this run.
bad_case() { # NAME COMMAND ERROR STATUS
  local name=$1 T=$base/case want=$3 status error there
  [[ -d $T && $(echo "$T"/*) == "$case_files" ]] || { new_folder "$T" && case_files=$(echo "$T"/*); } || return
  (eval "$2") >"$base/out" 2>"$base/err" </dev/null
  status=$?
  whole error "$base/err"
  error=${error//"$T"/"\$T"}
  error=${error//"$program"/wager}
  error=${error//"expected one of: $drafters"/"expected one of: @drafters@"}
  error=${error//"expected one of: $rules"/"expected one of: @rules@"}
  error=${error//"rules that fit: $iid_rules"$'\n'/"rules that fit: @iid_rules@"$'\n'}
  error=${error//"choose one of: $coupled_rules"$'\n'/"choose one of: @coupled_rules@"$'\n'}
  seen=$error"= $status"$'\n'
  [ "$update" != --update ] || return 0
  there=" $(echo "$T"/*) "
  there=${there//" $T/made"*([! ])/}
  if [ "$error" != "$want" ]; then
    diff -u --label "$name: expected" --label "$name: stderr" <(printf %s "$want") <(printf %s "$error")
    fail "$name: stderr"
  elif [ "$status" != "$4" ]; then fail "$name: exit status $status, expected $4"
  elif [[ ($status = 2 || $name == plan\ *) && -s $base/out ]]; then fail "$name: something was printed before it was refused: $(head -n 3 "$base/out")"
  elif [ "$there" != " $case_files " ]; then fail "$name: files left behind:$there"
  else ok; fi
}

transcript() { # FILE: runs its cases; --update writes it anew
  local file=$1 line name= command= want= text= seen cases=0
  while IFS= read -r line; do
    case $line in
      '## '*) name=${line#'## '} command= want= text+=$line$'\n' ;;
      '$ '*) command=${line#'$ '}$'\n' text+=$line$'\n' ;;
      '> '*) command+=${line#'> '}$'\n' text+=$line$'\n' ;;
      '= '*)
        bad_case "$(basename "$file" .txt) $name" "$command" "$want" "${line#'= '}"
        text+=$seen name= cases=$((cases + 1))
        ;;
      *) if [ -n "$name" ]; then want+=$line$'\n'; else text+=$line$'\n'; fi ;;
    esac
  done <"$file"
  [ -z "$name" ] && [ $cases -gt 0 ] || fail "$file: a case without a line '= STATUS', or no case"
  [ "$update" != --update ] || printf %s "$text" >"$file"
}

expect() { # NAME PATTERN COMMAND...: succeeds and its output has the pattern
  local name=$1 pattern=$2
  shift 2
  if "$@" >"$base/out" 2>"$base/err" && grep -qE -- "$pattern" "$base/out"; then ok
  else
    fail "$name: '$pattern' not in the output of: $*"
    head -n 5 "$base/out" "$base/err"
  fi
}

# What runs is what is named, a draft model alone is `auto`, and a text without any draft says why.
names() {
  local t=$base/target.gguf d=$base/draft.gguf none
  expect names-itself ', suffix, match, ' wager generate -m "$t" -p abab -n 9 --draft suffix
  expect names-auto ', auto \(model\), match, ' wager generate -m "$t" -d "$d" -p Hello -n 9
  expect names-json '"draft":"auto \(model\)"' wager generate -m "$t" -d "$d" -p Hello -n 9 --json
  none="auto:of=model:model=$d;length=8,costs=1/99"
  expect names-policy '^\[no draft: the drafter expected none to pay here; name one with a length' wager generate -m "$t" -p Hello -n 9 --draft "$none"
  expect names-nothing '^\[no draft: the drafter found nothing to propose\]' wager generate -m "$t" -p Hello -n 2 --draft sam:n_min=99
  if wager generate -m "$t" -p Hello -n 9 --draft "model:model=$d" | grep -q 'no draft:' || wager generate -m "$t" -p Hello -n 9 | grep -q 'no draft:'; then
    fail "names: drafts, or plain decoding, said to be none"
  else ok; fi
}

# Equal text from plain decoding and from speculation, by the digest of the last line.
digest() { "$@" --json | sed -n 's/.*"output_sha256":"\([0-9a-f]*\)".*/\1/p'; }
# Every drafter with the options that its class is tested with (core/engine/drafter.h), as KIND or KIND:OPTIONS.
tested_drafters() {
  wager list drafters --json | sed -n 's/.*"kind":"drafter".*"name":"\([a-z_]*\)".*"tests":\["\(.*\)"\].*/\1 \2/p' |
    awk '{ name = $1; sub(/^[^ ]* /, ""); n = split($0, test, "\",\"")
           for (i = 1; i <= n || i == 1; i++) print name (test[i] == "" ? "" : ":" test[i]) }'
}

# The files that options name, and the options with their paths.
tested_files() {
  wager synth --like tiny --type q8_0 --seed 1 --out "$base/near.gguf" &&
    wager synth --like tiny --type f32 --seed 1 --context 24 --out "$base/short.gguf" &&
    python3 tests/program/make_head.py "$base/head"
} >/dev/null
with_files() {
  local t=$1
  t=${t//\$target/$base/target.gguf} t=${t//\$near/$base/near.gguf} t=${t//\$far/$base/draft.gguf} t=${t//\$short/$base/short.gguf}
  t=${t//\$other/models/story-draft-q8_0.gguf} t=${t//\$store/$base/store} t=${t//\$list/$base/list.json}
  t=${t//\$head/$base/head}
  printf '%s' "${t//\$plugin/$(dirname "$program")/plugins/libbigram.so}"
}

same_text() { # FLAGS...
  local plain spec
  plain=$(digest wager generate -m "$base/target.gguf" -p "Once upon" -n 40 "$@")
  while IFS= read -r draft; do
    spec=$(digest wager generate -m "$base/target.gguf" -p "Once upon" -n 40 --draft "$draft" "$@" </dev/null)
    if [ -n "$plain" ] && [ "$plain" = "$spec" ]; then ok; else fail "generate $draft $*: text differs from plain decoding"; fi
  done < <(tested_drafters | while IFS= read -r t; do with_files "$t" && echo; done)
}

# Waits for a file of a process that is still running, however slow the machine is.
until_there() { # FILE PROCESS
  while [ ! -e "$1" ] && kill -0 "$2" 2>/dev/null; do sleep 0.01; done
}

# Experiments under a grammar and under a schema: every answer is one of theirs, with drafts the same as without, and a trace has
# the rows that were verified.
constrained_runs() {
  printf 'root ::= [a-c] ("," [a-c])*\n' >"$base/letters.gbnf"
  printf '{"name": "t", "target": {"model": "target.gguf"}, "draft": {"kind": "model", "model": "draft.gguf", "length": 3},
    "verify": {"rule": "match"}, "sampling": {"temperature": 1}, "prompts": {"file": "prompts.jsonl"}, "max_tokens": 40, "repeats": 5,
    "grammar": "letters.gbnf", "trace": "probs"}' >"$base/letters.json"
  expect constrained-dry 'draft.kind=model verify.rule=match' wager run "$base/letters.json" --dry-run
  expect constrained-run '^model +match .* yes *$' wager run "$base/letters.json" --out "$base/run-list"
  expect constrained-texts '^20 of 20$' sh -c 'n=$(grep -c . "$1"); grep -cE "\"text\":\"[a-c](,[a-c])*(</s>)?\"" "$1" | sed "s/$/ of $n/"' - \
    "$base/run-list/requests.jsonl"
  expect constrained-replay '^ +0  match +- +([0-9]+) +\1 ' wager replay "$base/run-list"
  expect constrained-schema ' law *$' wager run "$base/letters.json" --set grammar= --set verify.rule=rejection \
    --set 'json_schema={"enum": ["yes", "no", 12]}' --out "$base/run-schema"
  expect constrained-values '^20 of 20$' sh -c 'n=$(grep -c . "$1"); grep -cE "\"text\":\"[ n\\t]*(\\\\\"(yes|no)\\\\\"|12)[ n\\t]*(</s>)?\"" "$1" | sed "s/$/ of $n/"' - \
    "$base/run-schema/requests.jsonl"
  printf 'root ::= [^a-m]*' >"$base/wide.gbnf" # rows of many tokens, of which a trace keeps the logits where there is no mask
  expect constrained-wide '^model +rejection ' wager run "$base/letters.json" --set grammar="$base/wide.gbnf" --set verify.rule=rejection --out "$base/run-wide"
  expect constrained-wide-replay '^ +0  rejection +- +([0-9]+) +\1 ' wager replay "$base/run-wide"
  expect constrained-schema-replay '^ +0  rejection +- +([0-9]+) +\1 ' wager replay "$base/run-schema"
}

# Training: a run that is killed at any moment and goes on writes the model of an undisturbed one; it runs; it can be trained on.
train_cases() {
  printf '{"model": {"tokenizer": "target.gguf", "dim": 32, "layers": 1, "heads": 2, "context": 16},
    "data": {"text": "prompts.jsonl", "separator": "\\n", "held_out": 0}, "train": {"steps": 400, "batch": 2, "micro": 1, "checkpoint": 20}}' >"$base/train.json"
  expect train '^wrote .*/straight/model.gguf$' wager train "$base/train.json" --out "$base/straight" --threads 2
  "$program" train "$base/train.json" --out "$base/killed" --threads 2 2>"$base/err" &
  local pid=$!
  until_there "$base/killed/checkpoint-00000020.wgc" $pid
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null
  expect train-resume '^wrote ' wager train "$base/train.json" --out "$base/killed" --resume --threads 1
  if cmp -s "$base/straight/model.gguf" "$base/killed/model.gguf"; then ok; else fail "train: a resumed run has another model"; fi
  if [ "$(wc -l <"$base/straight/train.jsonl")" = 400 ] && [ "$(wc -l <"$base/killed/train.jsonl")" = 400 ]; then ok
  else fail "train: train.jsonl has not one line a step"; fi
  expect train-report '/straight/report.html$' wager report "$base/straight"
  expect train-generate 'tau [0-9.]+' wager generate -m "$base/straight/model.gguf" -p "The cat" -n 8
  expect train-init '^wrote ' wager train "$base/train.json" --out "$base/more/further" --set model.init="$base/straight/model.gguf" --set train.steps=2
}

# Distillation: a run that is killed at any moment and goes on writes the students of an undisturbed one; rejected rows of a trace.
distill_cases() {
  printf '{"target": {"model": "target.gguf"}, "distill": {"predict": false}, "model": {"dim": 32, "layers": 1, "heads": 2},
    "data": {"text": "prompts.jsonl", "separator": "\\n", "held_out": 0},
    "students": [{"name": "kl", "loss": {"kl": 1}}, {"name": "rule", "loss": {"block": 1}}],
    "train": {"steps": 300, "batch": 2, "micro": 1, "length": 16, "checkpoint": 20}}' >"$base/distill.json"
  expect distill '^wrote .*/whole/distill.json$' wager distill "$base/distill.json" --out "$base/whole" --threads 2
  "$program" distill "$base/distill.json" --out "$base/shot" --threads 2 2>"$base/err" &
  local pid=$! name
  until_there "$base/shot/checkpoint-00000020.wgc" $pid
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null
  expect distill-resume '^kl ' wager distill "$base/distill.json" --out "$base/shot" --resume --threads 1
  for name in kl rule; do
    if cmp -s "$base/whole/$name.gguf" "$base/shot/$name.gguf"; then ok; else fail "distill: a resumed run has another student $name"; fi
  done
  expect distill-cut '^wrote .*/cut/distill.json$' wager distill "$base/distill.json" --out "$base/cut" --set train.steps=2 \
    --set distill.keep=40 --set 'students=[{"name": "s", "model": {"target_layers": [0], "target_head": "frozen"}}]'
  expect distill-cut-of '^          vocabulary: overlap, 40 of 512 tokens$' wager inspect "$base/target.gguf" -d "$base/cut/s-cut.gguf"
  expect distill-cut-for 'can draft for it with: model$' wager inspect "$base/target.gguf" -d "$base/cut/s-cut.gguf"
  expect distill-cut-reads "a student cut to what its target lacks: it reads the target's embedding$" \
    wager inspect "$base/target.gguf" -d "$base/cut/s-cut.gguf"
  expect distill-cut-drafts 'drafted, prompt .*, model, ' wager generate -m "$base/target.gguf" \
    --draft model:model="$base/cut/s-cut.gguf" -p "The cat" -n 6
  # A disk too full for a checkpoint: what is left is named, no part of a file stays, and the run goes on where there is room.
  (ulimit -f 64; "$program" distill "$base/distill.json" --out "$base/full" --threads 1 2>"$base/err")
  if [ $? = 1 ] && grep -q '^wager: step 20: .*checkpoint-00000020.wgc: .*File too large.*; no checkpoint was written yet. Make room, then begin again$' "$base/err" &&
    ! ls "$base/full" | grep -q 'checkpoint\|gguf'; then ok
  else fail "distill: a full disk: $(tail -1 "$base/err")"; fi
  mkdir "$base/part" && cp "$base/whole"/{config.json,train.tokens,distill.jsonl} "$base/whole/checkpoint-00000280.wgc" "$base/part"
  (ulimit -f 300; "$program" distill "$base/distill.json" --out "$base/part" --resume --threads 1 2>"$base/err")
  if [ $? = 1 ] && grep -q '; the checkpoint of step 280 is kept. Make room, then go on with --resume$' "$base/err"; then ok
  else fail "distill: a full disk after a checkpoint: $(tail -1 "$base/err")"; fi
  expect distill-full-resume 'data.held_out is 0: no document is held out; 10 holds out' wager distill "$base/distill.json" --out "$base/part" --resume --threads 2
  if cmp -s "$base/whole/kl.gguf" "$base/part/kl.gguf"; then ok; else fail "distill: another student after a full disk"; fi
  # Numbers without a gradient, divided 0 by 0: the step and the student are named.
  "$program" distill "$base/distill.json" --out "$base/nan" --set optimiser.eps=0 --set model.target_head=frozen >"$base/err" 2>&1
  if [ $? = 1 ] && grep -q 'wager: step 2, student kl: the loss is not a finite number; no checkpoint was written yet' "$base/err"; then ok
  else fail "distill: a loss that is no number: $(tail -1 "$base/err")"; fi
  expect distill-report '/whole/report.html$' wager report "$base/whole"
  expect distill-report-md '^\| rule \| block \| 1 \| ' wager report "$base/whole" --md
  expect distill-draft 'tau [0-9.]+' wager generate -m "$base/target.gguf" -d "$base/whole/kl.gguf" -p "The cat" -n 8
  printf '{"name": "t", "target": {"model": "target.gguf"}, "draft": {"kind": "model", "model": "whole/kl.gguf", "length": 3},
    "sampling": {"temperature": 1}, "prompts": {"file": "prompts.jsonl"}, "max_tokens": 20, "trace": "probs"}' >"$base/traced.json"
  wager run "$base/traced.json" --out "$base/traced" >"$base/out" 2>&1 || fail "distill: no trace"
  expect distill-trace '^kl ' wager distill "$base/distill.json" --out "$base/rejected" --set train.steps=3 \
    --set distill.sources='{"trace": 1, "text": 0}' --set distill.trace="$base/traced/trace.wgt"
}

good_cases() {
  expect help 'commands:' wager --help
  expect version '^wager [0-9]' wager --version
  expect list '^  rejection  .*; lossless$' wager list rules
  expect list-line '^  model  .*coupled\]$' wager list drafters
  expect list-drafter '^draft tree \(model, layer_skip, early_exit, sparse_kv, eagle, block, mtp\):$' wager list drafter early_exit
  expect list-training '^  lr_embedding: .*; default 0$' wager list training
  expect list-training-sources '"of":"distill.sources","option":"student"' wager list training --json
  expect list-rule '^  delta: ' wager list rule typical
  expect list-no-options '^It has no options.$' wager list rule match
  expect list-group '"group":"length policy","of":"ngram","option":"policy"' wager list drafter ngram --json
  [ "$(wager list options | grep -c '^  policy: ')" = 1 ] && [ "$(wager list options | grep -c '^  grow: ')" = 1 ] ||
    fail "list options prints a shared group more than once, or never"
  expect list-json '"kind":"drafter"' wager list --json
  expect inspect 'token_embd.weight' wager inspect "$base/target.gguf"
  expect inspect-json '"name": "token_embd.weight"' wager inspect "$base/target.gguf" --json
  expect inspect-memory '^memory .* bytes a token, .* for 3 x 100 tokens; together' wager inspect "$base/target.gguf" -c 100 -b 3
  expect inspect-tokenizer '^tokenizer llama, .* tokens, .*, eos 2' wager inspect "$base/target.gguf"
  expect inspect-draft 'can draft for it with: model, slem$' wager inspect "$base/target.gguf" -d "$base/draft.gguf"
  wager convert models/story-draft-q8_0.gguf "$base/beyond.folder" >/dev/null &&
    sed -i 's/"added_tokens": \[/&{"id": 4100, "content": "<img>"},/' "$base/beyond.folder/tokenizer.json"
  expect inspect-beyond '"beyond_embedding": [1-9]' wager inspect "$base/beyond.folder" --json
  expect inspect-runs '"runs": true' wager inspect "$base/target.gguf" --json
  expect 'tokenizer train' 'fewer than 300 tokens: no other pair stands in the texts 2 times' \
    wager tokenizer train "$base/prompts.jsonl" --vocab 300 --special '<end>' --out "$base/vocabulary.gguf"
  expect 'tokenizer train, the file' '^ *0  <end>' wager tokenize "$base/vocabulary.gguf" 'A dog<end>' --special
  expect tokenize '[0-9]+ tokens' wager tokenize "$base/target.gguf" "The cat"
  expect synth 'wrote' wager synth --like tiny --type f32 --seed 1 --context 777 --out "$base/long.gguf"
  expect synth-context ', context 777,' wager inspect "$base/long.gguf"
  expect logits '^row 2 ' wager logits "$base/target.gguf" --tokens 1,2,3
  expect logits-tree '^row 3 ' wager logits "$base/target.gguf" --tokens 1,2,3,4 --parents -1,0,0,1
  # Standard input, a byte order mark, the end of the context, a full disk.
  printf '\357\273\277Once upon\n' >"$base/prompt"
  piped=$(digest wager generate -m "$base/target.gguf" -p - -n 9 <"$base/prompt")
  if [ -n "$piped" ] && [ "$piped" = "$(digest wager generate -m "$base/target.gguf" -p "Once upon" -n 9)" ]; then ok
  else fail "generate -p -: not the text of standard input"; fi
  expect context 'tokens \(the context is full\)' wager generate -m "$base/target.gguf" -p "Once upon" -n 99999
  expect context-json '"finish":"context"' wager generate -m "$base/target.gguf" -p "Once upon" -n 99999 --json
  if [ -w /dev/full ]; then
    full() {
      wager "$@" >/dev/full 2>"$base/err"
      if [ $? = 1 ] && grep -q 'cannot write' "$base/err"; then ok; else fail "$1: a full disk is no failure"; fi
    }
    full --version && full inspect "$base/target.gguf" && full generate -m "$base/target.gguf" -p Once -n 4
    full list rules && full prove --rule match --vocab 2 --depth 1 --cases 1 && full check configs/experiments/length-sweep.json --headers
  fi
  expect generate 'tau [0-9.]+' wager generate -m "$base/target.gguf" -d "$base/draft.gguf" -p "Hello" -n 16 --rule rejection --temp 1
  expect vocab-prune '^wrote .*: 40 of 512 tokens \(7.8 %\), which are' wager vocab prune -m "$base/target.gguf" --keep 40 \
    -o "$base/list.json" "$base/prompts.jsonl"
  expect pruned 'accepted [0-9]+ of' wager generate -m "$base/target.gguf" -p Hello -n 8 \
    --draft model:model="$base/draft.gguf",prune="$base/list.json"
  expect vocab-overlap '^shared  ' wager vocab overlap -m models/story-draft-q8_0.gguf -d "$base/target.gguf" "$base/prompts.jsonl"
  expect vocab-overlap-json '"draft_vocabulary":512' wager vocab overlap -m models/story-draft-q8_0.gguf -d "$base/target.gguf" --json
  expect prove 'rejection' wager prove --rule rejection --vocab 2 --depth 2 --cases 5
  expect prove-json '"rule":"match"' wager prove --rule match --vocab 2 --depth 2 --cases 5 --json
  # A page of published results has what their tables say, and the reason why no text is compared.
  if wager compare results/quickstart results/auto --no-drawings --html "$base/page.html" >/dev/null && grep -q '"kind":"compare"' "$base/page.html" &&
    [ "$(grep -o '"published":true' "$base/page.html" | wc -l)" = 2 ] && ! grep -q 'unknown processor' "$base/page.html"; then ok
  else fail "compare --html: no page of published results"; fi
  # A program that answers with one token keeps every check of a drafter; one with three goes past the end of the text.
  talker='while read -r m; do case $m in *forget*) ;; *) echo "{\\"tokens\\":[%s]}";; esac; done\n'
  printf "$talker" 1 >"$base/one.sh" && printf "$talker" 1,1,1 >"$base/three.sh"
  expect prove-process '^room +holds' wager prove --drafter "process:command=sh '$base/one.sh'" --vocab 2 --length 2 --cases 1
  if wager prove --drafter "process:command=sh '$base/three.sh'" --vocab 2 --length 2 --cases 1 >"$base/out" 2>&1; then
    fail "prove-process: a draft past the end of the text passes"
  elif grep -q '^room  *FAILS' "$base/out"; then ok
  else fail "prove-process: a draft past the end of the text has another finding"; fi
  expect bench-forward '"v":' wager bench forward -m "$base/target.gguf" --rows 1,8 --repeats 2 --json
  expect bench-kernels '^matmul +q4_k +[a-z0-9]+ +3 +[0-9.]+ +[0-9.]+ +[0-9]+%' wager bench kernels --op matmul --type q4_k --rows 1,3 \
    --megabytes 2 --repeats 1
  expect bench-kernels-json '"op":"attention",.*"type":"q8"' wager bench kernels --op attention --type q8 --context 70 --rows 2 --repeats 2 \
    --json
  expect bench-kernels-prepare '^prepare +q8_0 ' wager bench kernels --op prepare --rows 1,65 --repeats 1
  expect bench-round 'plain' wager bench round -m "$base/target.gguf" -d "$base/draft.gguf" --repeats 2 -n 16
  expect convert 'wrote' wager convert "$base/target.gguf" --out "$base/made.gguf" --type f16
  exports
  names
  expect parts '"pattern": *"\^@' wager list --schema
  expect schema '"\$schema": "https://json-schema.org/draft/2020-12/schema"' wager list --schema
  printf '{"name": "t", "target": {"model": "%s", "threads": 1}, "prompts": {"file": "%s"}, "max_tokens": 8}' \
    "$base/target.gguf" "$base/prompts.jsonl" >"$base/run.json"
  expect check 'caches at most [0-9.]+ MB' wager check "$base/run.json"
  mkdir "$base/new folder"
  expect init "next: .*wager'? check " wager init "$base/new folder/first try.json" -m "$base/target.gguf" -d "$base/draft.gguf" -p "$base/prompts.jsonl"
  expect init-parents '^wrote ' wager init "$base/init/a/b.json" -m "$base/target.gguf"
  expect init-relative '"model": "../draft.gguf"' cat "$base/new folder/first try.json"
  expect init-checks '^    5  draft.length=8 sampling.temperature=0.8' wager check "$base/new folder/first try.json"
  expect init-lookup "next: .*wager'? check " wager init "$base/lookup.json" -m "$base/target.gguf" -p "$base/prompts.jsonl"
  expect init-lookup-checks '^    5  draft.k=8 sampling.temperature=0.8' wager check "$base/lookup.json"
  expect init-bundled "next: .*wager'? check " wager init "$base/bundled.json"
  expect check-warns '^warning   cell 0: top_k: no effect at temperature 0' wager check "$base/run.json" --set sampling.top_k=3
  expect check-headers '^    0  draft.kind=retrieval' wager check "$base/run.json" --headers --set 'draft={"kind":"retrieval","datastore":"none"}'
  expect check-auto 'auto: at each round no draft, or one of: retrieval:datastore=none' \
    wager check "$base/run.json" --headers --set 'draft={"kind":"auto","of":"retrieval:datastore=none"}'
  for open in "check" "check --json" "run --dry-run"; do # as a run would be refused
    if ! wager $open "$base/run.json" --set 'draft={"kind":"retrieval","datastore":"none"}' >"$base/out" 2>"$base/err" &&
      [ ! -s "$base/out" ] && grep -q '^wager: cell 0: none: cannot open the datastore' "$base/err"; then ok
    else fail "$open: a missing datastore passes"; fi
  done
  expect probe 'time      about 0:00:0[0-9]' wager check "$base/run.json" --probe
  expect run 'speed-up' wager run "$base/run.json" --out "$base/run-a"
  expect resume 'speed-up' wager run "$base/run.json" --resume --out "$base/run-a"
  expect run-again '^machine: .+, [0-9]+ cores, kernels [a-z0-9]+; load [0-9.]+ before the run' wager run "$base/run.json" --out "$base/run-b" --set seed=2
  expect run-probs 'speed-up' wager run "$base/run.json" --out "$base/run-p" --set trace=probs --set sampling.temperature=1 \
    --set 'draft={"kind":"model","model":"'"$base/draft.gguf"'","length":4}'
  expect replay '^ +0  rejection +- +([0-9]+) +\1 ' wager replay "$base/run-p"
  expect replay-all '^ +0  block ' wager replay "$base/run-p/trace.wgt" --rule all --length 2
  expect replay-json '"recorded_rule":"rejection"' wager replay "$base/run-p" --rule match --json
  expect audit '^  drafts and decisions follow the rule at this evidence' wager audit "$base/run-p"
  awk '/^```json$/ { p = 1; next } /^```$/ { p = 0 } p' docs/audit.md >"$base/page.jsonl"
  expect audit-page '^engine 1.2, T = 0.8, rule rejection: lossless$' wager audit "$base/page.jsonl"
  sed 's/"plain": \[5, 6, 7\]/"plain": [5, 8]/' "$base/page.jsonl" >"$base/differs.jsonl"
  wager audit "$base/differs.jsonl" --json >"$base/out"
  if [ $? = 1 ] && grep -q '"why": "line 5: token 1 differs from plain decoding' "$base/out"; then ok; else fail "audit: a defect"; fi
  expect attribution 'the drafter loses 0\.' wager replay "$base/run-p" --attribution
  expect attribution-json '"calibration":' wager replay "$base/run-p" --attribution --json
  expect exact '^ +0  model .* block ' wager replay --exact "$base/run-p/config.json" --set trace=none
  expect compare 'same texts +2 of 2 equal' wager compare "$base/run-a" "$base/run-b"
  expect compare-json '"verdict":' wager compare "$base/run-a" "$base/run-b" --json
  expect compare-md '^# Comparison' wager compare "$base/run-a" "$base/run-b" --md
  if command -v python3 >/dev/null; then
    for i in 1 2 3 4 5; do echo "{\"prompt\": \"The cat sat $i\"}"; done >"$base/five.jsonl"
    expect null-experiment '^verdict +[01]\.[0-9]+ +[01]\.[0-9]+$' tests/program/null_experiment.py -n 3 --wager "$program" \
      --set "prompts.file=$base/five.jsonl" --out "$base/null" "$base/run.json"
  else echo "SKIPPED null-experiment: needs python3"; fi
  # A published result: config.json and summary.json alone, as under results/.
  mkdir "$base/published" && cp "$base/run-a/config.json" "$base/run-a/summary.json" "$base/published/"
  expect report-published 'published/report.html$' wager report "$base/published"
  expect report-published-page '"published":true' cat "$base/published/report.html"
  expect report-published-table '^drafter +rule .*same text$' wager report "$base/published" --table
  expect report-published-md '^A published result: without its requests and its machine.$' wager report "$base/published" --md
  expect report-published-csv '^cell,draft[.].*,drafter,rule,' wager report results/quickstart --csv
  expect compare-published 'same texts +2 of 2 equal' wager compare "$base/published" "$base/run-a"
  expect compare-committed '^  speed-ups +([0-9.]+x) . \1$' wager compare results/quickstart:0 results/quickstart:0
  expect run-again-from-results '^    0  draft.kind=none' wager check "$base/published/config.json"
  if git check-ignore -q . 2>/dev/null || [ $? = 1 ]; then # a clone: pages stay out of what is tracked
    for page in results/index.html results/quickstart/report.html; do
      if git check-ignore -q "$page"; then ok; else fail "report would write $page, which git does not ignore"; fi
    done
  fi
  expect report 'run-a/report.html$' wager report "$base/run-a"
  expect report-md '^\| none \| rejection \| 0 \|' wager report "$base/run-a" --md
  expect report-csv '^cell,drafter,rule,.*,tau,tau_lo,tau_hi,.*,median_ttft_ms,.*,phase_ms_draft,' wager report "$base/run-a" --csv
  expect report-csv-by '^0,0,,,,,[0-9]+$' wager report "$base/run-a" --csv --by position
  expect report-latex '^none & rejection & 0 & [0-9.]+ \\\\$' wager report "$base/run-a" --latex --columns median_ttft_ms
  if wager report "$base/run-a" --figures "$base/figures" >"$base/out" 2>&1; then # where gnuplot is
    expect report-latex-figures '^.includegraphics.width=.linewidth..*figures/speedups.$' \
      wager report "$base/run-a" --latex --figures "$base/figures"
    if [ -s "$base/figures/speedups.pdf" ] && grep -q '^.begin{tabular}' "$base/out"; then ok; else fail "report: no table and figures"; fi
  fi
  expect report-columns '^drafter +rule +temp +TTFT p50 +MBU$' wager report "$base/run-a" --columns median_ttft_ms,mbu
  expect report-md-columns '^\| none \| rejection \| 0 \| [0-9.]+ \|$' wager report "$base/run-a" --md --columns p99_tpot_ms
  expect columns '^  mean_acceptance_length +-$' wager columns --as vllm "$base/run-a"
  expect columns-json '"n-alpha":\[\],"new_tokens":[0-9]+,"tau":1.0' wager columns --as eagle --json "$base/run-a"
  expect columns-list '^  mean_acceptance_length += 1 \+ accepted / spec_decode_num_drafts$' wager columns
  expect columns-list-json '"engine":"llama.cpp","formula":"100 x accepted / drafted"' wager columns --json
  expect list-columns '^  speedup +ratio ' wager list columns
  expect list-fields '^  speculative_decoding.alpha_sum ' wager list fields
  outputs
  plans
  expect plan-predicts '<- best|plain decoding is the fastest' wager plan -m "$base/target.gguf" -d "$base/draft.gguf" --batch 1 \
    -p "$base/prompts.jsonl" -n 12
  expect plan-predicts-anywhere '^alpha .* of 12 texts at temperature 0$' env -C / "$program" plan -m "$base/target.gguf" \
    -d "$base/draft.gguf" --batch 1 -n 12
  expect plan-few '^no interval of tau: it takes 5 texts' wager plan -m "$base/target.gguf" -d "$base/draft.gguf" --batch 1 \
    -p "$base/prompts.jsonl" -n 12
  expect plan-q8 '<- best|plain decoding is the fastest' wager plan -m "$base/target.gguf" -d "$base/draft.gguf" --alpha 0.8 --kv-type q8 \
    --pin
  expect plan-given '^alpha +0.800, as given' wager plan -m "$base/target.gguf" -d "$base/draft.gguf" --alpha 0.8 --accept 0.7/0.2 --batch 2
  expect plan-batch '^ +8 +[a-z]+ +[0-9]+ .*x$' wager plan -m "$base/target.gguf" -d "$base/draft.gguf" --alpha 0.8 --batch 1..8
  expect plan-batch-json '"batch":8,.*"kind":"batch"' wager plan -m "$base/target.gguf" -d "$base/draft.gguf" --alpha 0.8 --batch 1..8 --json
  expect plan-batch-vllm '"num_speculative_tokens_per_batch_size":\[\[1,.*8,[0-9]+\]\]\}$' wager plan -m "$base/target.gguf" \
    -d "$base/draft.gguf" --alpha 0.8 --batch 1..8 --vllm
  expect plan-json '"kind":"chain".*"predicted_speedup":' wager plan -m "$base/target.gguf" -d "$base/draft.gguf" --alpha 0.8 --json
  expect index 'index.html$' wager report "$base" --out "$base/index.html"
  expect datastore '^wrote .* tokens of 1 text' wager datastore build -m "$base/target.gguf" --out "$base/store" "$base/prompts.jsonl"
  expect bench-tokenizer '"text":"marks",' wager bench tokenizer -m "$base/target.gguf" --text README.md --repeats 1 --json
  expect bench-tokenizer-table '^token prefixes +1048576 ' wager bench tokenizer -m "$base/target.gguf" --repeats 1
  expect bench-draft '"propose_us":' wager bench draft --draft suffix:tree=true --history 512 --json
  expect bench-draft-store '^retrieval ' wager bench draft -m "$base/target.gguf" --draft "retrieval:datastore=$base/store" --history 256
  expect skip-search 'speed-up: expected' wager skip-search -m "$base/target.gguf" -p "$base/prompts.jsonl" -n 8 --time
  expect skip-search-q8 'speed-up: expected' wager skip-search -m "$base/target.gguf" -p "$base/prompts.jsonl" -n 8 --tries 9 \
    --kv-type q8 --pin
  local found
  found=$(wager skip-search -m "$base/target.gguf" -p "$base/prompts.jsonl" -n 8 --tries 9 --skip 2 --out "$base/set.json" |
    sed -n 's/^--draft //p')
  expect skip-search-json '"expected_speedup":' wager skip-search -m "$base/target.gguf" -p "$base/prompts.jsonl" -n 8 --tries 9 \
    --skip 2 --threads 1 --json --out "$base/again.json"
  if cmp "$base/set.json" "$base/again.json"; then ok; else fail "skip-search: another answer the second time"; fi
  expect skip-found 'layer_skip, match' wager generate -m "$base/target.gguf" -p Hello -n 9 --draft "$found"
  tap_dumps
  constrained_runs
  local chat written
  chat=$(digest wager generate -m "$base/target.gguf" -p Hello -n 9 --chat vicuna --system "Be kind.")
  written=$(digest wager generate -m "$base/target.gguf" -p "Be kind. USER: Hello ASSISTANT:" -n 9)
  if [ -n "$chat" ] && [ "$chat" = "$written" ]; then ok; else fail "generate --chat: not what the template's words give"; fi
  printf "{%% for m in messages %%}{{ m.role ~ ': ' ~ m.content }}\\n{%% endfor %%}{{ x|tojson }}" >"$base/t.jinja"
  expect template '^system: S$' wager template "$base/target.gguf" --template "$base/t.jinja" -p 'Hi</s>' --system S --set x=true
  expect template-set '^true$' wager template "$base/target.gguf" --template "$base/t.jinja" -p Hi --set x=true
  expect template-ids '^[0-9]+ tokens$' wager template "$base/target.gguf" --template "$base/t.jinja" -p Hi --set x=1 --ids
  local drafts
  drafts=$(tested_drafters | sed 's/:.*//' | sort -u | paste -sd, | sed 's/,/, /g')
  if tested_files && [ "$drafts" = "$(tr , '\n' <<<"$drafters" | tr -d ' ' | sort | paste -sd, | sed 's/,/, /g')" ]; then ok
  else fail "list drafters: drafters with options for tests are: $drafts"; fi
  heads
  same_text --temp 0
  same_text --temp 0.7 --top-p 0.9 --seed 3
  same_text --temp 1 --threads 3
  local a b
  a=$(wager logits "$base/target.gguf" --tokens 5,6,7 --out "$base/a.f32" && cksum <"$base/a.f32")
  b=$(WG_CPU=ref wager logits "$base/target.gguf" --tokens 5,6,7 --threads 1 --out "$base/b.f32" && cksum <"$base/b.f32")
  if [ -n "$a" ] && [ "$a" = "$b" ]; then ok; else fail "logits: scalar reference and vector kernels differ"; fi
}

prepare || { echo "FAIL: the tiny models could not be made"; exit 1; }
for file in tests/bad/*.txt; do
  case $file in */config.txt | */gguf.txt) ;; *) transcript "$file" ;; esac # the two are those of unit tests
done
[ "$update" != --update ] || exit 0
good_cases
train_cases
distill_cases
echo "program: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
