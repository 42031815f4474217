# SPDX-License-Identifier: MIT
"""Stands for vLLM in the test of examples/vllm-target: its objects and the arguments that vLLM 0.33 has, over the numpy model of
examples/process-target, whose logits have wager's bits. What vLLM would refuse, and what it does not promise, is an error here."""
import os
import sys
from dataclasses import dataclass, field

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/process-target"))
import numpy_target  # noqa: E402
import row_peer  # noqa: E402


@dataclass
class SamplingParams:
    max_tokens: int = 16
    temperature: float = 1.0
    logprobs: int | None = None
    detokenize: bool = True
    flat_logprobs: bool = False


@dataclass
class FlatLogprobs:
    start_indices: list = field(default_factory=list)
    end_indices: list = field(default_factory=list)
    token_ids: list = field(default_factory=list)
    logprobs: list = field(default_factory=list)


@dataclass
class CompletionOutput:
    token_ids: list
    logprobs: FlatLogprobs


@dataclass
class RequestOutput:
    prompt_token_ids: list
    outputs: list


class ModelConfig:
    def __init__(self, model, longest):
        self.max_model_len = longest or model.context
        self.vocab = model.vocab

    def get_vocab_size(self):
        return self.vocab


class LLM:
    def __init__(self, model, *, skip_tokenizer_init=False, tensor_parallel_size=1, dtype="auto", **more):
        known = {"pipeline_parallel_size", "distributed_executor_backend", "max_model_len", "enable_prefix_caching", "max_logprobs",
                 "logprobs_mode"}
        if set(more) - known:
            raise TypeError("unexpected arguments: %s" % sorted(set(more) - known))
        if tensor_parallel_size * more.get("pipeline_parallel_size", 1) != int(os.environ.get("FAKE_CARDS", "1")):
            raise ValueError("World size is larger than the number of available GPUs")
        if more.get("distributed_executor_backend") not in (None, "mp", "ray"):
            raise ValueError("no such executor")
        self.every = more.get("max_logprobs") == -1 and more.get("logprobs_mode") == "raw_logits"
        np.seterr(all="ignore")
        self.model = numpy_target.Model(model)
        self.model.tap = []
        self.before, self.text = [], 0
        self.model_config = ModelConfig(self.model, more.get("max_model_len"))

    def generate(self, prompts, sampling_params=None, *, use_tqdm=True):
        s = sampling_params
        if not (self.every and s.logprobs == -1 and s.max_tokens == 1 and s.flat_logprobs):
            raise ValueError("Requested sample logprobs of all tokens, which is greater than max allowed: 20")
        return [RequestOutput(p["prompt_token_ids"], [self.answer(p["prompt_token_ids"])]) for p in prompts]

    def answer(self, prompt):
        """The prefix cache is that of the prompt before: `kept` tokens as text, the rest of it as rows of one request."""
        n, kept = len(prompt), min(len(prompt), len(self.before)) - 1
        while kept > 0 and prompt[:kept] != self.before[:kept]:
            kept -= 1
        kept = max(kept, 0)
        path = np.arange(max(kept - self.text, 0), dtype=np.int32)
        rows = np.array([[prompt[i], i - kept - 1, i, 0 if i == n - 1 else -1] for i in range(kept, n)], np.int32)
        logits = np.zeros((1, self.model.vocab), np.float32)
        self.model.ask([row_peer.Part(0, min(kept, self.text), path, rows)], logits, None)
        self.before, self.text = prompt, kept
        best = np.argsort(-logits[0], kind="stable")
        token = [int(best[0]), *best.tolist()]  # the sampled token comes first, and once more in its place
        flat = FlatLogprobs([0], [len(token)], token, logits[0][token].tolist())
        return CompletionOutput([int(best[0])], flat)
