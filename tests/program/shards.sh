#!/usr/bin/env bash
# The examples of divided runs: a Slurm array where a scheduler answers, GNU parallel otherwise. The merged run must have the
# texts of the undivided run. usage: tests/program/shards.sh WAGER. Exit 77 where there is neither.
set -u
export WAGER
WAGER=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
root=$PWD
base=$(mktemp -d "${TMPDIR:-/tmp}/wager-shards.XXXXXX")
trap 'rm -rf "$base"' EXIT
cd "$base" || exit 1
"$WAGER" synth --like tiny --type f32 --seed 1 --out target.gguf >/dev/null || exit 1
for i in 1 2 3 4 5 30; do echo "{\"id\": $i, \"prompt\": \"The cat $i sat\"}"; done >prompts.jsonl
cat >config.json <<'END'
{"name": "shards", "target": {"model": "target.gguf", "threads": 1}, "draft": {"kind": "ngram", "k": 8}, "prompts": {"file": "prompts.jsonl"},
 "max_tokens": 16, "trace": "steps", "sweep": {"draft.k": [2, 4], "sampling.temperature": [0, 1]}}
END
fail() { echo "FAIL: $1"; exit 1; }
"$WAGER" run config.json --shard all --out whole >/dev/null 2>&1 || fail "the whole run"
grep -q "u0000" whole/requests.jsonl || fail "no text with a NUL, which must be read back, too"
if command -v sbatch >/dev/null && sinfo >/dev/null 2>&1; then
  how=slurm
  sbatch --wait --array=1-3 "$root/examples/shards/array.sbatch" config.json shards >/dev/null || fail "sbatch"
  "$WAGER" merge shards/merged shards/1 shards/2 shards/3 >/dev/null 2>&1 || fail "merge"
elif command -v parallel >/dev/null; then
  how='GNU parallel'
  "$root/examples/shards/parallel.sh" config.json shards 3 >/dev/null 2>&1 || fail "parallel"
else
  echo "skipped: neither Slurm nor GNU parallel"
  exit 77
fi
texts() { grep -o '"output_sha256":"[0-9a-f]*"\|"id":"[^"]*"' "$1/requests.jsonl"; }
[ -n "$(texts whole)" ] && [ "$(texts whole)" = "$(texts shards/merged)" ] || fail "texts differ from those of the whole run"
"$WAGER" compare whole shards/merged 2>/dev/null | grep -q 'same texts' || fail "compare"
echo "ok: $how, $(wc -l <whole/requests.jsonl) requests"
