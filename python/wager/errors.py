# SPDX-License-Identifier: MIT
"""Exceptions. Their text is the library's: what, where, what was expected, how to fix it."""

from __future__ import annotations


class Error(Exception):
    """A call of libwager, or a run of the program, failed.

    code: the name of the status in wager.h without its prefix, such as "EFORMAT"."""

    def __init__(self, message: str, code: str = "EUNKNOWN") -> None:
        super().__init__(message)
        self.code = code


class ArgumentError(Error, ValueError):
    """An argument or a config that cannot be (EINVAL, ECONFIG, ELAW, EVOCAB, EUNSUPPORTED)."""


class FileError(Error, OSError):
    """A file that is not there, cannot be read or written, or is malformed (ENOENT, EIO, EFORMAT)."""

    def __str__(self) -> str:
        return str(self.args[0])


class _MissingFileError(FileError, FileNotFoundError):
    """ENOENT, for programs that catch Python's own class."""


def error_class(code: str) -> type[Error]:
    """The exception of a status."""
    if code in ("EINVAL", "ECONFIG", "ELAW", "EVOCAB", "EUNSUPPORTED"):
        return ArgumentError
    if code == "ENOENT":
        return _MissingFileError
    return FileError if code in ("EIO", "EFORMAT") else Error
