# SPDX-License-Identifier: MIT
"""TensorRT-LLM (PyTorch backend): a drafter as the user's own.

    config = UserProvidedDecodingConfig(max_draft_len=8, drafter=Drafter("suffix", max_draft_len=8))
    LLM(MODEL, speculative_config=config, disable_overlap_scheduler=True)

Limits: drafts are chains without rows of q, so drafters that draw do not fit, and TensorRT-LLM compares; the overlap scheduler
has to be off, because a draft needs the tokens of the step before. Needs numpy alone: tensorrt_llm is imported where it is
there, so that `Drafter` is one of its own."""

from __future__ import annotations

from inspect import signature
from typing import Any

from .. import drafter as wager_drafter
from .history import Histories, chain_of, drafter_of

try:
    from tensorrt_llm._torch.speculative.drafter import Drafter as _Base
except ImportError:
    _Base = object


class Drafter(_Base):
    """drafter: a kind with its options, or a `wager.Drafter`; vocab: as of that; context: the longest text; sequences: most
    requests at a time; max_draft_len: that of the config."""

    def __init__(
        self,
        drafter: str | wager_drafter.Drafter = "suffix",
        *,
        vocab: int | None = None,
        max_draft_len: int,
        context: int = 8192,
        sequences: int = 64,
        **options: Any,
    ) -> None:
        taken = signature(_Base.__init__).parameters if _Base is not object else {}  # they differ between versions
        lengths = {"max_draft_len": max_draft_len, "max_total_draft_tokens": max_draft_len}
        super().__init__(**{name: value for name, value in lengths.items() if name in taken})
        self.max_draft_len = max_draft_len
        options.setdefault("k", max_draft_len)
        self._texts = Histories(drafter_of(drafter, vocab=vocab, context=context, sequences=sequences, **options))

    def prepare_draft_tokens(self, scheduled_requests: Any, resource_manager: Any = None) -> None:
        """Sets `py_draft_tokens` of every generating request. Texts of requests that are gone make room for new ones."""
        for request in scheduled_requests.generation_requests:
            tokens = list(request.get_tokens(0))
            room = int(request.py_orig_prompt_len) + int(request.py_max_new_tokens) - len(tokens) - 1
            most = min(self.max_draft_len, room)
            draft = chain_of(self._texts.follow(request.request_id, tokens), most) if most > 0 else []
            request.py_draft_tokens = draft
