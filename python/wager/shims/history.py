# SPDX-License-Identifier: MIT
"""Drafts for engines that hand over histories, not events: the text so far, at each round."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..drafter import Draft, Drafter, Text
from ..errors import ArgumentError


def drafter_of(kind: str | Drafter, *, vocab: int | None, context: int, sequences: int, **options: Any) -> Drafter:
    """A drafter by its kind and options, or the one that is given."""
    if isinstance(kind, Drafter):
        return kind
    return Drafter(kind, vocab=vocab, context=context, sequences=sequences, **options)


def chain_of(draft: Draft, most: int | None = None) -> list[int]:
    """The drafted tokens, cut at `most`. Raises ArgumentError: the draft is no chain, which these engines verify."""
    if draft.parents != list(range(-1, len(draft.parents) - 1)):
        raise ArgumentError(
            "this engine verifies chains, and the drafter proposes trees; choose options that give chains", "ELAW"
        )
    return draft.drafted if most is None else draft.drafted[: max(most, 0)]


class _Known:
    """A text of the drafter's, and its tokens."""

    def __init__(self, text: Text, tokens: np.ndarray) -> None:
        self.text, self.n = text, len(tokens)
        self.tokens = np.empty(max(2 * self.n, 256), dtype=np.int32)
        self.tokens[: self.n] = tokens

    def add(self, more: np.ndarray) -> None:
        while self.n + len(more) > len(self.tokens):
            self.tokens = np.concatenate([self.tokens, np.empty_like(self.tokens)])
        self.tokens[self.n : self.n + len(more)] = more
        self.n += len(more)


class Histories:
    """Texts of one drafter, followed by their histories: only what is new is observed, and a text that is not the continuation
    of the one that was known begins anew. At most `drafter`'s number of texts are kept; the one that was longest unused
    goes."""

    def __init__(self, drafter: Drafter) -> None:
        self.drafter = drafter
        self._known: dict[Hashable, _Known] = {}
        self._most = int(drafter.config["batch"])

    def follow(self, key: Hashable, history: Sequence[int] | np.ndarray) -> Draft:
        """The draft after a history. key: which text it is."""
        tokens = np.asarray(history, dtype=np.int32)
        known = self._known.pop(key, None)
        n = known.n if known else 0
        if known and (n > len(tokens) or not np.array_equal(known.tokens[:n], tokens[:n])):
            known.text.finish()
            known = None
        if known is None:
            if len(self._known) >= self._most:
                self.finish(next(iter(self._known)))
            known = _Known(self.drafter.sequence(tokens), tokens)
            self._known[key] = known
            return known.text.propose()
        self._known[key] = known  # the last one used
        new = tokens[n:]
        known.add(new)
        return known.text.advance(new.tolist()) if len(new) else known.text.propose()

    def finish(self, key: Hashable) -> None:
        """Ends a text, which the drafter learns; unknown ones are fine."""
        known = self._known.pop(key, None)
        if known:
            known.text.finish()

    def keys(self) -> set[Hashable]:
        """The texts that are known."""
        return set(self._known)
