#!/usr/bin/env bash
# Process targets that compute the bundled model to the bit: wager's own engine in another process, and, where there is numpy, the
# same in Python. Logits, hidden states, texts and traces must be those of the model run in the program; results say "law only"; a
# program that dies fails its request and not the run. usage: tests/program/process_target.sh WAGER SERVE_MODEL NEAREST, a plug-in
# that drafts by hidden states
set -u
wager=$(realpath "$1") serve=$(realpath "$2") nearest=$(realpath "$3")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
python=/usr/bin/python3 # the one that the distribution's numpy belongs to
"$python" -c 'import numpy' 2>/dev/null || python=python3
dir=$(mktemp -d "${TMPDIR:-/tmp}/wager-process.XXXXXX")
trap 'rm -rf "$dir"' EXIT
model=$PWD/models/story-draft-q8_0.gguf
export OPENBLAS_NUM_THREADS=1
fail() { echo "FAILED: $1"; [ -s "$dir/said" ] && head -5 "$dir/said"; exit 1; }

# Rows of a chain and of a tree.
logits() { "$wager" logits "$model" "$@" 2>"$dir/said"; }
same_logits() { # NAME COMMAND
  for what in "--tokens 0,100,200,300,400,500,600" "--tokens 0,5,6,7,8,9 --parents -1,0,0,1,1,4"; do
    rm -f "$dir/own" "$dir/theirs"
    logits $what --out "$dir/own" >/dev/null || fail "$1: no logits"
    logits $what --out "$dir/theirs" --target "process:command=$2" >/dev/null || fail "$1: no logits of the process"
    cmp "$dir/own" "$dir/theirs" || fail "$1: logits differ"
  done
}

# Hidden states: as a dump, and as a drafter reads them.
printf 'Once upon a time there was a dog who liked to run in the park with his friend.' >"$dir/text"
layers=$("$wager" inspect "$model" | sed -n 's/.*[.]block_count  *//p')
states() { "$wager" taps -m "$model" --text "$dir/text" --taps $((layers + 1)),0,$((layers - 1)),$layers --type f32 "$@" >/dev/null 2>"$dir/said"; }
draft() {
  "$wager" generate -m "$model" -p "Once upon a time there was a dog" -n 30 --draft "plugin:path=$nearest" --json "$@" 2>"$dir/said" |
    grep -o '"accepted":[1-9][0-9]*\|"output_sha256":"[0-9a-f]*"'
}
states --out "$dir/states" || fail "no hidden states"
draft >"$dir/drafted" && [ "$(wc -l <"$dir/drafted")" = 2 ] || fail "no drafts by hidden states"
same_states() { # NAME COMMAND
  states --out "$dir/states-$1" --target "process:command=$2" || fail "$1: no hidden states of the process"
  diff -r "$dir/states" "$dir/states-$1" >"$dir/said" || fail "$1: hidden states differ"
  draft --target "process:command=$2" | diff - "$dir/drafted" || fail "$1: drafts by hidden states differ"
}

# A config in two forms: texts, draws and rows of p of every round.
config() { # TARGET
  cat <<END
{"name": "process", "target": {"model": "$model", "threads": 1$1}, "draft": {"kind": "recycle", "nodes": 12}, "verify": {"rule": "rejection"},
 "prompts": {"file": "prompts.jsonl"}, "max_tokens": 8, "trace": "probs", "batch": 2, "sweep": {"sampling.temperature": [0, 0.9]}}
END
}
printf '{"prompt": "Once upon a time there was a dog"}\n{"prompt": "The cat"}\n' >"$dir/prompts.jsonl"
run() { "$wager" run "$dir/$1.json" --out "$dir/$1" >/dev/null 2>"$dir/said" || fail "$1: the run"; }
texts() { grep -o '"output_sha256":"[0-9a-f]*"' "$dir/$1/requests.jsonl"; }
# Every number that follows from the rows of p and q of the rounds, with all its digits.
replayed() { "$wager" replay "$dir/$1" --rule rejection --rule match --json 2>"$dir/said" || fail "$1: replay"; }
same_run() { # NAME COMMAND
  config ", \"kind\": \"process\", \"command\": \"$2\"" >"$dir/$1.json"
  run "$1"
  [ -n "$(texts native)" ] && [ "$(texts native)" = "$(texts "$1")" ] || fail "$1: texts differ"
  [ "$(replayed native)" = "$(replayed "$1")" ] || fail "$1: traces differ"
  grep -q '"law_only": *true' "$dir/$1/summary.json" || fail "$1: not said to be law only"
  grep -q '"equals_baseline": *null' "$dir/$1/summary.json" || fail "$1: compared with the baseline token by token"
  grep -q '"failed": *[1-9]' "$dir/$1/summary.json" && fail "$1: requests failed"
  grep -aq '"law_only":true' "$dir/$1/trace.wgt" || fail "$1: the trace does not say law only"
}

same_logits serve_model "'$serve' '$model'"
same_states serve_model "'$serve' '$model'"
# Of a folder that is not read, the tokenizer alone is the model.
"$wager" convert "$model" "$dir/folder" --type f32 >/dev/null || fail "no folder"
text() { "$wager" generate -m "$@" -p "Once upon a time" -n 12 --json 2>"$dir/said" | grep -o '"output_sha256":"[0-9a-f]*"'; }
[ -n "$(text "$model")" ] && [ "$(text "$model")" = "$(text "$dir/folder/tokenizer.json" --target "process:command='$serve' '$model'")" ] ||
  fail "a tokenizer.json for a target elsewhere"

config "" >"$dir/native.json"
run native
grep -q '"law_only": *false' "$dir/native/summary.json" || fail "the model is said to be law only"
same_run serve "'$serve' '$model'"

# A program that ends now and then: some requests fail with the reason, the others have their texts.
cat >"$dir/mortal.sh" <<END
dd bs=1 count=700 status=none | "$serve" "$model"
END
config ", \"kind\": \"process\", \"start_ms\": 60000, \"command\": \"sh $dir/mortal.sh\"" | sed 's/"sweep".*/"alpha": false}/; s/"trace": "probs", //' >"$dir/mortal.json"
run mortal
grep -q '"first_failure":.*target process: the program .sh .*mortal.sh. ended with status 0 before it answered' "$dir/mortal/summary.json" ||
  fail "a program that ends"
grep -q '"status":"ok"' "$dir/mortal/requests.jsonl" || fail "a program that ends takes all requests with it"
for text in $(grep '"status":"ok"' "$dir/mortal/requests.jsonl" | grep -o '"output_sha256":"[0-9a-f]*"'); do
  texts native | grep -q "$text" || fail "a program that ends changes the texts of other requests"
done

said="wager's engine"
if "$python" -c 'import numpy' 2>/dev/null; then
  same_logits numpy "$python examples/process-target/numpy_target.py '$model'"
  same_states numpy "$python examples/process-target/numpy_target.py '$model'"
  same_run numpy "$python '$PWD/examples/process-target/numpy_target.py' '$model'"
  said="$said and numpy"
else
  echo "SKIPPED in part: numpy_target.py needs python3 with numpy (python3-numpy)"
fi
echo "ok: $said"
