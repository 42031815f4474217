# SPDX-License-Identifier: MIT
"""vLLM: a drafter as its custom proposer.

    vllm serve MODEL --speculative-config '{"method": "custom_class", "model": "wager.shims.vllm.Proposer",
                                            "num_speculative_tokens": 8}'

The drafter: the environment variable WAGER_DRAFT, as on wager's command line ("suffix", "ngram:n_max=4"); default suffix. Its
option k is num_speculative_tokens.

Limits of the interface, which vLLM calls experimental: it passes no request ids, so texts are told apart by their row of the
batch and by their tokens: a row whose history is not the continuation of the one that was known begins anew, and what its
drafter had learned of it is what it learns of a finished text. No rows of q and no hidden states pass, so only drafters that
do not draw fit; vLLM compares. The model runner V2 has no such method: vLLM 0.33 warns and takes the runner V1, without
asynchronous scheduling. Each 256 rows of the batch have a drafter of their own, which learns from their texts alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..drafter import Drafter
from ..spec import read_spec
from .history import Histories, chain_of

ROWS = 256  # texts of one drafter


class Proposer:
    """vllm_config: of it num_speculative_tokens, the model's length and vocabulary, and the number of sequences are read."""

    def __init__(self, vllm_config: Any) -> None:
        spec, model = vllm_config.speculative_config, vllm_config.model_config
        self.k, self.max_model_len = int(spec.num_speculative_tokens), int(model.max_model_len)
        kind, options = read_spec(os.environ.get("WAGER_DRAFT", "suffix"))
        rows = int(vllm_config.scheduler_config.max_num_seqs)
        size, options = dict(vocab=int(model.get_vocab_size()), context=self.max_model_len), {"k": self.k, **options}
        self._texts = [
            Histories(Drafter(kind, **size, sequences=min(ROWS, rows - first), **options)) for first in range(0, rows, ROWS)
        ]

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
            drafts.append(chain_of(self._texts[row // ROWS].follow(row, token_ids_cpu[row, :n]), most))
        return drafts

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: there is no model."""
