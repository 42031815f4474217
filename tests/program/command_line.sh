#!/usr/bin/env bash
# One form of command: a model is -m MODEL or a word, everywhere; help, manual pages and completion have every command, flag and value;
# misspelled flags are told with the nearest. usage: tests/program/command_line.sh WAGER
set -u
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
base=$(mktemp -d "${TMPDIR:-/tmp}/wager command.XXXXXX")
trap 'rm -rf "$base"' EXIT
wager() { "$program" "$@"; }
failed=0 checks=0 stores=0
fail() { echo "FAIL $*"; failed=$((failed + 1)); }
check() { checks=$((checks + 1)); } # counts what was compared, so that no list may be empty
model=models/story-target-q8_0.gguf other=models/story-draft-q8_0.gguf
printf '{"prompt": "The cat sat"}\n' >"$base/prompts.jsonl"

# ---- JSON on a terminal is JSON: no colour stands before it
if command -v script >/dev/null; then
  check
  found=$(env -u NO_COLOR TERM=xterm script -qec "'$program' generate -m $other --draft suffix -p 'The cat' -n 4 --json" /dev/null </dev/null)
  [ "${found:0:1}" = "{" ] || fail "generate --json on a terminal begins with $(printf '%q' "${found:0:8}")"
fi

# ---- a model: -m and a word give the same output, of commands without times in it; two models are refused
same() { # NAME WORDS-BEFORE... @ WORDS-BEHIND...
  local before=() out_of_word out_of_flag
  while [ "$1" != @ ]; do before+=("$1"); shift; done
  shift
  check
  rm -rf "$base/made"
  out_of_word=$(wager "${before[@]}" "$model" "$@" 2>&1) || fail "${before[*]} MODEL: $out_of_word"
  rm -rf "$base/made"
  out_of_flag=$(wager "${before[@]}" "$@" -m "$model" 2>&1) || fail "${before[*]} -m MODEL: $out_of_flag"
  local times='s/"[a-z_]*\(ms\|tok_s\|seconds\)":[-0-9.e]*//g; s/, [0-9.]* tok\/s\|in [0-9]* ms//g; s/[0-9.]* *\(MB\/s\|tokens\/s\|s\|ms\)\b//g'
  [ "$(sed "$times" <<<"$out_of_word")" = "$(sed "$times" <<<"$out_of_flag")" ] ||
    fail "${before[*]}: MODEL and -m MODEL differ: $(diff <(echo "$out_of_word") <(echo "$out_of_flag"))"
  rm -rf "$base/made"
  wager "${before[@]}" -m "$model" "$other" "$@" >"$base/out" 2>&1
  [ $? = 2 ] && grep -q "two models, '$model' and '$other'\|unexpected word" "$base/out" || fail "${before[*]}: two models: $(cat "$base/out")"
  wager "${before[@]}" "$@" >"$base/out" 2>&1
  [ $? = 2 ] && grep -qi 'model is missing\|-m FILE is missing\|expected one name of what is written' "$base/out" || fail "${before[*]}: no model: $(cat "$base/out")"
}
same generate @ -p "Once upon" -n 8 --json
same logits @ --tokens 1,2,3
same inspect @
same template @ -p Hi --template "$base/prompts.jsonl"
same tokenize @ "The cat"
same quantize @ "$base/made" --type q4_0
same convert @ "$base/made.gguf" --type q8_0
same export @ --to "$base/made/above/folder"
same taps @ --out "$base/made/above/dump" --prompts "$base/prompts.jsonl"
same skip-search @ --prompts "$base/prompts.jsonl" -n 4 --tries 2 --json
same bench perplexity @ --text README.md --tokens 40

check
[ "$(wager generate "$model" -n 1e1 --json | grep -o '"tokens":[0-9]*')" = '"tokens":10' ] || fail "generate -n 1e1: not ten tokens"

