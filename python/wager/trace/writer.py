# SPDX-License-Identifier: MIT
"""Writing traces: a recorder for any engine's rounds."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from .._library import check, ffi, lib, new_error, struct
from ..errors import ArgumentError
from ..tree import CRows, CTree, Tree, int_array, pointer
from ..verification import Outcome, verify

ENDS = (None, "eos", "length")
"""How a text ends, by wg_end: it goes on; a token of `eog`; the limit."""


class RequestWriter:
    """One request of a trace: a prompt, and the rounds that follow it. `Writer.request` makes it.

    number: in the file, from 0; position: tokens so far, which is where the next round begins; end: None, "eos" or "length"."""

    def __init__(self, writer: Writer, number: int, n: int, address: int) -> None:
        self._writer, self.number, self.position, self.address = writer, number, n, address
        self.end: str | None = None

    def verify(self, tree: Tree, p: ArrayLike, q: ArrayLike | None = None, **seconds: float) -> Outcome:
        """Verifies a tree by the config's rule, seed and this request's address, and records the round: `wager replay` repeats
        every decision. The outcome is cut where the text ends (`end`). Arguments as of `round`."""
        config, before = self._writer.config, self.position
        outcome = verify(
            tree,
            p,
            q,
            _rule_of(config),
            seed=int(config.get("seed", 0)),
            request=self.address,
            position=before,
        )
        self.round(tree, outcome.nodes, outcome.next, p, q, **seconds)
        n = self.position - before
        return Outcome(outcome.nodes[:n], outcome.tokens[n - 1], outcome.tokens[:n], outcome.used)

    def round(
        self,
        tree: Tree,
        nodes: Sequence[int],
        next: int,
        p: ArrayLike,
        q: ArrayLike | None = None,
        *,
        batch: int = 1,
        seconds: float = 0,
        draft: float = 0,
        verify: float = 0,
        accept: float = 0,
        kv: float = 0,
    ) -> str | None:
        """Records what an engine decided: the accepted nodes, from node 0 down, and the token after them. Returns `end`.

        tree: node 0 is the text's last token; p: (n, vocab), q: (rows, vocab), normalised to 1 within 1e-6. seconds: the
        round's, and of it those of its phases; batch: sequences that shared the pass. The path is cut behind a token of `eog`
        and at the limit. Raises ArgumentError, with nothing written: what cannot be replayed."""
        return self._writer._round(
            self,
            tree,
            (nodes, next),
            (p, q),
            dict(
                batch=batch,
                seconds=seconds,
                draft_seconds=draft,
                verify_seconds=verify,
                accept_seconds=accept,
                kv_seconds=kv,
            ),
        )

    def finish(self) -> None:
        """Marks the request as complete."""
        self._writer._end(self.number)


def _rule_of(config: dict[str, Any]) -> str:
    """The rule of a config's section `verify` as `verify` takes it."""
    section = dict(config["verify"])
    name = section.pop("rule")
    return f"{name}:{','.join(f'{key}={value}' for key, value in section.items())}" if section else name


class Writer:
    """A trace that is being written: Writer("trace.wgt", vocab=32000, eog=[2], config={"verify": {"rule": "rejection"},
    "seed": 1}).

    path: replaced if there is one. eog: tokens that end a text. config: of an experiment's keys `name`, `seed`, `verify` and
    `sampling`, which a replay needs, and `draft`, which may be anything that names the drafter. engine: what has made the
    rounds. rows: "exact", "f16", or "top" with the `top` most probable tokens; compact rows carry their error.

    Raises ArgumentError: options that cannot be; FileError: the file cannot be written."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        vocab: int,
        eog: Sequence[int] = (),
        config: dict[str, Any] | None = None,
        *,
        engine: str | None = None,
        rows: str = "exact",
        top: int = 64,
    ) -> None:
        self.path, self.vocab, self._handle = os.fspath(path), vocab, ffi.NULL
        self.config = {"seed": 0, "verify": {"rule": "rejection"}, **(config or {})}
        self._error, self._requests = new_error(), 0
        ends = int_array(eog, "eog")
        texts = [ffi.NULL if t is None else ffi.new("char[]", t.encode()) for t in (json.dumps(self.config), engine, rows)]
        options = struct(
            "wg_recorder_options",
            vocab=vocab,
            eog=pointer(ends, "int32_t"),
            eogs=len(ends),
            config=texts[0],
            engine=texts[1],
            rows=texts[2],
            top=top,
        )
        handle = ffi.new("wg_recorder **")
        check(lib.wg_recorder_open(handle, os.fsencode(path), options, self._error), self._error)
        self._handle = handle[0]

    def request(
        self,
        tokens: Sequence[int],
        *,
        limit: int | None = None,
        max_tokens: int | None = None,
        address: int | None = None,
        prompt: int = 0,
        repeat: int = 0,
    ) -> RequestWriter:
        """Begins a request; several may be open. tokens: the prompt; its text has at most `limit` tokens, prompt included, or
        `max_tokens` after the prompt (one of the two). address: of its randomness, as `verify`'s `request`; default: its
        number in the file. prompt, repeat: numbers by which `wager replay` groups requests."""
        asked = int_array(tokens, "tokens")
        if (limit is None) == (max_tokens is None):
            raise ArgumentError("request: give one of limit and max_tokens", "EINVAL")
        most = limit if limit is not None else len(asked) + (max_tokens or 0)
        number = ffi.new("int *")
        at = self._requests if address is None else address
        q = struct(
            "wg_recorded_request",
            token=pointer(asked, "int32_t"),
            n=len(asked),
            limit=most,
            address=at,
            prompt=prompt,
            repeat=repeat,
        )
        check(lib.wg_recorder_request(self._handle, q, number, self._error), self._error)
        self._requests = number[0] + 1
        return RequestWriter(self, number[0], len(asked), at)

    def _round(self, request: RequestWriter, tree: Tree, path: tuple, rows: tuple, facts: dict[str, Any]) -> str | None:
        c_tree = CTree(tree)
        c_rows = CRows(c_tree, *rows)
        if c_rows.vocab != self.vocab:
            raise ArgumentError(f"p: rows of {c_rows.vocab} tokens; the trace has a vocabulary of {self.vocab}", "EINVAL")
        nodes = int_array(path[0], "nodes")
        c_round = struct(
            "wg_recorded_round",
            request=request.number,
            draft=c_tree.c,
            n=len(nodes),
            node=pointer(nodes, "int32_t"),
            next=int(path[1]),
            p=c_rows.p,
            q=c_rows.q,
            **facts,
        )
        emitted, end = ffi.new("int *"), ffi.new("wg_end *")
        check(lib.wg_recorder_round(self._handle, c_round, emitted, end, self._error), self._error)
        request.end = ENDS[int(end[0])]
        request.position += emitted[0]
        return request.end

    def _end(self, number: int) -> None:
        check(lib.wg_recorder_end(self._handle, number, self._error), self._error)

    def close(self) -> None:
        """Closes the file. Raises FileError: its last bytes could not be written."""
        handle, self._handle = self._handle, ffi.NULL
        if handle:
            check(lib.wg_recorder_close(handle, self._error), self._error)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.wg_recorder_close(self._handle, ffi.NULL)
