# SPDX-License-Identifier: MIT
"""Reading traces, of `wager run` and of `Writer`, by the reader that `wager replay` uses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._library import check, ffi, lib, new_error, struct, text
from ..frames import frame_of
from ..tree import Tree, tree_of
from .writer import ENDS


@dataclass(frozen=True)
class Request:
    """tokens: (n), the prompt's `prompt_tokens` and the output. address: of its randomness; limit: most tokens; prompt, repeat:
    its numbers; cell: number of its settings in the header; rounds: how many; ended: whether it is complete."""

    number: int
    tokens: np.ndarray = field(repr=False)
    prompt_tokens: int
    limit: int
    address: int
    prompt: int
    repeat: int
    cell: int
    vocab: int
    rounds: int
    ended: bool


@dataclass(frozen=True)
class Round:
    """A step of one request.

    tree: the draft; nodes: the accepted ones, node 0 first; next: the token after them; position: of the first token that the
    round emitted; step: its number in the request; batch: sequences of the step; end: None, "eos" or "length"; seconds and
    those of its phases: this request's share. Its rows: `rows()`."""

    number: int
    request: int
    step: int
    position: int
    tree: Tree
    nodes: tuple[int, ...]
    next: int
    end: str | None
    batch: int
    seconds: float
    draft: float
    verify: float
    accept: float
    kv: float
    _q_rows: int = field(repr=False)
    _reader: Reader = field(repr=False, compare=False)

    @property
    def tokens(self) -> tuple[int, ...]:
        """What the round emitted: the accepted draft tokens, and `next`."""
        return (*(self.tree.tokens[i] for i in self.nodes[1:]), self.next)

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """p: (n, vocab), the target's distribution after each node; q: (rows, vocab), those that nodes were drawn from."""
        return self._reader._rows(self)[:2]

    def row_error(self) -> float:
        """The largest total variation between the rows and those of the engine; 0 unless the trace has compact rows."""
        return self._reader._rows(self)[2]


class Reader:
    """A trace: its header, requests, and rounds in the file's order.

    header: the config and what has made the rounds; requests: list of `Request`; damage: "", or why the file is used up to a
    place only. len(reader) is the number of rounds; reader[i] and iteration give `Round`s, whose rows are read when asked for.

    Raises FileError: no such file, or no trace."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._handle, self._error = ffi.NULL, new_error()
        handle, about = ffi.new("wg_recording **"), struct("wg_recording_about")
        check(lib.wg_recording_open(handle, os.fsencode(path), self._error), self._error)
        self._handle = handle[0]
        check(lib.wg_recording_about_get(self._handle, about, self._error), self._error)
        self.header: dict[str, Any] = json.loads(text(about.header))
        self.damage = text(about.damage)
        self._rounds = about.rounds
        self.requests = [self._request(i) for i in range(about.requests)]

    def _request(self, i: int) -> Request:
        q = struct("wg_recorded_request")
        check(lib.wg_recording_request(self._handle, i, q, self._error), self._error)
        tokens = np.array(ffi.unpack(q.token, q.n), dtype=np.int32)
        return Request(
            i,
            tokens,
            q.prompt_tokens,
            q.limit,
            q.address,
            q.prompt,
            q.repeat,
            q.cell,
            q.vocab,
            q.rounds,
            bool(q.ended),
        )

    def __len__(self) -> int:
        return self._rounds

    def __getitem__(self, i: int) -> Round:
        if not -self._rounds <= i < self._rounds:
            raise IndexError(f"round {i}; the trace has {self._rounds}")
        number, o = i % self._rounds, struct("wg_recorded_round")
        check(lib.wg_recording_round(self._handle, number, o, self._error), self._error)
        return Round(
            number,
            o.request,
            o.step,
            o.position,
            tree_of(o.draft),
            tuple(ffi.unpack(o.node, o.n)),
            o.next,
            ENDS[int(o.end)],
            o.batch,
            o.seconds,
            o.draft_seconds,
            o.verify_seconds,
            o.accept_seconds,
            o.kv_seconds,
            o.draft.q_rows,
            self,
        )

    def __iter__(self) -> Iterator[Round]:
        return (self[i] for i in range(self._rounds))

    def _rows(self, o: Round) -> tuple[np.ndarray, np.ndarray, float]:
        vocab, q_rows = self.requests[o.request].vocab, o._q_rows
        p, q, off = np.empty((o.tree.n, vocab)), np.empty((q_rows, vocab)), ffi.new("double *")
        to = ffi.from_buffer("double[]", q) if q_rows else ffi.NULL
        check(
            lib.wg_recording_rows(self._handle, o.number, ffi.from_buffer("double[]", p), to, off, self._error),
            self._error,
        )
        return p, q, off[0]

    def frame(self) -> Any:
        """A pandas DataFrame with a line for each round: request, step, position, drafted, accepted, emitted, times."""
        lines = [
            dict(
                request=o.request,
                step=o.step,
                position=o.position,
                law=o.tree.law,
                drafted=o.tree.n - 1,
                accepted=len(o.nodes) - 1,
                emitted=len(o.nodes),
                seconds=o.seconds,
                draft=o.draft,
                verify=o.verify,
                accept=o.accept,
                kv=o.kv,
            )
            for o in self
        ]
        return frame_of(lines)

    def close(self) -> None:
        """Closes the file; texts and rounds that were read stay."""
        if self._handle:
            lib.wg_recording_close(self._handle)
            self._handle = ffi.NULL

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.wg_recording_close(self._handle)