# tokenize: a file is a text, and --out has the ids that are printed
check
printf 'The cat\n\tsaid no' >"$base/text"
wager tokenize "$model" --file "$base/text" --out "$base/ids" >"$base/out" 2>&1 || fail "tokenize --file: $(cat "$base/out")"
[ "$(od -An -v -t d4 -w4 "$base/ids" | tr -d ' ')" = "$(wager tokenize "$model" "$(cat "$base/text")" --json | sed 's/.*"id":\([0-9]*\).*/\1/')" ] ||
  fail "tokenize --file --out: $(od -An -t d4 "$base/ids")"

# Of commands that take any number of other words behind it, no word can be told from a second model.
for form in "$model" "-m $model"; do
  wager datastore build $form --out "$base/store$((++stores))" "$base/prompts.jsonl" >"$base/out" 2>&1 || fail "datastore build $form: $(cat "$base/out")"
  wager vocab prune $form --keep 20 --out "$base/list$stores" "$base/prompts.jsonl" >"$base/out" 2>&1 || fail "vocab prune $form: $(cat "$base/out")"
done
cmp "$base/store1" "$base/store2" && cmp "$base/list1" "$base/list2" || fail "datastore, vocab: MODEL and -m MODEL differ"
wager init "$model" "$base/a.json" -p "$base/prompts.jsonl" >"$base/out" && wager init -m "$model" "$base/b.json" -p "$base/prompts.jsonl" >"$base/out" &&
  cmp <(sed 1,5d "$base/a.json") <(sed 1,5d "$base/b.json") || fail "init: MODEL and -m MODEL differ"

# ---- init where the checkout is not: any model, and prompts of the program, beside the file
cp "$other" "$base/elsewhere.gguf"
mkdir "$base/away"
(cd "$base/away" && wager init mine.json -m ../elsewhere.gguf && cmp mine-prompts.jsonl "$OLDPWD/configs/prompts/quickstart.jsonl" &&
  wager check mine.json) >"$base/out" 2>&1 || fail "init elsewhere: $(cat "$base/out")"
grep -q '^wrote mine.json; next: ' "$base/out" || fail "init elsewhere: $(cat "$base/out")"
(cd "$base/away" && rm mine.json && wager init mine.json -m ../elsewhere.gguf) >"$base/out" 2>&1
[ $? = 2 ] && grep -q 'mine-prompts.jsonl is there already' "$base/out" && [ ! -e "$base/away/mine.json" ] || fail "init: prompts: $(cat "$base/out")"

# ---- a reader that has gone away: no message, and no failure
printf '{"name": "t", "target": {"model": "%s"}, "draft": {"kind": "ngram"}, "prompts": {"file": "prompts.jsonl"}, "max_tokens": 4}' \
  "$PWD/$other" >"$base/config.json"
to_nobody() {
  check
  { sleep 0.1; wager "$@" 2>"$base/said"; echo $? >"$base/status"; } | :
  [ "$(cat "$base/status")" = 0 ] && ! grep -q 'wager: \|cannot' "$base/said" || fail "$* with nobody to read: $(cat "$base/status" "$base/said")"
}
to_nobody run "$base/config.json" --out "$base/result"
for form in --csv --md --table --latex; do to_nobody report "$base/result" $form; done
to_nobody list columns
to_nobody generate "$other" -n 4

