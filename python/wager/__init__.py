# SPDX-License-Identifier: MIT
"""wager: a laboratory and an engine for speculative decoding.

`verify` and `prove` for rules, `Drafter` for engines that verify by themselves, `trace` for the rounds of any engine, `run` for
experiments, `generate` for a text. docs/python.md begins with a plot in ten lines."""

from . import trace
from ._library import version as _version
from .drafter import Draft, Drafter, Text
from .errors import ArgumentError, Error, FileError
from .experiment import read, run
from .generation import Generated, generate
from .proof import Choice, Proof, prove
from .results import Cell, Interval, Result
from .tree import Tree
from .verification import Outcome, verify

__version__ = _version()

__all__ = [
    "ArgumentError",
    "Cell",
    "Choice",
    "Draft",
    "Drafter",
    "Error",
    "FileError",
    "Generated",
    "Interval",
    "Outcome",
    "Proof",
    "Result",
    "Text",
    "Tree",
    "generate",
    "prove",
    "read",
    "run",
    "trace",
    "verify",
]
