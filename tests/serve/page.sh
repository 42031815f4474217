#!/bin/sh
# The page at / in a real browser: it asks, shows the answer as it comes with accepted draft tokens in green, counts tokens and passes, and
# writes nothing to the console. usage: tests/serve/page.sh WAGER_SERVE. Exit 77 where there is no chromium or no python3.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "SKIPPED: no chromium"; exit 77; }
command -v python3 >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
exec python3 "$(dirname "$0")/page.py" "$1" "$browser"
