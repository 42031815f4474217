#!/bin/sh
# Bad HTTP and JSON at the server. usage: tests/serve/fuzz.sh WAGER_SERVE [OPTION...]     the options of fuzz.py
command -v python3 >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
exec python3 "$(dirname "$0")/fuzz.py" "$@"
