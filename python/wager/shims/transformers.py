# SPDX-License-Identifier: MIT
"""Hugging Face transformers: any decoder model as the target of wager's drafters and rules, with exact traces.

    speculation = Speculation("suffix", rule="rejection", trace="trace.wgt")
    model.generate(**inputs, max_new_tokens=64, custom_generate=speculation)

`generate` prepares its arguments as usual and calls `Speculation` in the place of its own loop (`custom_generate`, transformers
4.56 and newer). p is what the model would have sampled from: its logits behind the call's logits processors.

Limits: one sequence a call, without left padding; chains, not trees; decoder-only models whose cache can be cropped (no state
space models); `stopping_criteria` are asked after each round, so a stop string may leave tokens of that round behind it;
`return_dict_in_generate` and `synced_gpus` are refused. The bits are the model's own: batches of rows and single rows may
differ in the last ones, as they do without speculation, so equal texts are the rule and not a promise.

`Candidates` puts a drafter into transformers' own assisted generation instead, with its verification."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache
from transformers.generation import CandidateGenerator

from ..drafter import Draft, Drafter
from ..errors import ArgumentError
from ..spec import rule_section
from ..trace import RequestWriter, Writer
from ..tree import Tree
from ..verification import Outcome, verify
from .history import Histories, chain_of, drafter_of


class Speculation:
    """A `custom_generate` callable: wager's loop around a transformers model.

    drafter: a kind with its options (`wager list drafters`), or a `wager.Drafter` that lives on across calls. rule: as in
    `wager.verify`. seed: of all random decisions; each call is a request of its own, numbered from 0. sampling: of drafters
    that draw; default: temperature, top_k, top_p and min_p of the call's generation config. trace: a file that gets all
    rounds, written until `close`. vocab: of the drafter, default the model's.

    rounds, drafted, accepted, emitted: counts over all calls; emitted / rounds is tau."""

    def __init__(
        self,
        drafter: str | Drafter = "suffix",
        *,
        rule: str = "rejection",
        seed: int = 0,
        sampling: dict[str, Any] | None = None,
        trace: str | os.PathLike[str] | None = None,
        trace_rows: str = "exact",
        vocab: int | None = None,
        context: int = 8192,
        **options: Any,
    ) -> None:
        self.rule, self.seed, self.sampling = rule, seed, sampling
        self._drafter, self._vocab, self._context, self._options = drafter, vocab, context, options
        self._trace, self._trace_rows, self._writer = trace, trace_rows, None
        self._opened: tuple[dict[str, Any], Drafter] | None = None
        self.requests = self.rounds = self.drafted = self.accepted = self.emitted = 0

    # The parameters are those that `generate` calls with.
    @torch.no_grad()
    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        synced_gpus: bool = False,
        streamer: Any = None,
        **model_kwargs: Any,
    ) -> torch.Tensor:
        _check_call(model, input_ids, generation_config, synced_gpus, model_kwargs)
        sampling = _sampling_of(generation_config)
        cache = model_kwargs.get("cache", model_kwargs.get("past_key_values"))
        target = _Target(model, logits_processor, sampling["temperature"] > 0, cache)
        ends = _ends_of(generation_config)
        drafter = self._open_drafter(target.vocab, sampling)
        tokens = input_ids[0].tolist()
        limit = int(generation_config.max_length)
        text, request = drafter.sequence(tokens, self.requests), self._open_request(target.vocab, ends, sampling, tokens, limit)
        number, self.requests = self.requests, self.requests + 1
        try:
            draft, done = text.propose(), False
            while not done:
                outcome = self._round(target, tokens, draft, (number, limit - len(tokens), ends), request)
                tokens += outcome.tokens
                ids = torch.tensor([tokens], device=input_ids.device)
                if streamer is not None:
                    streamer.put(ids[:, -len(outcome.tokens) :].cpu())
                done = tokens[-1] in ends or len(tokens) >= limit or bool(stopping_criteria(ids, None).all())
                draft = text.advance(outcome.tokens) if not done else text.observe(outcome.tokens)
            text.finish()
        finally:
            text.forget()  # what was raised has aborted it
        if request is not None:
            request.finish()
        if streamer is not None:
            streamer.end()
        return ids

    def _round(self, target: _Target, tokens: list[int], draft: Draft, at: tuple, request: RequestWriter | None) -> Outcome:
        number, room, ends = at
        start = time.perf_counter()
        chain = chain_of(draft, room - 1)
        tree, q = _cut(draft, len(chain), target.vocab)
        p = target.rows(tokens, chain)
        scored = time.perf_counter()
        outcome = verify(tree, p, q, self.rule, seed=self.seed, request=number, position=len(tokens))
        kept = _end(outcome, ends, room)
        target.keep(len(tokens) + len(kept.tokens) - 1)
        if request is not None:
            seconds = time.perf_counter() - start
            request.round(tree, outcome.nodes, outcome.next, p, q, seconds=seconds, verify=scored - start)
        self.rounds += 1
        self.drafted += len(chain)
        self.accepted += kept.accepted
        self.emitted += len(kept.tokens)
        return kept

    def _open_drafter(self, vocab: int, sampling: dict[str, Any]) -> Drafter:
        """One drafter for all calls with the same sampling, so that it learns across them."""
        if isinstance(self._drafter, Drafter):
            return self._drafter
        chosen = self.sampling if self.sampling is not None else sampling
        if self._opened is None or self._opened[0] != chosen:
            if self._opened is not None:
                self._opened[1].close()
            size = dict(vocab=self._vocab or vocab, context=self._context, sequences=1)
            made = drafter_of(self._drafter, **size, rule=self.rule, sampling=chosen, seed=self.seed, **self._options)
            self._opened = (chosen, made)
        return self._opened[1]

    def _open_request(self, vocab: int, ends: set[int], sampling: dict, tokens: list[int], limit: int) -> RequestWriter | None:
        if self._trace is None:
            return None
        if self._writer is None:
            kind = self._drafter if isinstance(self._drafter, str) else self._drafter.config["draft"]["kind"]
            config = {
                "seed": self.seed,
                "verify": rule_section(self.rule),
                "sampling": sampling,
                "draft": {"kind": kind, **self._options},
            }
            self._writer = Writer(
                self._trace, vocab, sorted(ends), config, engine=f"transformers, {torch.__version__}", rows=self._trace_rows
            )
        return self._writer.request(tokens, limit=limit, address=self.requests, prompt=self.requests)

    @property
    def tau(self) -> float:
        """Tokens per pass of the target, over all calls."""
        return self.emitted / self.rounds if self.rounds else float("nan")

    def close(self) -> None:
        """Closes the trace, and the drafter unless it was given."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def __enter__(self) -> Speculation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Target:
    """A model and its cache: rows of p after a text and a chain."""

    def __init__(self, model: Any, processors: Any, sampled: bool, cache: Any) -> None:
        self._model, self._processors, self._sampled = model, processors, sampled
        self._cache = cache if cache is not None else DynamicCache(config=model.config)
        if hasattr(self._cache, "activate_past_recording"):  # layers with windows keep what `keep` may need
            self._cache.activate_past_recording()
        self._cached = int(self._cache.get_seq_length())
        new = "cache" in signature(model.forward).parameters  # transformers 5.24 and newer
        self._cache_argument = "cache" if new else "past_key_values"
        self.vocab = int(model.get_output_embeddings().weight.shape[0])

    def rows(self, tokens: list[int], chain: list[int]) -> np.ndarray:
        """(len(chain) + 1, vocab): after the text, and after each token of the chain. The cache then holds all of them."""
        whole = torch.tensor([tokens + chain], device=self._model.device)
        n, k = whole.shape[1], len(chain) + 1
        out = self._model(
            input_ids=whole[:, self._cached :],
            attention_mask=torch.ones_like(whole),
            use_cache=True,
            logits_to_keep=k,
            **{self._cache_argument: self._cache},
        )
        self._cached = n
        logits = out.logits[0, -k:].float()
        if len(self._processors):
            after = range(n - k + 1, n + 1)
            logits = torch.cat([self._processors(whole[:, :m], logits[i : i + 1]) for i, m in enumerate(after)])
        if not self._sampled:
            return _one_hot(logits.argmax(dim=-1).cpu().numpy(), self.vocab)
        return torch.softmax(logits.double(), dim=-1).cpu().numpy()

    def keep(self, n: int) -> None:
        """Drops the cache behind n tokens."""
        drop = self._cached - n
        if drop or hasattr(self._cache, "activate_past_recording"):
            self._cache.crop(-drop)
        self._cached = n


