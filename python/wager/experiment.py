# SPDX-License-Identifier: MIT
"""Experiments: `wager run` from Python."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import program
from .errors import error_class
from .results import Result


def run(
    config: Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    resume: bool = False,
    show: bool = False,
) -> Result:
    """Runs an experiment and returns its results.

    config: the keys of an experiment (docs/experiments.md), or the path of its file. Paths in a dictionary are relative to the
    working directory. out: the result folder; default: a new one under the temporary folder. set: keys to change, such as
    {"draft.length": 6}. resume: goes on with an interrupted run in `out`. show: prints the program's progress and table.

    Raises Error with the program's message: a config that cannot be (all mistakes, with their places); FileError: a file that is
    not there. ctrl-C stops the run, which `resume` continues."""
    if resume and out is None:
        raise ValueError("run: resume needs out, the folder of the interrupted run")
    to = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="wager-")) / "run"
    more = [f"--set={key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in (set or {}).items()]
    arguments = ["--out", str(to), *more, *(["--resume"] if resume else [])]
    if not isinstance(config, Mapping):
        program.call(["run", os.fspath(config), *arguments], show=show)
        return Result.read(to)
    with tempfile.NamedTemporaryFile("w", dir=".", prefix=".wager-", suffix=".json", encoding="utf-8") as file:
        json.dump(config, file, indent=2)  # messages quote the line of a mistake
        file.flush()
        program.call(["run", os.path.basename(file.name), *arguments], show=show)
    return Result.read(to)


def read(folder: str | os.PathLike[str]) -> Result:
    """The results in a folder of `wager run`. Raises FileError: it has none."""
    try:
        return Result.read(Path(folder))
    except FileNotFoundError as missing:
        said = f"{missing.filename}: no such file; expected the result folder of a run that came to its end"
        raise error_class("ENOENT")(said, "ENOENT") from missing
