# SPDX-License-Identifier: MIT
"""Shims for other engines against objects that have the engines' shapes; tests/python/signatures.json, checked against the
published packages by tests/python/check_signatures.py, says which."""

import json
import os
import unittest
import unittest.mock
from inspect import signature
from pathlib import Path
from types import SimpleNamespace as Object

import numpy as np

import wager
from wager.shims import arctic, llama_cpp, sglang, tensorrt_llm, vllm
from wager.shims.history import Histories

LOOP = [5, 6, 7, 8, 9, 5, 6]
SIGNATURES = json.loads((Path(__file__).parent / "signatures.json").read_text())["signatures"]


def parameters(function):
    return [p for p in signature(function).parameters if p != "self"]


class Signatures(unittest.TestCase):
    def test_ours_take_what_theirs_are_given(self):
        for name, function in {
            "vllm.Proposer.propose": vllm.Proposer.propose,
            "sglang.NgramCorpus.batch_get": sglang.Corpus.batch_get,
            "sglang.NgramCorpus.batch_put": sglang.Corpus.batch_put,
            "sglang.NgramCorpus.erase_match_state": sglang.Corpus.erase_match_state,
            "tensorrt_llm.Drafter.prepare_draft_tokens": tensorrt_llm.Drafter.prepare_draft_tokens,
            "arctic.SuffixDecodingCache.start_request": arctic.SuffixDecodingCache.start_request,
            "arctic.SuffixDecodingCache.stop_request": arctic.SuffixDecodingCache.stop_request,
            "arctic.SuffixDecodingCache.add_active_response": arctic.SuffixDecodingCache.add_active_response,
            "arctic.SuffixDecodingCache.evict_cached_response": arctic.SuffixDecodingCache.evict_cached_response,
            "arctic.SuffixDecodingCache.speculate": arctic.SuffixDecodingCache.speculate,
        }.items():
            self.assertEqual(parameters(function), SIGNATURES[name]["parameters"], name)

    def test_sglangs_corpus_has_all_that_is_asked_of_it(self):
        for name in SIGNATURES["sglang.NGRAMWorker of its corpus"]["parameters"]:
            self.assertTrue(callable(getattr(sglang.Corpus, name, None)), name)


class HistoriesTest(unittest.TestCase):
    def test_texts_are_followed(self):
        texts = Histories(wager.Drafter("ngram", vocab=32, context=64, sequences=2, k=3))
        self.assertEqual(texts.follow("a", LOOP).drafted, [7, 8, 9])
        self.assertEqual(texts.follow("a", LOOP).drafted, [7, 8, 9])
        self.assertEqual(texts.follow("a", [*LOOP, 7]).drafted, [8, 9, 5])
        self.assertEqual(texts.follow("a", [1, 2, 1]).drafted[:1], [2], "another text, shorter")
        self.assertEqual(texts.follow("a", [3, 4, 3, 4, 3]).drafted[:1], [4], "another text, longer")
        texts.follow("a", [1, 2, 1])
        texts.follow("b", [1, 2])
        texts.follow("a", [1, 2, 1, 2])
        texts.follow("c", [3, 4])
        self.assertEqual(texts.keys(), {"a", "c"}, "the one that was longest unused went")


