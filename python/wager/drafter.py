# SPDX-License-Identifier: MIT
"""A drafter alone: for an engine that verifies by itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._library import check, failure, ffi, lib, new_error, struct
from .errors import ArgumentError
from .spec import rule_section, said
from .tree import Tree, int_array

VOCAB = 1 << 18
"""Tokens where nobody says how many there are: look-ups store ids, and no row."""

_advance, _unpack = lib.wg_sequence_advance, ffi.unpack
_laws: dict[Any, str] = {}  # by the library's strings, which live as long as it


class Draft(Tree):
    """What a drafter proposes: a tree whose node 0 is the last token of the text. Its rows of q: `q()`. score: tokens that the
    drafter expects to be accepted, 0 where it does not say.

    Made once a round: of a chain only the tokens are copied, since they tell the rest."""

    def __init__(self, text: Text, out: Any) -> None:
        n = out.n
        self.tokens = _unpack(out.token, n)
        if out.chain:
            self._parents = None
            self._rows = out.q_rows
        else:
            self._parents, self._q_rows = _unpack(out.parent, n), _unpack(out.qrow, n)
        self._law, self.score = out.law, out.score
        self._text = text
        text._serial = self._serial = text._serial + 1

    def _tell(self) -> None:
        n = len(self.tokens)
        self._parents = list(range(-1, n - 1))
        self._q_rows = list(self._parents) if self._rows else [-1] * n

    @property
    def parents(self) -> list[int]:
        if self._parents is None:
            self._tell()
        return self._parents

    @property
    def q_rows(self) -> list[int]:
        if self._parents is None:
            self._tell()
        return self._q_rows

    @property
    def law(self) -> str:
        if self._law not in _laws:
            _laws[self._law] = ffi.string(self._law).decode()
        return _laws[self._law]

    @property
    def drafted(self) -> list[int]:
        """The tokens below the root, in the order of nodes; of a chain: the draft."""
        return self.tokens[1:]

    def q(self) -> np.ndarray | None:
        """(rows, vocab), the distributions that the nodes were drawn from; None where there are none. Only before the next call
        with the drafter: ArgumentError after it."""
        return self._text._rows(self)

    def __repr__(self) -> str:
        return f"Draft(tokens={self.tokens}, parents={self.parents}, law={self.law!r})"


class Text:
    """One text of a drafter's; `Drafter.sequence` makes it. One thread at a time for a drafter and its sequences."""

    def __init__(self, drafter: Drafter, tokens: Sequence[int], request: int | None) -> None:
        self._drafter, self._serial = drafter, 0
        self._error, self._room = new_error(), 256
        self._buffer = ffi.new("int32_t[]", self._room)
        self._out = struct("wg_draft")
        prompt = int_array(tokens, "tokens")
        options = struct("wg_sequence_options", request=request or 0)
        handle = ffi.new("wg_sequence **")
        status = lib.wg_sequence_open_tokens(
            drafter._handle,
            handle,
            ffi.from_buffer("int32_t[]", prompt),
            len(prompt),
            ffi.NULL if request is None else options,
            self._error,
        )
        check(status, self._error)
        self._handle = handle[0]
        drafter._open[id(self)] = self

    def _fill(self, tokens: Sequence[int]) -> int:
        """Copies tokens into the buffer that C reads."""
        n = len(tokens)
        if n > self._room:
            self._room = 2 * n
            self._buffer = ffi.new("int32_t[]", self._room)
        try:
            self._buffer[0:n] = tokens
        except TypeError:
            self._buffer[0:n] = int_array(tokens, "tokens").tolist()
        return n

    def propose(self) -> Draft:
        """The draft after the text's last token."""
        if lib.wg_sequence_propose(self._handle, self._out, self._error):
            raise failure(self._error)
        return Draft(self, self._out)

    def observe(self, tokens: Sequence[int]) -> None:
        """What the text has been given since, drafted tokens included; the drafter learns from it."""
        n = self._fill(tokens)
        self._serial += 1
        if lib.wg_sequence_observe(self._handle, self._buffer, n, self._error):
            raise failure(self._error)

    def advance(self, tokens: Sequence[int]) -> Draft:
        """`observe(tokens)`, then `propose()`, in one call of C: what a round of an engine needs."""
        n, out = len(tokens), self._out
        try:
            self._buffer[0:n] = tokens
        except (TypeError, IndexError):  # an array, or more tokens than fit
            self._fill(tokens)
        if _advance(self._handle, self._buffer, n, out, self._error):
            raise failure(self._error)
        return Draft(self, out)

    def finish(self) -> None:
        """Ends a complete text, which makes room for another one. Drafters that learn across texts (`suffix`, `ngram_cache` and
        others) learn it. Calling it again does nothing."""
        self._close(lib.wg_sequence_finish)

    def forget(self) -> None:
        """Ends an aborted text: nothing of it is learned. Calling it again does nothing."""
        self._close(lib.wg_sequence_close)

    def _close(self, how: Any) -> None:
        if self._handle:
            self._serial += 1
            how(self._handle)
            self._handle = ffi.NULL
            self._drafter._open.pop(id(self), None)

    def _rows(self, draft: Draft) -> np.ndarray | None:
        if draft._serial != self._serial:
            raise ArgumentError("q: the drafter was called since this draft; ask for its rows before", "EINVAL")
        n = self._out.q_rows
        if n == 0:
            return None
        rows = np.empty((n, self._drafter.vocab))
        for i in range(n):
            check(lib.wg_sequence_q(self._handle, i, ffi.from_buffer("double[]", rows[i]), self._error), self._error)
        return rows


