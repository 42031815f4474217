# SPDX-License-Identifier: MIT
"""A text in one call."""

from __future__ import annotations

import json
import os
from typing import Any

from ._library import check, ffi, lib, new_error, text


def generate(model: str | os.PathLike[str], prompt: str, **config: Any) -> str:
    """Continues a prompt, without repeating it. model: the target's weights file (GGUF, or a Hugging Face folder). config: the
    keys of an experiment that an engine has: draft={"kind": "suffix"}, sampling={"temperature": 0.8}, max_tokens=64, seed=1.

    Raises ArgumentError: a key that cannot be; FileError: a model that cannot be read."""
    out, error = ffi.new("char **"), new_error()
    status = lib.wg_generate(os.fsencode(model), prompt.encode(), json.dumps(config).encode(), out, error)
    check(status, error)
    said = text(out[0])
    lib.wg_text_free(out[0])
    return said
