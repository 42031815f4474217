# SPDX-License-Identifier: MIT
"""libwager through cffi's ABI mode: the functions of wager.h, which is read when the package is imported. The header is the
only text of the declarations: none is written a second time here.

The folder with `libwager.so`, `wager` and `wager.h` is `_native` beside this file, as the wheel has it; the environment
variable WAGER_NATIVE names another one (a build folder, whose header is that of its source tree)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cffi import FFI

from .errors import ArgumentError, Error, error_class

ABI = 2
"""The interface of libwager that this package needs."""


def folder() -> Path:
    """Where the library, the program and the header are."""
    return Path(os.environ.get("WAGER_NATIVE") or Path(__file__).parent / "_native").absolute()


def declarations(header: str) -> str:
    """What cffi reads of a C header: its text without preprocessor lines, comments, C++ and the macro of exports."""
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.S | re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    return re.sub(r"\bWG_API\b", "", text)


def _header(where: Path) -> Path:
    for path in (where / "wager.h", *(parent / "include" / "wager.h" for parent in where.parents)):
        if path.is_file():
            return path
    raise ImportError(f"wager: no wager.h in {where}; install the wheel, or set WAGER_NATIVE to a build folder")


def _load() -> tuple[FFI, object]:
    where = folder()
    found = FFI()
    found.cdef(declarations(_header(where).read_text(encoding="utf-8")))
    try:
        loaded = found.dlopen(str(where / "libwager.so"))
    except OSError as problem:
        raise ImportError(f"wager: {problem}; install the wheel, or set WAGER_NATIVE to a build folder") from problem
    if loaded.wg_abi() < ABI:
        raise ImportError(f"wager: {where / 'libwager.so'} has ABI {loaded.wg_abi()}; this package needs {ABI}")
    return found, loaded


ffi, lib = _load()
_codes = {value: name[3:] for value, name in ffi.typeof("wg_status").elements.items()}


def new_error():
    """A wg_error for one object's calls."""
    return ffi.new("wg_error *")


def text(value) -> str:
    """A C string; "" for NULL."""
    return ffi.string(value).decode("utf-8", "replace") if value else ""


def failure(error) -> Error:
    """The exception that a filled wg_error stands for."""
    name = _codes.get(int(error.code), "EUNKNOWN")
    return error_class(name)(text(error.text), name)


def check(status: int, error) -> None:
    """Raises what a call has reported; status: its result."""
    if status:
        raise failure(error)


def struct(kind: str, **members):
    """A struct that crosses the border, with its size set. What the members point to must be kept alive by the caller."""
    made = ffi.new(f"{kind} *", members)
    made.size = ffi.sizeof(kind)
    return made


def version() -> str:
    return text(lib.wg_version())


__all__ = [
    "ABI",
    "ArgumentError",
    "Error",
    "check",
    "declarations",
    "failure",
    "ffi",
    "folder",
    "lib",
    "new_error",
    "struct",
    "text",
    "version",
]
