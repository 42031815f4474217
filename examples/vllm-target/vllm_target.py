# SPDX-License-Identifier: MIT
"""A process target over vLLM: models that need several cards or machines, with wager's drafters, rules and measurements.

    wager generate -m FOLDER --target "process:command=python3 vllm_target.py FOLDER --tensor 4" -p "Once upon a time"

A row of logits is one request: the text with the tokens on the row's path as prompt, one new token, and the raw logits of that token
for the whole vocabulary. The requests of a pass are one batch, whose common beginnings vLLM's prefix cache computes once. (Its
prompt_logprobs would return the vocabulary for every token of the prompt, without that cache.) Rows of vLLM depend on their batch in
the last bits, so results are equal in law only. It gives no hidden states: vLLM keeps only those of the
layers that are named at its start, and the protocol asks for any layer."""
import argparse
import os
import sys

import numpy as np
from vllm import LLM, SamplingParams

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "process-target"))
import row_peer  # noqa: E402  (the protocol, docs/process-target.md)


def options_of_engine(o):
    """Arguments of vLLM's LLM. Every logit of the vocabulary is allowed, as the model gave it."""
    return {
        "model": o.folder,
        "skip_tokenizer_init": True,
        "tensor_parallel_size": o.tensor,
        "pipeline_parallel_size": o.pipeline,
        "distributed_executor_backend": o.executor,
        "dtype": o.dtype,
        "max_model_len": o.context or None,
        "enable_prefix_caching": True,
        "max_logprobs": -1,
        "logprobs_mode": "raw_logits",
    }


class Model:
    layers = dim = 0  # no hidden states

    def __init__(self, o):
        self.engine = LLM(**options_of_engine(o))
        config = self.engine.model_config
        self.name, self.vocab, self.context = os.path.basename(o.folder.rstrip("/")), config.get_vocab_size(), config.max_model_len
        self.one = SamplingParams(max_tokens=1, temperature=0, logprobs=-1, detokenize=False, flat_logprobs=True)
        self.text = {}  # of a sequence: its text; the rows of its last request, as the tokens behind the text
        self.tap = []

    def paths(self, p):
        """The text of a part's sequence, and of each row the tokens behind it up to the row's own."""
        text, rows = self.text.get(p.sequence, ([], []))
        text = text[:p.kept] + [rows[i][-1] for i in p.path]
        paths = []
        for token, parent, _, _ in p.rows.tolist():
            paths.append((paths[parent] if parent >= 0 else []) + [token])
        self.text[p.sequence] = text, paths
        return text, paths

    def ask(self, parts, logits, taps):
        prompts, places = [], []
        for p in parts:
            text, paths = self.paths(p)
            wanted = [(path, place) for path, place in zip(paths, p.rows[:, 3].tolist()) if place >= 0]
            prompts += [{"prompt_token_ids": text + path} for path, _ in wanted]
            places += [place for _, place in wanted]
        if not prompts:
            return  # a prompt's beginning: the cache gets it with the first row that is wanted
        answers = self.engine.generate(prompts, self.one, use_tqdm=False)
        for place, answer in zip(places, answers):
            row = answer.outputs[0].logprobs
            first, end = row.start_indices[0], row.end_indices[0]
            token = np.array(row.token_ids[first:end])
            logits[place] = -np.inf
            logits[place][token] = row.logprobs[first:end]
            if not np.isfinite(logits[place]).all():
                raise ValueError("vLLM gave logits of %d tokens; expected all %d" % (len(set(token.tolist())), self.vocab))


if __name__ == "__main__":
    a = argparse.ArgumentParser(description="started by wager: \"kind\": \"process\"")
    a.add_argument("folder", help="a model as vLLM reads it")
    a.add_argument("--tensor", type=int, default=1, help="cards that share each layer")
    a.add_argument("--pipeline", type=int, default=1, help="groups of such cards, each with a part of the layers")
    a.add_argument("--executor", choices=["mp", "ray"], help="ray: cards of several machines; without it vLLM chooses")
    a.add_argument("--dtype", default="auto")
    a.add_argument("--context", type=int, default=0, help="longest sequence; 0: the model's")
    row_peer.serve(Model(a.parse_args()))
