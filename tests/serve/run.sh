#!/bin/sh
# The server as clients meet it. usage: tests/serve/run.sh serve|life|header|hostile WAGER WAGER_SERVE [TEST...]
command -v python3 >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
tests=$1; shift
exec python3 "$(dirname "$0")/$tests.py" "$@"