class Drafter:
    """A drafter of wager's without a target: `Drafter("suffix").sequence(tokens)`, then `propose` and `observe`,
    or `advance`.

    kind and options: as in the section `draft` of an experiment (`wager list drafters`): Drafter("ngram", k=4).
    vocab: tokens of the vocabulary; without it ids below 2^18 may occur, and drafters with a model, whose rows have its width, need
    it. context: the longest text; sequences: most texts at a time. rule, sampling, seed: what will check the drafts,
    and the sampler chain of drafters that draw ({"temperature": 0.8}).

    Raises ArgumentError: an option that cannot be, a rule that does not check such drafts, or a drafter that reads the target's
    rows or weights (recycle, lookahead, self-speculation)."""

    def __init__(
        self,
        kind: str = "suffix",
        *,
        vocab: int | None = None,
        context: int = 8192,
        sequences: int = 1,
        rule: str | dict[str, Any] | None = None,
        sampling: dict[str, Any] | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        config: dict[str, Any] = {"draft": {"kind": kind, **options}, "batch": sequences, "seed": seed}
        config["//from"] = {f"draft.{name}": said(name, value) for name, value in {"kind": kind, **options}.items()}
        if rule is not None:
            config["//from"]["verify"] = said("rule", rule)
            config["verify"] = rule_section(rule) if isinstance(rule, str) else rule
        if sampling is not None:
            config["sampling"] = sampling
        self.vocab, self.context, self.config = VOCAB if vocab is None else vocab, context, config
        self._open: dict[int, Text] = {}
        self._handle = ffi.NULL
        handle, error = ffi.new("wg_session **"), new_error()
        if lib.wg_session_open_drafter(handle, self.vocab, context, json.dumps(config).encode(), error):
            problem = failure(error)
            if vocab is None and problem.code == "EVOCAB":
                raise ArgumentError(f"{problem}; this drafter needs vocab, the tokens of the target", "EVOCAB")
            raise problem
        self._handle = handle[0]

    def __repr__(self) -> str:
        kind, *options = (f"{value!r}" if key == "kind" else f"{key}={value!r}" for key, value in self.config["draft"].items())
        more = [f"{key}={self.config[key]!r}" for key in ("verify", "sampling") if key in self.config]
        words = [f"vocab={self.vocab}", f"context={self.context}", f"sequences={self.config['batch']}", *more, *options]
        return f"{'' if self._handle else 'closed '}Drafter({kind}, {', '.join(words)})"

    def sequence(self, tokens: Sequence[int], request: int | None = None) -> Text:
        """Opens a text. tokens: (n), at least one; request: addresses the randomness of drafters that draw, together with the
        seed (default: how many texts were opened before). Raises Error EFULL when `sequences` texts are open."""
        if not self._handle:
            raise ArgumentError("the drafter is closed", "EINVAL")
        return Text(self, tokens, request)

    def close(self) -> None:
        """Forgets all texts and frees the drafter. Calling it again does nothing."""
        for sequence in list(self._open.values()):
            sequence.forget()
        if self._handle:
            lib.wg_session_close(self._handle)
            self._handle = ffi.NULL

    def __enter__(self) -> Drafter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except (AttributeError, TypeError):  # the interpreter is going down
            pass
