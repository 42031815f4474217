# SPDX-License-Identifier: MIT
"""Drafters alone."""

import unittest

import numpy as np

import wager

MODEL = "models/story-draft-q8_0.gguf"


class Drafters(unittest.TestCase):
    def test_propose_observe_forget(self):
        with wager.Drafter("ngram", vocab=32, context=64, k=4, sequences=2) as drafter:
            text = drafter.sequence([5, 6, 7, 8, 9, 5, 6, 7])
            draft = text.propose()
            self.assertEqual((draft.tokens, draft.parents, draft.law), ([7, 8, 9, 5, 6], [-1, 0, 1, 2, 3], "fixed"))
            self.assertEqual(draft.drafted, [8, 9, 5, 6])
            text.observe([8, 9, 1])
            other = drafter.sequence(np.array([1, 2, 1]))
            self.assertEqual(other.propose().drafted[:1], [2])
            self.assertEqual(text.advance(np.array([5, 6, 7], dtype=np.int64)).drafted[:2], [8, 9])
            self.assertEqual(text.advance((8,)).drafted[0], 9)
            with self.assertRaises(wager.Error) as caught:
                drafter.sequence([1])
            self.assertEqual(caught.exception.code, "EFULL")
            other.forget()
            other.forget()
            drafter.sequence([1, 2, 3])

    def test_a_tree_has_its_parents_after_the_next_call(self):
        with wager.Drafter("suffix", vocab=8, context=64, tree=True) as drafter:
            text = drafter.sequence([1, 2, 3, 1, 2, 4, 1, 2])
            draft = text.propose()
            text.advance([5])
            self.assertEqual(draft.children(0), [i for i, parent in enumerate(draft.parents) if parent == 0])
            self.assertEqual({draft.tokens[i] for i in draft.children(0)}, {3, 4})
            self.assertEqual((len(draft.q_rows), draft.law, draft.q_rows is draft.q_rows), (draft.n, "fixed", True))
            chain = text.advance([6, 1, 2, 3])
            self.assertEqual((chain.parents, chain.n > 2), (list(range(-1, chain.n - 1)), True))

    def test_a_finished_text_is_learned_and_an_aborted_one_is_not(self):
        for ends, drafted in (("finish", [8, 7]), ("forget", [])):
            with wager.Drafter("suffix", vocab=32, context=64, factor=2) as drafter:
                text = drafter.sequence([1, 2])
                text.advance([3, 9, 8, 7])
                getattr(text, ends)()
                self.assertEqual(drafter.sequence([5, 9]).propose().drafted, drafted, ends)

    def test_what_is_refused(self):
        drafter = wager.Drafter("suffix", vocab=32, context=16)
        text = drafter.sequence([1, 2])
        with self.assertRaisesRegex(wager.ArgumentError, "token 0 is 32; the vocabulary is 0..31"):
            text.observe([32])
        with self.assertRaisesRegex(wager.ArgumentError, "0 tokens to observe"):
            text.observe([])
        with self.assertRaises(wager.Error) as caught:
            text.observe([1] * 600)
        self.assertEqual(caught.exception.code, "ECONTEXT")
        with self.assertRaises((wager.ArgumentError, OverflowError)):
            text.observe([2**40])
        drafter.close()
        with self.assertRaisesRegex(wager.ArgumentError, "the sequence is NULL"):
            text.propose()
        with self.assertRaisesRegex(wager.ArgumentError, "the drafter is closed"):
            drafter.sequence([1])
        with self.assertRaisesRegex(wager.ArgumentError, "drafter recycle learns from the target's rows"):
            wager.Drafter("recycle", vocab=32)
        with self.assertRaisesRegex(wager.ArgumentError, "did you mean"):
            wager.Drafter("sufix", vocab=32)
        with self.assertRaisesRegex(wager.ArgumentError, "needs vocab, the tokens of the target"):
            wager.Drafter("model", model=MODEL)

    def test_what_it_is(self):
        with wager.Drafter("ngram", rule="match", k=4) as drafter:  # a look-up needs no vocabulary
            self.assertEqual(drafter.sequence([200000, 7, 200000]).propose().drafted, [7, 200000, 7, 200000])
            self.assertEqual(
                repr(drafter), "Drafter('ngram', vocab=262144, context=8192, sequences=1, verify={'rule': 'match'}, k=4)"
            )
        self.assertTrue(repr(drafter).startswith("closed Drafter('ngram', "))

    def test_rows_of_a_model_that_draws(self):
        sampling = {"temperature": 0.8}
        with wager.Drafter("model", vocab=4096, rule="rejection", sampling=sampling, seed=3, model=MODEL, length=3) as drafter:
            text = drafter.sequence([1, 300, 301], request=9)
            draft = text.propose()
            q = draft.q()
            self.assertEqual((q.shape, draft.law), ((3, 4096), "iid"))
            self.assertTrue(np.allclose(q.sum(axis=1), 1) and all(q[i][t] > 0 for i, t in enumerate(draft.drafted)))
            self.assertEqual(text.propose().drafted, draft.drafted, "the same address draws the same")
            with self.assertRaisesRegex(wager.ArgumentError, "the drafter was called since this draft"):
                draft.q()
            p = np.vstack([q, q[:1]])
            self.assertEqual(wager.verify(draft, p, q, seed=1).accepted, 3, "q = p: all is kept")

    def test_ten_thousand_lives(self):
        def pages():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1])

        def live(n):
            for _ in range(n):
                drafter = wager.Drafter("ngram", vocab=8, context=16)
                drafter.sequence([1, 2, 1]).propose()
                drafter.close()

        live(1000)
        before = pages()
        live(9000)
        self.assertLess(pages() - before, 500, "pages of 4 KB after 9,000 drafters")


if __name__ == "__main__":
    unittest.main()
