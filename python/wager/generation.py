# SPDX-License-Identifier: MIT
"""A text in one call."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from ._library import check, ffi, lib, new_error, struct
from .spec import said

_finish = {"WG_END_EOS": "stop", "WG_END_LENGTH": "length"}


@dataclass(frozen=True)
class Generated:
    """A text that was generated; `str()` gives the text alone.

    text: without the prompt; tokens: its ids; tau: tokens per pass of the target, 1 in plain decoding; accepted, drafted: draft
    tokens that were kept, and that were verified; finish: "stop" where the model ended the text, "length" where max_tokens or
    the context did."""

    text: str
    tokens: tuple[int, ...]
    tau: float
    accepted: int
    drafted: int
    finish: str

    def __str__(self) -> str:
        return self.text


def generate(model: str | os.PathLike[str], prompt: str, **config: Any) -> Generated:
    """Continues a prompt, without repeating it. model: the target's weights file (GGUF, or a Hugging Face folder). config: the
    keys of an experiment that an engine has: draft={"kind": "suffix"}, sampling={"temperature": 0.8}, max_tokens=64, seed=1.

    Raises ArgumentError: a key that cannot be; FileError: a model that is not there or cannot be read."""
    arguments = {key: said(key, value) for key, value in config.items()}
    config["target"] = {**config.get("target", {}), "model": os.fsdecode(model)}
    config["//from"] = {**arguments, "target.model": said("model", os.fsdecode(model))}
    session, sequence, error = ffi.new("wg_session **"), ffi.new("wg_sequence **"), new_error()
    check(lib.wg_session_open(session, json.dumps(config).encode(), error), error)
    try:
        text = prompt.encode()
        check(lib.wg_sequence_open(session[0], sequence, text, len(text), ffi.NULL, error), error)
        return _read(sequence[0], error)
    finally:
        lib.wg_session_close(session[0])


def _read(sequence: Any, error: Any) -> Generated:
    """Decodes a sequence to its end."""
    said, tokens = bytearray(), []
    now, counts = struct("wg_round"), struct("wg_stats")
    while now.end == lib.WG_END_NOT:
        check(lib.wg_sequence_next(sequence, now, error), error)
        said += ffi.buffer(now.text, now.bytes)[:]
        tokens += ffi.unpack(now.token, now.n) if now.n else []
    check(lib.wg_sequence_stats(sequence, counts, error), error)
    return Generated(
        text=said.decode("utf-8", "replace"),
        tokens=tuple(tokens),
        tau=counts.emitted / counts.passes if counts.passes else float("nan"),
        accepted=counts.accepted,
        drafted=counts.drafted,
        finish=_finish[ffi.string(ffi.cast("wg_end", now.end))],
    )
