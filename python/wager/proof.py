# SPDX-License-Identifier: MIT
"""Proofs of verification rules, the library's and ones written in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._library import check, ffi, lib, new_error, struct, text
from .tree import Tree, tree_of


class Choice:
    """The random decisions of a rule that is being proved. All of them go through it, and each is asked for once."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def accept(self, node: int, num: float, den: float) -> bool:
        """True with probability min(1, num / den): whether node `node` is accepted."""
        return bool(lib.wg_choice_accept(self._handle, node, num, den))

    def token(self, accepted: int, weights: ArrayLike) -> int:
        """A token with probability weights[token] / sum, weights: (vocab): the one after `accepted` accepted draft tokens."""
        row = np.ascontiguousarray(weights, dtype=np.float64)
        return int(lib.wg_choice_token(self._handle, accepted, ffi.from_buffer("double[]", row), row.size))


Rule = Callable[[Tree, np.ndarray, np.ndarray, Choice], "tuple[Sequence[int], int]"]
"""rule(tree, p, q, choice) -> (accepted nodes from node 0 down, the token after them). p: (n, vocab), q: (rows, vocab)."""


@dataclass(frozen=True)
class Proof:
    """A rule's law compared with the target's, over all outcomes of all random decisions.

    lossless: the deviation is rounding (1e-12 at most), and no decision was taken twice. deviation: the largest |chance of a
    text - what it should be|. tau: mean tokens of a round; alpha: chance that a child of the root is kept; alpha_star: the
    largest such chance of any lossless rule. runs: combinations of outcomes; reused: decisions taken twice; cases: pairs of p
    and q. counterexample: the smallest one found, in words; "" for a lossless rule."""

    lossless: bool
    deviation: float
    tau: float
    alpha: float
    alpha_star: float
    runs: int
    reused: int
    cases: int
    counterexample: str

    def __bool__(self) -> bool:
        return self.lossless


def _array(values: Any, rows: int, vocab: int) -> np.ndarray:
    return np.frombuffer(ffi.buffer(values, rows * vocab * 8), dtype=np.float64).reshape(rows, vocab)


class _Callback:
    """A rule in Python as a C callback. What it raises, ctrl-C included, ends the proof and is raised from `prove`."""

    def __init__(self, rule: Rule, law: str, chains: bool) -> None:
        self.raised: BaseException | None = None
        self._rule = rule
        self._accept = ffi.callback(
            "int(void *, const wg_draft *, int, const double *, const double *, const wg_choice *, int32_t *, int32_t *)",
            self._run,
            error=0,
            onerror=self._keep,
        )
        self._name = ffi.new("char[]", getattr(rule, "__name__", "rule").encode())
        self._law = ffi.new("char[]", law.encode())
        self.c = struct("wg_rule_callback", name=self._name, law=self._law, chains=int(chains), accept=self._accept)

    def _keep(self, kind: type, value: BaseException, trace: Any) -> None:
        if self.raised is None:
            self.raised = value

    def _run(self, _user, draft, vocab, p, q, choice, node, after) -> int:
        if self.raised is not None:
            return 0
        tree = tree_of(draft)
        nodes, token = self._rule(tree, _array(p, tree.n, vocab), _array(q, draft.q_rows, vocab), Choice(choice))
        path = [int(i) for i in nodes]
        if len(path) <= tree.n:
            node[0 : len(path)] = path
        after[0] = int(token)
        return len(path)


def prove(
    rule: str | Rule,
    *,
    vocab: int = 3,
    depth: int = 2,
    children: int = 1,
    law: str = "iid",
    steps: int = 1,
    cases: int = 50,
    seed: int = 1,
) -> Proof:
    """Enumerates every outcome of a rule and its drafts and compares the law of the text with the target's.

    rule: a name as `verify` takes it, or a function (see `Rule`). The drafts are trees of `depth` levels whose nodes have
    `children` children each, over `vocab` tokens, drawn by `law`; p and q are `cases` random pairs; `steps` rounds follow each
    other.

    Raises ArgumentError: numbers out of range, too many outcomes, a rule that does not check such drafts, or that returned no
    path; and whatever a rule in Python raises."""
    options_law = ffi.new("char[]", law.encode())
    options = struct(
        "wg_proof_options",
        vocab=vocab,
        depth=depth,
        children=children,
        steps=steps,
        law=options_law,
        cases=cases,
        seed=seed,
    )
    out, words, error = struct("wg_proof"), ffi.new("char **"), new_error()
    if callable(rule):
        callback = _Callback(rule, law, children == 1)
        status = lib.wg_rule_prove_callback(callback.c, options, out, words, error)
        if callback.raised is not None:
            lib.wg_text_free(words[0])
            raise callback.raised
    else:
        status = lib.wg_rule_prove(rule.encode(), options, out, words, error)
    check(status, error)
    counterexample = text(words[0])
    lib.wg_text_free(words[0])
    return Proof(
        bool(out.lossless),
        out.deviation,
        out.tau,
        out.alpha,
        out.alpha_star,
        out.runs,
        out.reused,
        out.cases,
        counterexample,
    )
