# SPDX-License-Identifier: MIT
"""Draft trees, and numpy arrays as the library reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._library import ffi, struct
from .errors import ArgumentError


@dataclass
class Tree:
    """A draft tree of n nodes. Node 0 is the last token of the text; a parent precedes its children; a chain is a tree of
    width 1.

    tokens: (n); parents: (n), parents[0] is -1; q_rows: (n), the row of q that a node was drawn from, -1: none; None: no node
    has one. law: how siblings were drawn: "fixed" (not drawn), "iid", "without_replacement" or "coupled"."""

    tokens: Sequence[int]
    parents: Sequence[int]
    q_rows: Sequence[int] | None = None
    law: str = "fixed"

    @classmethod
    def chain(cls, tokens: Sequence[int], law: str = "iid") -> Tree:
        """A chain. tokens: (n), the last token of the text first. Drafted token i has row i - 1 of q, unless the law is
        fixed."""
        n = len(tokens)
        return cls(tokens, range(-1, n - 1), None if law == "fixed" else range(-1, n - 1), law)

    @property
    def n(self) -> int:
        """Nodes, node 0 included."""
        return len(self.tokens)

    def children(self, node: int) -> list[int]:
        """The nodes whose parent is `node`, ascending."""
        return [i for i, parent in enumerate(self.parents) if parent == node]


def int_array(values: ArrayLike, what: str, n: int | None = None) -> np.ndarray:
    """(n) int32, contiguous. ArgumentError: no whole numbers, or another number of them."""
    found = np.asarray(values if isinstance(values, np.ndarray) else list(values))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ArgumentError(f"{what}: expected a list of whole numbers, not {found.dtype} of shape {found.shape}", "EINVAL")
    if n is not None and len(found) != n:
        raise ArgumentError(f"{what}: {len(found)} numbers; expected {n}", "EINVAL")
    return np.ascontiguousarray(found, dtype=np.int32)


def rows_array(values: ArrayLike, what: str, rows: int, vocab: int | None = None) -> np.ndarray:
    """(rows, vocab) float64, contiguous. ArgumentError: another shape."""
    found = np.ascontiguousarray(values, dtype=np.float64)
    if found.ndim == 1 and rows == 1:
        found = found[None, :]
    if found.ndim != 2 or found.shape[0] != rows or (vocab is not None and found.shape[1] != vocab):
        want = f"({rows}, {'tokens' if vocab is None else vocab})"
        raise ArgumentError(f"{what}: shape {found.shape}; expected {want}", "EINVAL")
    return found


def pointer(array: np.ndarray, kind: str) -> Any:
    """A C pointer to a contiguous array, which it keeps alive."""
    return ffi.from_buffer(f"{kind}[]", array) if array.size else ffi.NULL


class CTree:
    """A tree as the library reads it, with everything that it points to."""

    def __init__(self, tree: Tree) -> None:
        n = len(tree.tokens)
        self.n = n
        q_rows = [-1] * n if tree.q_rows is None else tree.q_rows
        self._tokens, self._parents, self._q_rows = (
            int_array(values, f"tree.{name}", n)
            for values, name in ((tree.tokens, "tokens"), (tree.parents, "parents"), (q_rows, "q_rows"))
        )
        self.q_count = int(self._q_rows.max(initial=-1)) + 1
        self._law = ffi.new("char[]", tree.law.encode())
        self._pointers = [pointer(a, "int32_t") for a in (self._tokens, self._parents, self._q_rows)]
        token, parent, qrow = self._pointers
        self.c = struct("wg_draft", n=n, token=token, parent=parent, qrow=qrow, q_rows=self.q_count, law=self._law)


class CRows:
    """Rows of p and q of a tree as the library reads them."""

    def __init__(self, tree: CTree, p: ArrayLike, q: ArrayLike | None) -> None:
        self._p = rows_array(p, "p", tree.n)
        self.vocab = self._p.shape[1]
        if q is None and tree.q_count:
            raise ArgumentError(f"q: None; the tree has {tree.q_count} rows of q", "EINVAL")
        self._q = np.zeros((0, self.vocab)) if q is None else rows_array(q, "q", len(q), self.vocab)
        tree.c.q_rows = self._q.shape[0]
        self.p, self.q = pointer(self._p, "double"), pointer(self._q, "double")


def tree_of(draft: Any) -> Tree:
    """A tree from a wg_draft of the library's, copied."""
    n = draft.n
    token, parent, qrow = (ffi.unpack(getattr(draft, name), n) for name in ("token", "parent", "qrow"))
    return Tree(token, parent, qrow, ffi.string(draft.law).decode())
