#!/usr/bin/env bash
# The profile of the machine as a user meets it: what is decided by prices repeats with them, a run keeps its own and goes on with
# it, and bad ones are refused by name. usage: tests/program/profile.sh WAGER
set -u
wager=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
base=$(mktemp -d "${TMPDIR:-/tmp}/wager-profile.XXXXXX")
trap 'chmod -R u+w "$base"; rm -rf "$base"' EXIT
export XDG_CACHE_HOME=$base/cache NO_COLOR=1
fail() { echo "FAIL: $1"; exit 1; }
target=models/story-target-q8_0.gguf draft=models/story-draft-q8_0.gguf given=configs/profiles/story.json
auto=(--draft "auto:of=model:model=$draft;length=8" --temp 0.8 --rule rejection -p "Once upon a time" -n 100)
generate() { "$wager" generate -m $target "${auto[@]}" --json "$@" 2>"$base/err"; }
value() { grep -o "\"$1\":[^,}]*" | head -1 | cut -d: -f2 | tr -d '"'; }

# Text and counts are a function of the profile: the same with any number of threads; and drafts are accepted.
one=$(generate --profile $given --threads 1) || fail "generate: $(cat "$base/err")"
two=$(generate --profile $given --threads 2)
for key in output_sha256 accepted drafted profile; do
  [ -n "$(value $key <<<"$one")" ] && [ "$(value $key <<<"$one")" = "$(value $key <<<"$two")" ] || fail "$key differs: $one $two"
done
[ "$(value accepted <<<"$one")" -ge 30 ] || fail "accepted $(value accepted <<<"$one") of 100 tokens"

# Prices that are measured: said aloud, and either kept or, under load, not.
new=$(generate) || fail "generate: $(cat "$base/err")"
grep -q '^wager: measuring what passes cost on this machine (once: about 2 s, or a few passes of a large model)$' "$base/err" || fail "not said: $(cat "$base/err")"
grep -q '^wager: measured in .* s, kept in .*/cache/wager/profiles/[0-9a-f]*\.json$\|^wager: warning: measured under load' "$base/err" ||
  fail "kept or not: $(cat "$base/err")"
[ "$(value profile <<<"$new" | wc -c)" = 65 ] || fail "no digest: $new"
[ "$(generate --profile nominal | value profile)" = nominal ] || fail "nominal"
[ -s "$base/err" ] && fail "nominal prices say something: $(cat "$base/err")"
[ "$("$wager" generate -m $target -p Once -n 4 --json | value profile)" = null ] || fail "plain decoding has no use for prices"

# A run: the file is in its folder, its digest in the summary; a check measures nothing.
cat >"$base/run.json" <<END
{"name": "p", "target": {"model": "$PWD/$target"}, "draft": {"kind": "auto", "of": "model:model=$PWD/$draft;length=8"}, "verify": {"rule": "rejection"},
 "sampling": {"temperature": 0.8}, "prompts": {"file": "$PWD/configs/prompts/quickstart.jsonl", "limit": 4}, "max_tokens": 24, "alpha": false}
END
"$wager" check "$base/run.json" >"$base/out" 2>&1 || fail "check: $(cat "$base/out")"
grep -q measuring "$base/out" && fail "a check measures"
"$wager" run "$base/run.json" --out "$base/run" >/dev/null 2>"$base/err" || fail "run: $(cat "$base/err")"
digest=$(sha256sum <"$base/run/profile.json" | cut -d' ' -f1)
for file in summary machine; do
  grep -q "\"profile\": *\"$digest\"" "$base/run/$file.json" || fail "$file.json has another profile than $digest"
done
texts() { grep '"cell":0' "$1/requests.jsonl" | grep -o '"id":"[^"]*"\|"output_sha256":"[0-9a-f]*"' | paste - - | sort; }
drafted() { awk -F'"drafted":' '/"cell":0/ { split($2, n, ","); all += n[1] } END { print all + 0 }' "$1"; }
"$wager" run "$base/run.json" --profile "$base/run/profile.json" --set batch=3 --out "$base/same" >/dev/null 2>&1 ||
  fail "a run with the file of another"
[ "$(texts "$base/run")" = "$(texts "$base/same")" ] || fail "a run with the profile of another one, in batches, has other texts"

# A run that goes on uses the profile in its folder, whatever the cache has: with dear drafts it drafts no more. What was measured
# may say that no draft pays here, so it begins with prices under which drafts do.
"$wager" run "$base/run.json" --profile $given --out "$base/kept" >/dev/null 2>"$base/err" || fail "run: $(cat "$base/err")"
awk '/"kind": "draft"/ { d = 1 } d && /"seconds"/ { sub(/\[.*\]/, "[100, 101, 102]"); d = 0 } { print }' "$base/kept/profile.json" >"$base/dear.json" &&
  ! cmp -s "$base/dear.json" "$base/kept/profile.json" && cp "$base/dear.json" "$base/kept/profile.json" || fail "no dear drafts"
[ "$(drafted "$base/kept/requests.jsonl")" -gt 0 ] || fail "the run drafts nothing"
head -2 "$base/kept/requests.jsonl" >"$base/some" && cp "$base/some" "$base/kept/requests.jsonl" && rm "$base/kept/summary.json"
"$wager" run "$base/run.json" --profile $given --resume --out "$base/kept" >/dev/null 2>"$base/err" || fail "resume: $(cat "$base/err")"
[ "$(tail -n +3 "$base/kept/requests.jsonl" | drafted /dev/stdin)" = 0 ] || fail "a resumed run does not use the profile of its folder"
echo '{"format": "wager profile 1"' >"$base/kept/profile.json"
"$wager" run "$base/run.json" --profile $given --resume --out "$base/kept" >/dev/null 2>"$base/err" && fail "a damaged profile passes"
grep -q "kept/profile.json:" "$base/err" || fail "a damaged profile is not named: $(cat "$base/err")"

# Without a home prices stay in memory, and that is said (under load that is said instead).
(unset HOME XDG_CACHE_HOME; "$wager" generate -m $target "${auto[@]}" >/dev/null 2>"$base/err") || fail "no home: $(cat "$base/err")"
grep -q 'prices are in memory only: there is no folder for them: HOME is not set\|measured under load' "$base/err" || fail "no home: $(cat "$base/err")"
echo "ok: accepted $(value accepted <<<"$one") of 100 tokens with $given, $(value accepted <<<"$new") with what was measured here"
