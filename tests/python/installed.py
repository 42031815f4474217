# SPDX-License-Identifier: MIT
"""installed.py ENVIRONMENT: the wheel as pip has installed it there: the package that Python imports, its library, and the
command `wager`."""

import subprocess
import sys
from pathlib import Path

import wager

home = Path(sys.argv[1]).resolve()
said = subprocess.run([str(home / "bin" / "wager"), "--version"], capture_output=True, text=True)
if home not in Path(wager.__file__).resolve().parents:
    sys.exit(f"Python imports {wager.__file__}, not the package of {home}")
if said.returncode or said.stdout.split() != ["wager", wager.__version__]:
    sys.exit(f"wager --version: exit status {said.returncode}: {said.stdout}{said.stderr}")
if wager.verify(wager.Tree.chain([0, 1]), [[0.5, 0.5], [1, 0]], [[0, 1]], uniforms=[0.4, 0.9]).tokens != (1, 0):
    sys.exit("wager.verify has another outcome than in C")
print(f"installed by pip: {Path(wager.__file__).relative_to(home)}")
