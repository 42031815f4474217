# SPDX-License-Identifier: MIT
"""vLLM: a drafter as its custom proposer.

    vllm serve MODEL --speculative-config '{"method": "custom_class", "model": "wager.shims.vllm.Proposer",
                                            "num_speculative_tokens": 8}'

The drafter: the environment variable WAGER_DRAFT, as on wager's command line ("suffix", "ngram:n_max=4"); default suffix. Its
option k is num_speculative_tokens.

Limits of the interface, which vLLM calls experimental: it passes no request ids, so texts are told apart by their row of the
batch and by their tokens: a row whose history is not the continuation of the one that was known begins anew, and what its
drafter had learned of it is what it learns of a finished text. No rows of q and no hidden states pass, so only drafters that
do not draw fit; vLLM compares. The model runner V2 refuses the method, and asynchronous scheduling is switched off."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..drafter import Drafter
from ..errors import ArgumentError
from .history import Histories, chain_of

MOST = 256  # texts of one drafter


def options_of(spec: str) -> tuple[str, dict[str, Any]]:
    """A drafter as on the command line, "KIND:key=value,...": its kind and options."""

    def value_of(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    kind, _, rest = spec.partition(":")
    return kind, {key: value_of(value) for key, _, value in (pair.partition("=") for pair in rest.split(",") if pair)}


class Proposer:
    """vllm_config: of it num_speculative_tokens, the model's length and vocabulary, and the number of sequences are read."""

    def __init__(self, vllm_config: Any) -> None:
        spec, model = vllm_config.speculative_config, vllm_config.model_config
        self.k, self.max_model_len = int(spec.num_speculative_tokens), int(model.max_model_len)
        kind, options = options_of(os.environ.get("WAGER_DRAFT", "suffix"))
        rows = int(vllm_config.scheduler_config.max_num_seqs)
        if rows > MOST:
            raise ArgumentError(f"wager.shims.vllm: max_num_seqs is {rows}; a drafter has at most {MOST} texts", "EINVAL")
        size = dict(vocab=int(model.get_vocab_size()), context=self.max_model_len, sequences=rows)
        self._texts = Histories(Drafter(kind, **size, **{"k": self.k, **options}))

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: np.ndarray,
        token_ids_cpu: np.ndarray,
        slot_mappings: Any = None,
    ) -> list[list[int]]:
        """A draft for each row of the batch, [] where nothing is drafted. sampled_token_ids: what the last step gave each row,
        [] while its prompt is still read; num_tokens_no_spec: (rows) tokens of each; token_ids_cpu: (rows, max_model_len)."""
        drafts: list[list[int]] = []
        for row, sampled in enumerate(sampled_token_ids):
            n = int(num_tokens_no_spec[row])
            most = min(self.k, self.max_model_len - n - 1)
            if len(sampled) == 0 or most < 1:
                drafts.append([])
                continue
            drafts.append(chain_of(self._texts.follow(row, token_ids_cpu[row, :n]), most))
        return drafts

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: there is no model."""
