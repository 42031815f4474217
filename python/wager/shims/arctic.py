# SPDX-License-Identifier: MIT
"""A class with the interface of arctic-inference's SuffixDecodingCache, over wager's drafter `suffix`: an engine that uses
theirs can use this one by another import. vLLM's `--speculative-config '{"method": "suffix"}'` uses no more of it than is here.

The same algorithm, with three differences of the estimate. A continuation's count is divided by the occurrences that have a
continuation; theirs by all, also the one at the text's own end, so their probabilities are smaller. max_tree_depth limits the
match; theirs match and draft together. Answers of other requests serve when they have ended (`stop_request`); theirs while
they run. tests/python/arctic_check.py runs both on the same streams and finds no other difference.

Limits. `speculate` drafts after the request's own text, so its context must be that text's end. The first call's
max_spec_factor, max_spec_offset, min_token_prob and use_tree_spec hold for all calls, its max_spec_tokens is the most of all.
Old answers leave by memory (64 MB), not by number: `max_cached_requests` is counted and not enforced on the drafter, but for 0,
which keeps none. Drafts have no `probs` and no `match_len`; `score` is the expected number of accepted tokens, as theirs."""

from __future__ import annotations

from collections.abc import Hashable, KeysView, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..drafter import Drafter, Text


@dataclass
class SuffixDecodingDraft:
    """token_ids: the draft; parents: of each, its index in token_ids, -1: none; score: tokens expected to be accepted."""

    token_ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    score: float = 0.0


@dataclass
class _Request:
    tokens: list[int]  # not yet given to the drafter, when text is None
    text: Text | None = None
    new: list[int] = field(default_factory=list)
    tail: list[int] = field(default_factory=list)


class SuffixDecodingCache:
    """max_tree_depth: the longest match looked for, at most 64. What arctic's class does not need to know: vocab: tokens;
    context: the longest text; sequences: most active requests."""

    def __init__(
        self,
        max_tree_depth: int = 64,
        max_cached_requests: int = -1,
        *,
        vocab: int | None = None,
        context: int = 1 << 15,
        sequences: int = 256,
    ) -> None:
        if max_cached_requests > 0x7FFFFFFF:
            raise ValueError("max_cached_requests must be less than 2^31")
        self._depth, self._cached_most = max_tree_depth, max_cached_requests
        self._size = dict(vocab=vocab, context=context, sequences=sequences)
        self._active: dict[Hashable, _Request] = {}
        self._cached: dict[Hashable, None] = {}
        self._drafter: Drafter | None = None
        self._settings: tuple | None = None

    @property
    def max_tree_depth(self) -> int:
        return self._depth

    @property
    def max_cached_requests(self) -> int:
        return self._cached_most

    @property
    def active_requests(self) -> KeysView:
        """Requests that were started and not stopped."""
        return self._active.keys()

    @property
    def cached_requests(self) -> KeysView:
        """Requests whose answers are kept."""
        return self._cached.keys()

    def start_request(self, req_id: Hashable, prompt_token_ids: np.ndarray | Sequence[int]) -> None:
        """Begins a request. ValueError: it is active."""
        if req_id in self._active:
            raise ValueError(f"Request '{req_id}' is already active")
        tokens = _tokens(prompt_token_ids)
        self._active[req_id] = _Request(tokens, tail=tokens[-self._depth :])
        if self._cached_most != 0:
            self._cached.pop(req_id, None)
            self._cached[req_id] = None
            while 0 < self._cached_most < len(self._cached):
                del self._cached[next(iter(self._cached))]

    def stop_request(self, req_id: Hashable) -> None:
        """Ends a request; the drafter learns its answer. ValueError: it is not active."""
        request = self._find(req_id)
        del self._active[req_id]
        if request.text is not None:
            if request.new:
                request.text.observe(request.new)
            request.text.finish()

    def add_active_response(self, req_id: Hashable, token_ids: np.ndarray | Sequence[int]) -> None:
        """Tokens that a request's answer was given. ValueError: it is not active."""
        request, tokens = self._find(req_id), _tokens(token_ids)
        request.tail = (request.tail + tokens)[-self._depth :]
        request.new += tokens

    def evict_cached_response(self, req_id: Hashable) -> None:
        """ValueError: there is no such answer."""
        if req_id not in self._cached:
            raise ValueError(f"Request '{req_id}' is not cached")
        del self._cached[req_id]

    def speculate(
        self,
        req_id: Hashable,
        context: np.ndarray | Sequence[int],
        max_spec_tokens: int | None = None,
        max_spec_factor: float = 1.0,
        max_spec_offset: float = 0.0,
        min_token_prob: float = 0.1,
        use_tree_spec: bool = False,
    ) -> SuffixDecodingDraft:
        """The draft after a request's text. context: its end. ValueError: the request is not active, the context is not its
        end, or other settings than those of the first call."""
        request = self._find(req_id)
        most = min(self._depth if max_spec_tokens is None else max_spec_tokens, 63)
        if most < 1:
            return SuffixDecodingDraft()
        self._open(most, (max_spec_factor, max_spec_offset, min_token_prob, use_tree_spec))
        last = _tokens(context[-8:])
        if request.tail[-len(last) :] != last[-len(request.tail) :]:
            raise ValueError(f"the context is not the end of the text of request '{req_id}'")
        draft = self._propose(request)
        n = min(len(draft.tokens), most + 1)
        return SuffixDecodingDraft(draft.tokens[1:n], [p - 1 for p in draft.parents[1:n]], draft.score)

    def _propose(self, request: _Request):
        if request.text is None:
            request.text = self._drafter.sequence(request.tokens)
            request.tokens = []
        if not request.new:
            return request.text.propose()
        new, request.new = request.new, []
        return request.text.advance(new)

    def _open(self, most: int, settings: tuple) -> None:
        if self._drafter is None:
            factor, offset, p_min, tree = settings
            options = dict(k=most, depth=min(self._depth, 64), factor=factor, offset=offset, p_min=p_min, tree=tree)
            if self._cached_most == 0:
                options["memory_mb"] = 0
            self._settings = settings
            self._drafter = Drafter("suffix", **self._size, **options)
        elif settings != self._settings:
            raise ValueError(f"speculate: settings {settings}; those of the first call were {self._settings}")

    def _find(self, req_id: Hashable) -> _Request:
        if req_id not in self._active:
            raise ValueError(f"Request '{req_id}' is not active")
        return self._active[req_id]


def _tokens(values: np.ndarray | Sequence[int]) -> list[int]:
    """ValueError: an array of another type or shape, as theirs."""
    if not isinstance(values, np.ndarray):
        return [int(v) for v in values]
    if values.ndim != 1 or values.dtype != np.int32:
        raise ValueError(f"ndarray input must be one row of int32, got {values.dtype.name} of shape {values.shape}")
    return values.tolist()
