#!/usr/bin/env bash
# The names of other engines (wager columns) against their formulas over the steps of a run: engine_metrics.sh WAGER. Drafts that are
# short, missing, as trees, or cut by the end of a text; and a drafter that drafts nothing.
set -u
wager=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/wager metrics.XXXXXX")
trap 'rm -rf "$dir"' EXIT
[ -f models/story-target-q8_0.gguf ] || { echo "SKIPPED: the bundled pair is not there"; exit 77; }
draft='{"kind": "model", "model": "'$PWD/models/story-draft-q8_0.gguf'"'
cat >"$dir/config.json" <<JSON
{"name": "metrics", "target": {"model": "$PWD/models/story-target-q8_0.gguf"}, "prompts": {"file": "$PWD/configs/prompts/quickstart.jsonl",
 "limit": 3}, "max_tokens": 90, "trace": "steps", "alpha": false, "sampling": {"temperature": 0.8}, "verify": {"rule": "rejection"},
 "sweep": {"draft": [$draft, "length": 5}, $draft, "tree": "3-2-1"}, $draft, "length": 6, "policy": "entropy"},
                     {"kind": "ngram", "k": 4}, {"kind": "none"}]}}
JSON
"$wager" run "$dir/config.json" --out "$dir/run" >/dev/null 2>"$dir/err" || { cat "$dir/err"; exit 1; }
python3 "$here/engine_metrics.py" "$wager" "$dir/run"