def _one_hot(tokens: np.ndarray, vocab: int) -> np.ndarray:
    rows = np.zeros((len(tokens), vocab))
    rows[np.arange(len(tokens)), tokens] = 1
    return rows


def _cut(draft: Draft, k: int, vocab: int) -> tuple[Tree, np.ndarray | None]:
    """The first k tokens of a chain, and their rows of q, as wide as those of p."""
    q_rows = list(draft.q_rows or [])[: k + 1]
    tree = Tree(draft.tokens[: k + 1], draft.parents[: k + 1], q_rows, draft.law)
    rows = max(q_rows, default=-1) + 1
    if rows == 0:
        return tree, None
    q = draft.q()[:rows]
    if q.shape[1] > vocab and q[:, vocab:].any():
        raise ArgumentError(f"the drafter has {q.shape[1]} tokens, the model {vocab}", "EVOCAB")
    return tree, np.pad(q, ((0, 0), (0, max(vocab - q.shape[1], 0))))[:, :vocab]


def _end(outcome: Outcome, ends: set[int], room: int) -> Outcome:
    """What is left of a round behind the end of the text."""
    for i, token in enumerate(outcome.tokens, 1):
        if token in ends or i == room:
            return Outcome(outcome.nodes[:i], token, outcome.tokens[:i], outcome.used)
    return outcome