class Engines(unittest.TestCase):
    def test_llama_cpp(self):
        draft = llama_cpp.Draft("ngram", vocab=32, context=16, k=3)
        self.assertEqual(draft(np.array(LOOP, dtype=np.intc)).tolist(), [7, 8, 9])
        found = draft(np.array([*LOOP, 7, 8], dtype=np.intc))
        self.assertEqual((found.tolist(), found.dtype), ([9, 5, 6], np.dtype(np.intc)))
        self.assertEqual(len(draft(np.zeros(16, dtype=np.intc))), 0, "longer than the context")

    def test_vllm(self):
        config = Object(
            speculative_config=Object(num_speculative_tokens=3),
            model_config=Object(max_model_len=12, get_vocab_size=lambda: 32),
            scheduler_config=Object(max_num_seqs=2),
        )
        os.environ["WAGER_DRAFT"] = "ngram:n_max=3"
        self.addCleanup(os.environ.pop, "WAGER_DRAFT")
        proposer = vllm.Proposer(config)
        proposer.load_model(None)
        table = np.zeros((2, 12), dtype=np.int32)
        table[0, :7], table[1, :3] = LOOP, [1, 2, 1]
        self.assertEqual(proposer.propose([[6], []], np.array([7, 3]), table), [[7, 8, 9], []])
        table[0, 7:9] = [7, 8]
        self.assertEqual(proposer.propose([[7, 8], [1]], np.array([9, 3]), table)[0], [9, 5], "room for two more")
        table[0, :5] = [3, 4, 3, 4, 3]
        self.assertEqual(proposer.propose([[3], []], np.array([5, 3]), table)[0][:1], [4], "a new request in its row")
        table[1] = 9
        self.assertEqual(proposer.propose([[], [9]], np.array([5, 12]), table), [[], []], "no room")

    def test_vllm_of_many_rows(self):
        """vLLM's default on large cards: every row keeps its text, so each is read once."""
        rows = 1024
        config = Object(
            speculative_config=Object(num_speculative_tokens=3),
            model_config=Object(max_model_len=12, get_vocab_size=lambda: 32),
            scheduler_config=Object(max_num_seqs=rows),
        )
        os.environ["WAGER_DRAFT"] = "ngram:n_max=3"
        self.addCleanup(os.environ.pop, "WAGER_DRAFT")
        proposer = vllm.Proposer(config)
        table = np.tile(np.array([*LOOP, 0, 0, 0, 0, 0], dtype=np.int32), (rows, 1))
        self.assertEqual(proposer.propose([[6]] * rows, np.full(rows, 7), table), [[7, 8, 9]] * rows)
        table[:, 7] = 7
        opened = []
        sequence = wager.Drafter.sequence
        with unittest.mock.patch.object(wager.Drafter, "sequence", lambda *a, **k: opened.append(1) or sequence(*a, **k)):
            self.assertEqual(proposer.propose([[7]] * rows, np.full(rows, 8), table), [[8, 9, 5]] * rows)
        self.assertEqual(opened, [], "texts were begun anew")

    def test_tensorrt_llm(self):
        drafter = tensorrt_llm.Drafter("ngram", vocab=32, max_draft_len=3, context=64, sequences=2)

        def request(number, tokens, new=100):
            return Object(request_id=number, get_tokens=lambda beam: tokens, py_orig_prompt_len=4, py_max_new_tokens=new)

        batch = Object(generation_requests=[request(1, LOOP), request(2, LOOP, new=5), request(3, LOOP, new=4)])
        drafter.prepare_draft_tokens(batch)
        self.assertEqual([r.py_draft_tokens for r in batch.generation_requests], [[7, 8, 9], [7], []])

    def test_sglang(self):
        corpus = sglang.Corpus(vocab=32, draft_token_num=4, drafter="ngram")
        corpus.synchronize()
        tokens, mask = corpus.batch_get(["a", "b"], [LOOP, [1]], [len(LOOP), 1])
        self.assertEqual(tokens.tolist(), [6, 7, 8, 9, 1, 1, 1, 1])
        self.assertTrue(np.array_equal(mask.reshape(2, 4, 4)[0], np.tril(np.ones((4, 4), dtype=bool))))
        tokens, _ = corpus.batch_get(["a"], [[9, 5, 6, 7]], [len(LOOP) + 1])
        self.assertEqual(tokens.tolist(), [7, 8, 9, 5], "only the new token was added")
        corpus.batch_put([LOOP])
        self.assertEqual(corpus.list_external_corpora(), {})
        with self.assertRaises(NotImplementedError):
            corpus.load_external_corpus_named("a", [LOOP])
        corpus.reset()
        self.assertEqual(corpus.batch_get(["a"], [[5, 6]], [2])[0].tolist(), [6, 6, 6, 6])


class Arctic(unittest.TestCase):
    def test_the_life_of_requests(self):
        cache = arctic.SuffixDecodingCache(max_tree_depth=24, max_cached_requests=2, vocab=32)
        cache.start_request("a", np.array([1, 2, 3, 4, 1, 2], dtype=np.int32))
        draft = cache.speculate("a", [4, 1, 2], max_spec_tokens=2)
        self.assertEqual((draft.token_ids, draft.parents), ([3, 4], [-1, 0]))
        self.assertGreater(draft.score, 0)
        cache.add_active_response("a", [3, 9, 8, 7])
        self.assertEqual((set(cache.active_requests), set(cache.cached_requests)), ({"a"}, {"a"}))
        cache.stop_request("a")
        cache.start_request("b", [5, 9])
        self.assertEqual(cache.speculate("b", [5, 9], max_spec_tokens=2).token_ids, [8], "the answer of a")
        cache.evict_cached_response("a")
        cache.start_request("c", [1])
        cache.start_request("d", [1])
        self.assertEqual(set(cache.cached_requests), {"c", "d"})

    def test_what_is_refused(self):
        cache = arctic.SuffixDecodingCache(vocab=32)
        cache.start_request(1, [1, 2])
        for part, call in {
            "already active": lambda: cache.start_request(1, [1]),
            "'2' is not active": lambda: cache.speculate(2, [1]),
            "'3' is not active": lambda: cache.stop_request(3),
            "'4' is not cached": lambda: cache.evict_cached_response(4),
            "the context is not the end": lambda: cache.speculate(1, [2, 1]),
            "one row of int32": lambda: cache.add_active_response(1, np.array([1])),
        }.items():
            with self.assertRaisesRegex(ValueError, part):
                call()
        cache.speculate(1, [1, 2])
        with self.assertRaisesRegex(ValueError, "those of the first call"):
            cache.speculate(1, [1, 2], min_token_prob=0.5)


if __name__ == "__main__":
    unittest.main()