# ---- help, manual pages, misspelled flags
commands=$(wager list commands --json | sed -n 's/.*"name":"\([a-z-]*\)".*/\1/p')
for shell in bash zsh fish; do wager completion $shell >"$base/$shell" || fail "completion $shell"; done
bash -n "$base/bash" || fail "completion bash: syntax"
command -v zsh >"$base/out" && { zsh -n "$base/zsh" || fail "completion zsh: syntax"; }
command -v fish >"$base/out" && { fish -n "$base/fish" || fail "completion fish: syntax"; }
. "$base/bash"
completed() { # WORD... : what bash offers behind them
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _wager
  echo " ${COMPREPLY[*]} "
}
has() { # LIST WORD...
  local list=$1 word
  shift
  for word; do [[ $list == *" $word "* ]] || fail "completion: no $word in:$list"; check; done
}
# The flags of a command, as its help has them.
flags_of() { wager "$1" --help | sed -n 's/^  \(-[a-zA-Z], \)\{0,1\}\(--*[a-z][a-z0-9-]*\).*/\2/p' | grep -v '^--help$\|^--version$'; }
[ -x "$(dirname "$program")/wager-serve" ] || commands=$(grep -vx serve <<<"$commands")
for command in $commands; do
  wager "$command" --help >"$base/help" || fail "$command --help"
  cmp -s "$base/help" <(wager help "$command") || fail "help $command is not $command --help"
  wager help "$command" --man >"$base/page" || fail "help $command --man"
  grep -q "^.TH WAGER" "$base/page" || fail "help $command --man: no title"
  if command -v groff >"$base/out"; then
    groff -man -Tascii -ww "$base/page" >"$base/out" 2>"$base/said"
    [ ! -s "$base/said" ] || fail "help $command --man: $(head -3 "$base/said")"
  fi
  offered=$(completed wager "$command" -)
  has "$(completed wager "")" "$command"
  has "$(completed wager help "")" "$command"
  flags=$(flags_of "$command" | sort)
  has "$offered" $flags
  in_page=$(sed -n -e 's/\\-/-/g' -e 's/^\\fB\(-[a-zA-Z]\\fR, \\fB\)\{0,1\}\(-[a-z0-9-]*\)\\fR.*/\2/p' "$base/page" | grep -vx -e '--help' -e '--version')
  in_zsh=$(sed -n "/^    $command)/,/;;\$/s/^        '\**\(-[a-z0-9-]*\)\[.*/\1/p" "$base/zsh" | grep -vx -e '--help' -e '--version')
  in_fish=$(sed -n "s/.*_from $command' -\([ls]\) \([a-z0-9-]*\).*/\1\2/p" "$base/fish" | sed 's/^l/--/; s/^s/-/' | grep -vx -e '--help' -e '--version')
  [ "$flags" = "$(sort <<<"$in_page")" ] || fail "help $command --man: other flags: $in_page"
  [ "$(grep -- -- <<<"$flags")" = "$(grep -- -- <<<"$in_zsh" | sort)" ] || fail "completion zsh, $command: other flags: $in_zsh"
  [ "$flags" = "$(sort <<<"$in_fish")" ] || fail "completion fish, $command: other flags: $in_fish"
  flag=$(grep -m 1 -- '--.....' <<<"$flags") || continue
  check
  wager "$command" "${flag}x" >"$base/out" 2>&1
  [ $? = 2 ] && grep -q "(did you mean '$flag'?)" "$base/out" || fail "$command ${flag}x: $(cat "$base/out")"
done
for name in $(wager list drafters --json | sed -n 's/.*"kind":"drafter".*"name":"\([a-z_]*\)".*/\1/p'); do
  has "$(completed wager generate --draft "")" "$name"
  grep -q "[ (']$name[ )']" "$base/zsh" && grep -q "[ ']$name[ ']" "$base/fish" || fail "completion: no drafter $name"
done
has "$(completed wager list drafter suf)" suffix
has "$(completed wager list rule "")" match rejection
for command in generate run bench; do has "$(cd models && completed wager $command --profile "")" nominal new README.md; done
for name in $(wager list rules --json | sed -n 's/.*"kind":"rule".*"name":"\([a-z_]*\)".*/\1/p'); do has "$(completed wager bench --rule "")" "$name"; done
has "$(completed wager quantize --type "")" q4_k q8_0
has "$(completed wager report --by "")" cell position category turn part
has "$(completed wager vocab "")" prune overlap
has "$(completed wager columns --as "")" vllm sglang llama.cpp
has "$(completed wager synth --like "")" tiny llama-3-8b
has "$(completed wager run --device "")" cpu cuda:0 auto
has "$(completed wager report --columns "")" wide speedup

[ "$checks" -gt 500 ] || fail "$checks checks only"
echo "command_line: $checks checks, $failed failed"
[ "$failed" -eq 0 ]
