# SPDX-License-Identifier: MIT
"""Verification of one draft tree by rows of p and q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ._library import check, ffi, lib, new_error, struct
from .tree import CRows, CTree, Tree, pointer


@dataclass(frozen=True)
class Outcome:
    """What a rule decided.

    nodes: the accepted nodes, node 0 first; next: the token after them, corrected or bonus; tokens: what the round emits, the
    accepted draft tokens and `next`; used: how many of the caller's uniforms were used."""

    nodes: tuple[int, ...]
    next: int
    tokens: tuple[int, ...]
    used: int = 0

    @property
    def accepted(self) -> int:
        """Accepted draft tokens."""
        return len(self.nodes) - 1


def verify(
    tree: Tree,
    p: ArrayLike,
    q: ArrayLike | None = None,
    rule: str = "rejection",
    *,
    uniforms: ArrayLike | None = None,
    seed: int = 0,
    request: int = 0,
    position: int = 0,
) -> Outcome:
    """Verifies a tree by a rule (`wager list rules`; options as in "typical:epsilon=0.3").

    p: (n, vocab), the target's distribution after each node; q: (rows, vocab), those that drafts were drawn from, or None
    where no node has one. Rows are distributions after the sampler chain (temperature, top-p ...), float32 or float64.

    Random decisions: uniforms: (m) in [0, 1), used in their order; or, without them, drawn at the address (seed, request,
    position), position being that of the first token that the round emits: the same address decides the same.

    Raises ArgumentError: a tree or a row that is none, a drafted token without probability in its row of q, too few uniforms,
    or a rule that does not check such drafts."""
    c_tree = CTree(tree)
    rows = CRows(c_tree, p, q)
    name = ffi.new("char[]", rule.encode())
    given = None if uniforms is None else np.ascontiguousarray(uniforms, dtype=np.float64).ravel()
    u = ffi.NULL if given is None else ffi.from_buffer("double[]", given)
    how = struct(
        "wg_verification",
        rule=name,
        vocab=rows.vocab,
        p=rows.p,
        q=rows.q,
        seed=seed,
        request=request,
        position=position,
        uniform=u,
        uniforms=0 if given is None else len(given),
    )
    node = ffi.new("int32_t[]", max(c_tree.n, 1))
    out = struct("wg_outcome", node=node)
    error = new_error()
    check(lib.wg_verify_tree(c_tree.c, how, out, error), error)
    nodes = tuple(ffi.unpack(node, out.n))
    return Outcome(nodes, out.next, (*(int(tree.tokens[i]) for i in nodes[1:]), out.next), out.used)


__all__ = ["Outcome", "Tree", "pointer", "verify"]
