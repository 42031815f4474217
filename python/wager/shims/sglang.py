# SPDX-License-Identifier: MIT
"""SGLang: drafters in the place of its n-gram corpus, as a registered algorithm.

    register()                                            # in a plug-in (entry point sglang.srt.plugins), before the server
    starts python -m sglang.launch_server --speculative-algorithm WAGER --speculative-num-draft-tokens 8 ...

The drafter: the environment variable WAGER_DRAFT, as on wager's command line; default suffix. The worker is SGLang's own NGRAM
worker with another corpus, so verification, trees and caches are SGLang's.

Limits: SGLang's corpus gets the last `speculative_ngram_max_trie_depth` tokens of a request and its length, so the text of a
request begins with those; drafts are padded to the number of draft tokens with their last token, as SGLang's corpus pads with a
token of its own; no rows of q pass: SGLang compares. External corpora are refused. The interface of the worker is SGLang's
private one and moves: the checked version is in tests/python/signatures.json."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..drafter import Drafter
from ..spec import read_spec
from .history import Histories

MOST = 256  # texts of one drafter


class Corpus:
    """What the NGRAM worker asks of its corpus. vocab: tokens; draft_token_num: nodes of a draft, the last token included."""

    def __init__(self, *, vocab: int, draft_token_num: int, context: int = 8192, drafter: str | None = None) -> None:
        kind, options = read_spec(drafter or os.environ.get("WAGER_DRAFT", "suffix"))
        self.n, self._context = draft_token_num, context
        options.setdefault("k", max(draft_token_num - 1, 1))
        self._texts = Histories(Drafter(kind, vocab=vocab, context=context, sequences=MOST, **options))
        self._lengths: dict[str, int] = {}
        self._seen: dict[str, list[int]] = {}

    def synchronize(self) -> None:
        """Nothing: drafts are made at once."""

    def reset(self) -> None:
        """Forgets all requests."""
        self.erase_match_state(list(self._seen))

    def erase_match_state(self, req_ids: Sequence[str]) -> None:
        """Forgets requests that have ended."""
        for req in req_ids:
            self._texts.finish(req)
            self._lengths.pop(req, None)
            self._seen.pop(req, None)

    def batch_put(self, batch_tokens: Sequence[Sequence[int]]) -> None:
        """Nothing: `batch_get` sees the same tokens."""

    def _history(self, req: str, tail: Sequence[int], total: int) -> list[int]:
        """The request's tokens since it was first seen."""
        new = total - self._lengths.get(req, -1)
        known = self._seen.get(req)
        if known is None or not 0 <= new <= len(tail) or len(known) + new >= self._context:
            known, new = [], len(tail)
        known = known + [int(t) for t in tail[len(tail) - new :]]
        self._seen[req], self._lengths[req] = known, total
        return known

    def batch_get(
        self, req_ids: Sequence[str], batch_tokens: Sequence[Sequence[int]], total_lens: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """tokens: (requests * draft_token_num) int64, each draft behind its request's last token; mask: (requests *
        draft_token_num^2) bool, whether node j is node i or an ancestor of it."""
        n, all_tokens, all_masks = self.n, [], []
        for req, tail, total in zip(req_ids, batch_tokens, total_lens):
            draft = self._texts.follow(req, self._history(req, tail, int(total)))
            tokens, parents = list(draft.tokens[:n]), list(draft.parents[:n])
            while len(tokens) < n:
                parents.append(len(tokens) - 1)
                tokens.append(tokens[-1])
            mask = np.eye(n, dtype=bool)
            for i in range(1, n):
                mask[i] |= mask[parents[i]]
            all_tokens.append(tokens)
            all_masks.append(mask.ravel())
        return np.array(all_tokens, dtype=np.int64).ravel(), np.concatenate(all_masks)

    def load_external_corpus_named(self, corpus_id: str, token_chunks: Any) -> int:
        raise NotImplementedError("wager.shims.sglang has no external corpora; WAGER_DRAFT=retrieval reads a datastore")

    def commit_external_corpus_load(self, corpus_id: str, loaded_token_count: int) -> None:
        """Nothing: none was loaded."""

    def remove_external_corpus(self, corpus_id: str) -> None:
        """Nothing: there is none."""

    def list_external_corpora(self) -> dict[str, int]:
        """{}: there are none."""
        return {}


def worker_class(server_args: Any) -> type:
    """SGLang's NGRAM worker with a drafter of wager's for a corpus."""
    from sglang.srt.speculative.ngram_worker import NGRAMWorker

    class Worker(NGRAMWorker):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            config = self.model_runner.model_config
            self.ngram_corpus = Corpus(
                vocab=int(config.vocab_size), draft_token_num=int(self.draft_token_num), context=int(config.context_len)
            )

    return Worker


def register(name: str = "WAGER") -> None:
    """Registers the algorithm: `--speculative-algorithm WAGER`."""
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
    from sglang.srt.speculative.spec_registry import CustomSpecAlgo

    class Algorithm(CustomSpecAlgo):
        def is_ngram(self) -> bool:
            return True

    SpeculativeAlgorithm.register(name, supports_overlap=False, spec_class=Algorithm)(worker_class)
