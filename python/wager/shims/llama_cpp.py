# SPDX-License-Identifier: MIT
"""llama-cpp-python: a drafter in the place of its prompt lookup.

    llm = Llama("target.gguf", draft_model=Draft("suffix", k=8))

llama-cpp-python calls the object with the whole history and takes an array of tokens, which it verifies by comparing them with
the tokens that it samples. Limits: one text at a time; chains; no rows of q go along, so drafters that draw gain nothing over
greedy ones. Needs numpy alone: llama_cpp is imported where it is there, so that `Draft` is a LlamaDraftModel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..drafter import Drafter
from .history import Histories, chain_of, drafter_of

try:
    from llama_cpp.llama_speculative import LlamaDraftModel as _Base
except ImportError:
    _Base = object


class Draft(_Base):
    """Called with a history, (n) int32, it returns the draft, (k) int32, k = 0 when there is none.

    drafter: a kind with its options, or a `wager.Drafter`; vocab: as of `wager.Drafter`; context: the longest
    history."""

    def __init__(
        self, drafter: str | Drafter = "suffix", *, vocab: int | None = None, context: int = 8192, **options: Any
    ) -> None:
        self._texts = Histories(drafter_of(drafter, vocab=vocab, context=context, sequences=1, **options))
        self._context = self._texts.drafter.context

    def __call__(self, input_ids: NDArray[np.intc], /, **kwargs: Any) -> NDArray[np.intc]:
        if len(input_ids) == 0 or len(input_ids) >= self._context:
            return np.empty(0, dtype=np.intc)
        return np.array(chain_of(self._texts.follow(0, input_ids)), dtype=np.intc)
