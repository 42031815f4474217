#!/bin/sh
# SPDX-License-Identifier: MIT
# The Python package as its wheel, packed from the finished build: its contents and import (`wheel`), its functions (`api`), the
# snippets of docs/python.md (`docs`). Exits 77 (skipped) where cffi or numpy is absent. WG_PYTHON: a Python that has them.
# usage: tests/python/run.sh wheel|api|docs BUILD, from the root
set -eu
what=$1 build=$2
python=${WG_PYTHON:-/usr/bin/python3} # the environment of .ci/run, or the one that the distribution's packages belong to
"$python" -c 'import cffi, numpy' 2>/dev/null || python=python3
"$python" -c 'import cffi, numpy' 2>/dev/null || { echo "SKIPPED: needs python3 with cffi and numpy (python3-cffi, python3-numpy)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$python" tests/python/pack.py "$build" "$dir"
export PYTHONPATH="$dir/site"
case $what in
wheel)
  "$python" tests/python/check_wheel.py "$dir"
  # As a user installs it: pip puts it into an environment of its own, which has the library, the program and the package.
  if "$python" -m venv --without-pip "$dir/env" 2> "$dir/said" &&
    "$python" -m pip --python "$dir/env/bin/python" --version > "$dir/said" 2>&1; then
    unset PYTHONPATH
    # Of other packages it has those of this Python.
    site=$("$dir/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$python" -c 'import cffi, numpy; [print(m.__path__[0].rsplit("/", 1)[0]) for m in (cffi, numpy)]' > "$site/parent.pth"
    "$python" -m pip --python "$dir/env/bin/python" install -q --no-index --no-deps "$dir"/*.whl > "$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
    "$dir/env/bin/python" tests/python/installed.py "$dir/env"
  else
    echo "SKIPPED in part: an environment with the wheel needs python3-venv and pip 22.3"
  fi ;;
api) WAGER_SCRATCH=$dir "$python" -m unittest discover -s tests/python -p 'test_*.py' ;;
docs) "$python" tests/python/snippets.py docs/python.md "$dir" ;;
*) echo "usage: tests/python/run.sh wheel|api|docs BUILD"; exit 2 ;;
esac
