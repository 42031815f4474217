# SPDX-License-Identifier: MIT
"""Traces written and read, and replayed by the program."""

import json
import os
import tempfile
import unittest

import numpy as np

import wager
from wager import program, trace

V = 8
CONFIG = {"name": "theirs", "seed": 11, "verify": {"rule": "rejection"}, "draft": {"kind": "of theirs"}}


def rows(rng, n):
    p = rng.exponential(size=(n, V)) ** 2
    return p / p.sum(axis=1, keepdims=True)


class Traces(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("WAGER_SCRATCH"))
        self.path = os.path.join(self.folder.name, "trace.wgt")
        self.addCleanup(self.folder.cleanup)

    def record(self, **options):
        """Four requests of drawn chains, verified and recorded; the texts."""
        rng, texts = np.random.default_rng(1), []
        with trace.Writer(self.path, V, [0], CONFIG, engine="test 1", **options) as writer:
            for prompt in range(4):
                text = [1, 2, 3 + prompt]
                request = writer.request(text, max_tokens=40, prompt=prompt)
                while not request.end:
                    q, p = rows(rng, 2), rows(rng, 3)
                    drawn = [int(rng.choice(V, p=row)) for row in q]
                    out = request.verify(wager.Tree.chain([text[-1], *drawn]), p, q, seconds=0.5, verify=0.25)
                    text += out.tokens
                    self.assertEqual(len(text), request.position)
                request.finish()
                texts.append(text)
        return texts

    def test_what_is_written_is_read(self):
        texts = self.record()
        with trace.Reader(self.path) as got:
            self.assertEqual([list(q.tokens) for q in got.requests], texts)
            self.assertTrue(all(q.ended and q.prompt_tokens == 3 for q in got.requests))
            self.assertEqual((got.header["name"], got.header["program"], got.damage), ("theirs", "test 1", ""))
            self.assertEqual(got.header["cells"][0]["config"]["draft"], {"kind": "of theirs"})
            rng = np.random.default_rng(1)
            for o in list(got):
                q, p = rows(rng, 2), rows(rng, 3)
                drawn = [int(rng.choice(V, p=row)) for row in q]
                self.assertEqual((o.tree.tokens[1:], o.tree.law, o.seconds, o.verify), (drawn, "iid", 0.5, 0.25))
                found = o.rows()
                self.assertTrue(np.array_equal(found[0], p) and np.array_equal(found[1], q) and o.row_error() == 0)
            self.assertEqual(got[-1].end, "eos" if texts[-1][-1] == 0 else "length")
            with self.assertRaises(IndexError):
                got[len(got)]

    def test_a_replay_repeats_every_decision(self):
        self.record()
        row = json.loads(program.call(["replay", self.path, "--json"]))
        self.assertEqual(row["same_rounds"], row["rounds"])
        self.assertGreater(row["rounds"], 10)

    def test_compact_rows_say_their_error(self):
        self.record(rows="top", top=2)
        with trace.Reader(self.path) as got:
            self.assertTrue(0 < got[0].row_error() < 1)

    def test_a_cut_file_is_used_up_to_its_damage(self):
        self.record()
        size = os.path.getsize(self.path)
        os.truncate(self.path, size - 300)
        with trace.Reader(self.path) as got:
            self.assertIn("the record at byte", got.damage)
            self.assertGreater(len(got), 10)

    def test_what_is_refused(self):
        with self.assertRaises(wager.FileError) as caught:
            trace.Reader("missing.wgt")
        self.assertEqual(caught.exception.code, "ENOENT")
        with self.assertRaisesRegex(wager.FileError, "not a trace"):
            trace.Reader("tests/CMakeLists.txt")
        with self.assertRaisesRegex(wager.ArgumentError, "expected exact, f16 or top"):
            trace.Writer(self.path, V, rows="all")
        with trace.Writer(self.path, V) as writer:
            with self.assertRaisesRegex(wager.ArgumentError, "one of limit and max_tokens"):
                writer.request([1])
            request = writer.request([1], limit=9)
            chain = wager.Tree.chain([1, 2])
            good, q = np.full((2, V), 1 / V), np.full((1, V), 1 / V)
            with self.assertRaisesRegex(wager.ArgumentError, "sums to 0.9999"):
                request.round(chain, [0], 2, good * 0.9999, q)
            with self.assertRaisesRegex(wager.ArgumentError, "are no path of the tree"):
                request.round(chain, [1], 2, good, q)
            with self.assertRaisesRegex(wager.ArgumentError, "rows of 3 tokens; the trace has a vocabulary of 8"):
                request.round(wager.Tree([1], [-1]), [0], 2, np.full((1, 3), 1 / 3))
            self.assertIsNone(request.round(chain, [0, 1], 2, good, q))
        with trace.Reader(self.path) as got:
            self.assertEqual((len(got), got.damage), (1, ""))


if __name__ == "__main__":
    unittest.main()
