# SPDX-License-Identifier: MIT
"""The program `wager` that the wheel has inside: runs and reports are its own, so a notebook shows what a terminal shows."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from ._library import folder
from .errors import Error


def path() -> str:
    """The program's file."""
    return str(folder() / "wager")


def call(arguments: Sequence[str], *, show: bool = False) -> str:
    """Runs a command of the program and returns what it printed. show: what it prints, progress included, goes to this
    process's output as well as it does in a terminal, and "" is returned.

    Raises Error with the program's own message. ctrl-C reaches the program, which ends as it does in a terminal."""
    command = [path(), *arguments]
    if show:
        process = subprocess.Popen(command)
        out, said = "", ""
    else:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        if not show:
            out, said = process.communicate()
        status = process.wait()
    except KeyboardInterrupt:
        process.wait()  # it has had the same signal
        raise
    if status:
        lines = said.strip() or f"wager {' '.join(arguments)}: exit status {status}"
        raise Error(lines.removeprefix("error: "), "EPROGRAM")
    return out


def main() -> None:
    """Becomes the program: the command `wager` of the wheel."""
    import sys

    os.execv(path(), ["wager", *sys.argv[1:]])
