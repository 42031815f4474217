# SPDX-License-Identifier: MIT
"""verify and prove."""

import os
import signal
import threading
import time
import unittest

import numpy as np

import wager

P = [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]
Q = [[0.25, 0.5, 0.25]]
CHAIN = wager.Tree.chain([0, 1])


def rejection(tree, p, q, choice):
    """Speculative sampling on chains (Leviathan et al. 2023)."""
    for node in range(1, tree.n):
        row, token = q[tree.q_rows[node]], tree.tokens[node]
        if not choice.accept(node, p[node - 1][token], row[token]):
            rest = np.maximum(p[node - 1] - row, 0)
            return range(node), choice.token(node - 1, rest if rest.sum() > 0 else p[node - 1])
    return range(tree.n), choice.token(tree.n - 1, p[tree.n - 1])


class Verify(unittest.TestCase):
    def test_uniforms_decide_in_their_order(self):
        out = wager.verify(CHAIN, P, Q, uniforms=[0.4, 0.9])
        self.assertEqual((out.nodes, out.next, out.tokens, out.used, out.accepted), ((0, 1), 2, (1, 2), 2, 1))
        out = wager.verify(CHAIN, P, Q, uniforms=np.array([0.6, 0.9], dtype=np.float32))
        self.assertEqual((out.nodes, out.tokens), ((0,), (0,)))

    def test_an_address_decides_the_same(self):
        outs = [wager.verify(CHAIN, P, Q, seed=3, request=i, position=9) for i in range(2000)]
        self.assertEqual(outs[7], wager.verify(CHAIN, np.float32(P), Q, seed=3, request=7, position=9))
        kept = np.mean([o.accepted for o in outs])
        self.assertLess(abs(kept - 0.5), 5 * (0.25 / 2000) ** 0.5)

    def test_trees_without_q(self):
        tree = wager.Tree([5, 1, 2], [-1, 0, 0])
        p = np.eye(6)[[2, 3, 4]]
        out = wager.verify(tree, p, rule="match", seed=1)
        self.assertEqual((out.nodes, out.tokens), ((0, 2), (2, 4)))

    def test_what_is_refused(self):
        for part, call in {
            "shape (2, 3); expected (3, tokens)": lambda: wager.verify(wager.Tree([0, 1, 2], [-1, 0, 1]), P),
            "tree.parents: 1 numbers; expected 2": lambda: wager.verify(wager.Tree([0, 1], [-1]), P),
            "q: None; the tree has 1 rows of q": lambda: wager.verify(CHAIN, P),
            "sums to 1.5": lambda: wager.verify(CHAIN, [[0.5, 0.5, 0.5], P[1]], Q),
            'did you mean "rejection"': lambda: wager.verify(CHAIN, P, Q, "rejektion"),
            "needs more than 1 uniforms": lambda: wager.verify(CHAIN, P, Q, uniforms=[0.1]),
            "whole numbers": lambda: wager.verify(wager.Tree([0.5, 1], [-1, 0]), P),
        }.items():
            with self.assertRaises(wager.ArgumentError) as caught:
                call()
            self.assertIn(part, str(caught.exception))
        self.assertEqual(caught.exception.code, "EINVAL")


class Prove(unittest.TestCase):
    def test_rules_of_the_library(self):
        proof = wager.prove("block", cases=20)
        self.assertTrue(proof.lossless and proof and proof.deviation <= 1e-12 and proof.counterexample == "")
        self.assertGreater(proof.tau, 1)
        self.assertFalse(wager.prove("typical", cases=5))

    def test_a_rule_in_python_is_the_rule_in_c(self):
        mine, theirs = wager.prove(rejection, cases=20), wager.prove("rejection", cases=20)
        self.assertTrue(mine.lossless and mine.reused == 0)
        self.assertAlmostEqual(mine.tau, theirs.tau, delta=1e-12)
        self.assertAlmostEqual(mine.alpha, theirs.alpha, delta=1e-12)

    def test_a_biased_rule_has_a_counterexample(self):
        def forgets_the_residual(tree, p, q, choice):
            for node in range(1, tree.n):
                if not choice.accept(node, p[node - 1][tree.tokens[node]], q[node - 1][tree.tokens[node]]):
                    return range(node), choice.token(node - 1, p[node - 1])
            return range(tree.n), choice.token(tree.n - 1, p[tree.n - 1])

        proof = wager.prove(forgets_the_residual, cases=20)
        self.assertGreater(proof.deviation, 0.01)
        self.assertIn("smallest counterexample of forgets_the_residual", proof.counterexample)

    def test_what_a_rule_raises(self):
        calls = []

        def broken(tree, p, q, choice):
            calls.append(1)
            raise KeyError("no such row")

        with self.assertRaises(KeyError):
            wager.prove(broken)
        self.assertEqual(len(calls), 1, "the proof ends at once")
        with self.assertRaises(wager.ArgumentError) as caught:
            wager.prove(lambda tree, p, q, choice: ([0, 2], 0))
        self.assertIn("returned no path of the tree", str(caught.exception))
        with self.assertRaises(wager.ArgumentError):
            wager.prove("rejection", law="coupled")

    def test_ctrl_c_inside_a_rule(self):
        def slow(tree, p, q, choice):
            time.sleep(0.01)
            return rejection(tree, p, q, choice)

        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        start = time.monotonic()
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            wager.prove(slow, cases=5000)
        self.assertLess(time.monotonic() - start, 5)
        self.assertTrue(wager.prove(rejection, cases=3).lossless, "and the library goes on")


if __name__ == "__main__":
    unittest.main()
