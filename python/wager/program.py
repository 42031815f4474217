# SPDX-License-Identifier: MIT
"""The program `wager` that the wheel has inside: runs and reports are its own, so a notebook shows what a terminal shows."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from ._library import folder
from .errors import error_class


def path() -> str:
    """The program's file."""
    return str(folder() / "wager")


def call(arguments: Sequence[str], *, show: bool = False) -> str:
    """Runs a command of the program and returns what it printed. show: what it prints, progress included, goes to this
    process's output as well as it does in a terminal, and "" is returned.

    Raises Error with the program's own message, FileError where it names a file that is not there. What is raised while it runs, KeyboardInterrupt among it, ends the program,
    which finishes what it has begun to write, and goes on afterwards."""
    command = [path(), *arguments]
    pipe = None if show else subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, encoding="utf-8")
    try:
        out, said = process.communicate()
    except BaseException:
        _end(process)
        raise
    status = process.returncode
    if status:
        lines = (said or "").strip() or f"wager {' '.join(arguments)}: exit status {status}"
        code = "ENOENT" if "no such file" in lines else "EPROGRAM"
        raise error_class(code)(lines.removeprefix("error: "), code)
    return out or ""


def _end(process: subprocess.Popen) -> None:
    """Asks a program to end, and waits for it; asked twice, it is killed. It may have had the ctrl-C of the terminal as well:
    then SIGTERM says the same again, where a second SIGINT would kill it in the middle of a line."""
    process.terminate()
    try:
        process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise


def main() -> None:
    """Becomes the program: the command `wager` of the wheel."""
    import sys

    os.execv(path(), ["wager", *sys.argv[1:]])