def _check_call(model: Any, input_ids: torch.Tensor, config: Any, synced_gpus: bool, kwargs: dict[str, Any]) -> None:
    mask = kwargs.get("attention_mask")
    problem = (
        "an encoder-decoder model; this loop is for decoder-only models"
        if model.config.is_encoder_decoder
        else f"{input_ids.shape[0]} sequences; this loop takes one a call"
        if input_ids.shape[0] != 1
        else "padding before the prompt; leave it out"
        if mask is not None and not bool(mask.bool().all())
        else "synced_gpus"
        if synced_gpus
        else "return_dict_in_generate"
        if getattr(config, "return_dict_in_generate", False)
        else "more than one beam or sequence"
        if (config.num_beams or 1) > 1 or (config.num_return_sequences or 1) > 1
        else None
    )
    if problem:
        raise ArgumentError(f"wager.shims.transformers: {problem} is not supported", "EUNSUPPORTED")


def _sampling_of(config: Any) -> dict[str, Any]:
    """The sampler chain of a generation config, as an experiment's section. Temperature 0: greedy."""
    if not config.do_sample:
        return {"temperature": 0.0}
    found = {"temperature": float(config.temperature if config.temperature is not None else 1.0)}
    for key in ("top_k", "top_p", "min_p"):
        value = getattr(config, key, None)
        if value and not (key == "top_p" and value >= 1):
            found[key] = value
    return found


def _ends_of(config: Any) -> set[int]:
    ends = config.eos_token_id
    return set() if ends is None else {int(e) for e in (ends if isinstance(ends, (list, tuple)) else [ends])}


class Candidates(CandidateGenerator):
    """A drafter as a candidate generator of transformers' assisted generation, which verifies: chains only. See `assisted`.

    Drafts that are drawn come with the logarithms of q, so transformers' speculative sampling weighs them; drafts of lookups
    come without, and are compared with the model's own choices."""

    def __init__(self, drafter: str | Drafter = "suffix", *, vocab: int, context: int = 8192, **options: Any) -> None:
        self._texts = Histories(drafter_of(drafter, vocab=vocab, context=context, sequences=1, **options))

    def get_candidates(self, input_ids: torch.Tensor, **_: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        draft = self._texts.follow(0, input_ids[0].tolist())
        chain = chain_of(draft)
        if not chain:
            return input_ids, None
        ids = torch.cat([input_ids, torch.tensor([chain], device=input_ids.device)], dim=1)
        q = draft.q()
        return ids, None if q is None else torch.log(torch.from_numpy(q)).float()[None].to(input_ids.device)

    def update_candidate_strategy(self, input_ids: torch.Tensor, scores: torch.Tensor, num_matches: int) -> None:
        """Nothing: what was kept is seen at the next call."""


@contextmanager
def assisted(model: Any, candidates: Candidates) -> Iterator[Callable[..., Any]]:
    """with assisted(model, Candidates("suffix", vocab=32000)) as generate: generate(**inputs): transformers' assisted
    generation with these candidates. `generate` has no argument for a generator, so for the time of the block the model's
    method that chooses one is replaced."""
    name = "_get_candidate_generator"
    if not hasattr(model, name):
        raise ArgumentError(f"wager.shims.transformers: this transformers has no {name}; use Speculation", "EUNSUPPORTED")
    setattr(model, name, lambda *_, **__: candidates)
    try:
        yield lambda *args, **kwargs: model.generate(*args, prompt_lookup_num_tokens=1, **kwargs)
    finally:
        delattr(model, name)
