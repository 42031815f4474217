#!/bin/sh
# OpenAI's Python client, unmodified, against the server; and its requests as they were recorded, with the answers.
# usage: tests/serve/client.sh WAGER_SERVE [live | replay | record]     WG_OPENAI_PYTHON or WG_PYTHON: a Python that has the package openai
python=${WG_OPENAI_PYTHON:-${WG_PYTHON:-python3}}
command -v "$python" >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
if [ "${2:-live}" != replay ]; then
  "$python" -c 'import openai' 2>/dev/null || { echo "SKIPPED: needs the package openai (pip); serve_replay runs what it has sent"; exit 77; }
fi
exec "$python" "$(dirname "$0")/client.py" "$1" "${2:-live}"
