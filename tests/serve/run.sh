#!/bin/sh
# The server as clients meet it. usage: tests/serve/run.sh WAGER WAGER_SERVE [TEST...]
command -v python3 >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
exec python3 "$(dirname "$0")/serve.py" "$@"
