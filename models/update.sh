#!/usr/bin/env bash
# Puts other weights in the place of the bundled pair and records anew what tests know of them: answers of the server
# (tests/serve/fixtures.jsonl), numbers of transformers (tests/conformance/reference.json, draft.json), the digests of the models
# (models/SHA256SUMS). Without files it records what there is. Needs a build (WAGER) and a Python with torch, transformers and
# openai; about a quarter of an hour. usage: models/update.sh [TARGET.gguf DRAFT.gguf]
#   WAGER=PROGRAM (build/release/wager, wager-serve beside it)   PYTHON=PROGRAM (python3)   WG_OPENAI_PYTHON=PROGRAM (PYTHON)
#   LLAMA=FOLDER of llama.cpp's programs, for its columns of draft.json
# Nothing is replaced before all of it has been recorded.
set -eu
[ $# = 0 ] || [ $# = 2 ] || { echo "usage: models/update.sh [TARGET.gguf DRAFT.gguf]" >&2; exit 2; }
[ $# = 0 ] || set -- "$(realpath -e "$1")" "$(realpath -e "$2")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
wager=$(realpath "${WAGER:-build/release/wager}") python=${PYTHON:-python3}
openai=${WG_OPENAI_PYTHON:-$python}
[ -x "$wager" ] && [ -x "$wager-serve" ] || { echo "update: no wager and wager-serve at $wager; build them (docs/serving.md) or set WAGER" >&2; exit 2; }
"$python" -c 'import numpy, torch, transformers' || { echo "update: $python lacks torch or transformers; set PYTHON" >&2; exit 2; }
"$openai" -c 'import openai' || { echo "update: $openai lacks the package openai; set WG_OPENAI_PYTHON" >&2; exit 2; }

# A copy of what the recorders read, so that a failure leaves the repository as it was.
copy=$(mktemp -d "${TMPDIR:-/tmp}/wager-update.XXXXXX")
trap 'rm -rf "$copy"' EXIT
cp -r --parents models tests/serve tests/conformance tests/oracle configs/prompts "$copy"
if [ $# = 2 ]; then
  "$wager" inspect "$1" --draft "$2" >/dev/null # says why where one cannot draft for the other
  cp "$1" "$copy/models/story-target-q8_0.gguf"
  cp "$2" "$copy/models/story-draft-q8_0.gguf"
fi
(
  cd "$copy"
  WG_OPENAI_PYTHON=$openai tests/serve/client.sh "$wager-serve" record
  "$python" tests/conformance/reference.py "$wager" tests/conformance/reference.json
  "$python" tests/conformance/check_draft.py "$wager" --repeats 1 --out tests/conformance/draft.json ${LLAMA:+--llama "$LLAMA"}
  cd models
  sha256sum -- *.gguf cross/*.gguf >SHA256SUMS
)
for file in models/story-target-q8_0.gguf models/story-draft-q8_0.gguf tests/serve/fixtures.jsonl tests/conformance/reference.json \
  tests/conformance/draft.json models/SHA256SUMS; do
  cmp -s "$copy/$file" "$file" || { cp "$copy/$file" "$file" && echo "changed: $file"; }
done
echo "Now models/README.md and the tables of docs/students.md; on a machine that does nothing else: results/run-all.sh, tests/pages/pages.py build/release/wager --write README.md docs/learn.md"
