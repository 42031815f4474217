#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The server as clients meet it: endpoints, answers, streams, stop strings, errors, limits, load (its start and end: life.py; bad
clients: hostile.py).

usage: tests/serve/serve.py WAGER WAGER_SERVE [TEST...]      the tests are the functions test_*; standard library only"""
import concurrent.futures
import ctypes
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from cases import SERVE, STORY, THIN, WAGER, Skipped, error_of, joined, pair, run, text_of
from server import DRAFT, ENDLESS, JSON, TARGET, Server, parse_events


# ---- endpoints --------------------------------------------------------------------------------------------------------


def test_endpoints():
    with pair("--name", "story") as s:
        assert s.get("/health") == {"status": "ok"} and s.get("/v1/health") == {"status": "ok"}
        assert s.get("/live") == {"status": "alive"}
        assert s.get("/version")["version"]
        model = s.get("/v1/models")["data"][0]
        assert model["id"] == "story" and model["object"] == "model" and model["max_model_len"] == 512
        props = s.get("/props")
        assert props["model_alias"] == "story" and props["model_path"] == TARGET and props["speculation"]["lossless"] is True
        assert props["speculation"]["drafted"] == 0
        code, headers, body = s.call("GET", "/")
        assert code == 200 and headers["Content-Type"] == "text/html; charset=utf-8" and body.startswith(b"<!doctype html>")
        assert s.call("HEAD", "/health")[0] == 200
        assert error_of(s.get("/nothing", 404))["type"] == "invalid_request_error"
        code, headers, body = s.call("GET", "/v1/completions")
        assert code == 405 and headers["Allow"] == "POST" and error_of(json.loads(body))
        assert s.call("GET", "/health", headers={"X-Request-Id": "mine"})[1]["X-Request-Id"] == "mine"
        assert s.call("GET", "/health", headers={"X-Request-Id": "a b"})[1]["X-Request-Id"].startswith("req-")
        m = s.metrics()
        assert m["spec_decode_num_drafts_total"] == 0 and m['spec_decode_num_accepted_tokens_per_pos_total{position="0"}'] == 0
        # What the introspection says is what the engine does. With a seed: of all texts, a few accept no draft.
        a = s.complete(STORY, max_tokens=40, seed=1, ignore_eos=True)
        m = s.wait_idle()
        assert m["spec_decode_num_draft_tokens_total"] == a["timings"]["draft_n"] == s.get("/props")["speculation"]["drafted"] > 0
        assert m["spec_decode_num_accepted_tokens_total"] == a["timings"]["draft_n_accepted"] > 0
        assert m["generation_tokens_total"] == 40 == a["timings"]["draft_n_accepted"] + a["timings"]["draft_n_verif_steps"]
        assert m['request_success_total{finished_reason="length"}'] == 1


def test_tokens():
    with Server(SERVE, model=DRAFT) as s:
        t = s.post("/tokenize", {"prompt": STORY, "return_token_strs": True})
        assert t["count"] == len(t["tokens"]) == len(t["token_strs"]) and t["max_model_len"] == 512
        bare = s.post("/tokenize", {"content": STORY})["tokens"]  # llama.cpp's name, and its default: nothing before the text
        assert t["tokens"][1:] == bare
        assert s.post("/tokenize", {"content": STORY, "add_special": True})["tokens"] == t["tokens"]
        pieces = s.post("/tokenize", {"content": STORY, "with_pieces": True})["tokens"]
        assert "".join(p["piece"] for p in pieces) == STORY and [p["id"] for p in pieces] == bare
        assert s.post("/detokenize", {"tokens": bare}) == {"content": STORY, "prompt": STORY}
        text = "naïve \u20ac \U0001f600 \x00 end"
        ids = s.post("/tokenize", {"content": text})["tokens"]
        assert s.post("/detokenize", {"tokens": ids})["content"] == text
        assert error_of(s.post("/detokenize", {"tokens": [99999999]}, 400))
        assert error_of(s.post("/detokenize", {"tokens": [-1]}, 400))["param"] == "tokens"
        assert error_of(s.post("/detokenize", {}, 400))["param"] == "tokens"
        assert error_of(s.post("/tokenize", {"prompt": 5}, 400))["param"] == "prompt"
        talk = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, {"role": "assistant", "content": "c"}]
        assert s.post("/apply-template", {"messages": talk}) == {"prompt": "ab\nc"}
        assert error_of(s.post("/apply-template", {"messages": []}, 400))["param"] == "messages"
        assert s.post("/tokenize", {"messages": talk})["tokens"] == s.post("/tokenize", {"prompt": "ab\nc"})["tokens"]
        assert s.post("/tokenize", {"content": "</s>"})["count"] == 1 < s.post("/tokenize", {"content": "</s>", "parse_special": False})["count"]
        for path, body in (("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [5]}), ("/apply-template", {"messages": talk})):  # what is not known is refused
            assert error_of(s.post(path, dict(body, foo=1), 400))["param"] == "foo" and error_of(s.post(path, dict(body, model="x"), 404))["code"] == "model_not_found"
        for member in ({"name": "Ann"}, {"reasoning_content": "why"}, {"tool_calls": [{"function": {"name": "f"}}]}, {"foo": 1}):  # this model has no template that could read it
            for path in ("/apply-template", "/v1/chat/completions", "/tokenize"):
                e = error_of(s.post(path, {"messages": [dict(talk[1], **member)]}, 400))
                assert e["param"] == "messages" and "messages[0]" in e["message"] and list(member)[0] in e["message"], e
        for fields in ({"chat_template_kwargs": 5}, {"add_generation_prompt": False}):  # this model has no template that could read them
            assert error_of(s.post("/apply-template", dict(fields, messages=talk), 400))["param"] == "chat_template_kwargs"


# ---- answers ----------------------------------------------------------------------------------------------------------


def test_completion_is_that_of_the_program():
    with pair("--temp", "0") as s:
        said = json.loads(subprocess.run([WAGER, "generate", "-m", TARGET, "-p", STORY, "-n", "60", "--json", "--threads", "1"],
                                         check=True, capture_output=True).stdout)
        a = s.complete(STORY, max_tokens=60, return_token_ids=True)
        assert text_of(a) == said["text"] and a["choices"][0]["token_ids"] == said["ids"]
        assert a["object"] == "text_completion" and a["choices"][0]["finish_reason"] == "length"
        assert a["usage"]["completion_tokens"] == 60 and a["usage"]["prompt_tokens"] == said["prompt_tokens"]
        assert "".join(a["choices"][0]["pieces"]) == text_of(a) and sum(a["choices"][0]["drafted"]) == a["timings"]["draft_n_accepted"]
        # Speculation by request: none, short, and the server's; the text is the same.
        plain = s.complete(STORY, max_tokens=60, speculative={"enabled": False})
        short = s.complete(STORY, max_tokens=60, **{"speculative.n_max": 1}, speculative={"details": "detailed"})
        assert text_of(plain) == text_of(short) == text_of(a)
        assert plain["timings"]["draft_n"] == 0 and plain["timings"]["draft_n_verif_steps"] == 60
        steps = short["metrics"]["speculative_decoding"]
        assert max(steps["per_step_drafted"]) == 1 and sum(steps["per_step_accepted"]) == short["timings"]["draft_n_accepted"] > 0
        assert len(steps["per_step_drafted"]) == steps["num_spec_steps"] <= short["timings"]["draft_n_verif_steps"] < 60


def test_prompts_choices_and_seeds():
    with pair() as s:
        ids = s.post("/tokenize", {"prompt": STORY})["tokens"]
        one = text_of(s.complete(STORY, seed=5, max_tokens=20))
        assert text_of(s.complete(ids, seed=5, max_tokens=20)) == one
        several = s.complete([STORY, "The dog"], seed=5, max_tokens=20, n=2)
        assert [c["index"] for c in several["choices"]] == [0, 1, 2, 3]
        assert text_of(several, 0) == one != text_of(several, 1)
        assert text_of(several, 2) == text_of(s.complete("The dog", seed=5, max_tokens=20))
        assert several["usage"]["prompt_tokens"] == len(ids) + len(s.post("/tokenize", {"prompt": "The dog"})["tokens"])
        assert several["metrics"] is None
        a, b = s.complete(STORY, max_tokens=20), s.complete(STORY, max_tokens=20)
        assert a["spec"]["seed"] != b["spec"]["seed"] and text_of(a) != text_of(b)
        assert text_of(s.complete(STORY, max_tokens=20, seed=a["spec"]["seed"])) == text_of(a)
        both = s.stream("/v1/completions", {"prompt": [STORY, "The dog"], "seed": 5, "max_tokens": 20, "n": 2})
        assert [joined(both, i) for i in range(4)] == [text_of(several, i) for i in range(4)]
        assert s.complete(STORY, max_tokens=0)["choices"][0] == {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}


def test_stream():
    with pair() as s:
        whole = s.complete(STORY, max_tokens=50, seed=3)
        events = s.stream("/v1/completions", {"prompt": STORY, "max_tokens": 50, "seed": 3, "stream_options": {"include_usage": True}})
        assert joined(events) == text_of(whole)
        assert len({(e["id"], e["created"], e["model"]) for e in events}) == 1
        used = events[-1]["usage"]
        del used["prompt_tokens_details"], whole["usage"]["prompt_tokens_details"]  # the second may find the prompt cached
        assert events[-1]["choices"] == [] and used == whole["usage"] and all(e["usage"] is None for e in events[:-1])
        # One event a round, of which the last one says why it ended.
        rounds = whole["timings"]["draft_n_verif_steps"]
        assert len(events) == rounds + 1 and sum(e["spec"]["tokens"] for e in events[:-1]) == 50
        assert [e["choices"][0]["finish_reason"] for e in events[:-1]] == [None] * (rounds - 1) + ["length"]
        assert sum(e["spec"]["accepted"] for e in events[:-1]) == whole["timings"]["draft_n_accepted"]
        chat = s.chat("The cat", max_tokens=50, seed=3)
        events = s.stream("/v1/chat/completions", {"messages": [{"role": "user", "content": "The cat"}], "max_tokens": 50, "seed": 3})
        assert joined(events) == text_of(chat) and all("usage" not in e for e in events)
        assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert events[-1]["choices"][0]["delta"] == {} and events[-1]["choices"][0]["finish_reason"] == "length"
        assert {e["object"] for e in events} == {"chat.completion.chunk"} and chat["object"] == "chat.completion"


def test_text_ends_with_the_model():
    with Server(SERVE, model=DRAFT) as s:
        for seed in range(40):
            a = s.complete("The end. He was happy. They lived happily ever after", max_tokens=400, seed=seed, return_token_ids=True)
            if a["choices"][0]["finish_reason"] == "stop":
                break
        else:
            raise AssertionError("no text has ended")
        ids = a["choices"][0]["token_ids"]
        b = s.complete("The end. He was happy. They lived happily ever after", max_tokens=len(ids) + 5, seed=seed, ignore_eos=True, return_token_ids=True)
        assert b["choices"][0]["token_ids"][:len(ids)] == ids and len(b["choices"][0]["token_ids"]) == len(ids) + 5
        stop = ids[3]
        c = s.complete("The end. He was happy. They lived happily ever after", max_tokens=400, seed=seed, stop_token_ids=[stop], return_token_ids=True)
        assert c["choices"][0]["finish_reason"] == "stop" and c["choices"][0]["token_ids"] == ids[:ids.index(stop) + 1]


def test_stop_strings():
    with pair() as s:
        whole = text_of(s.complete(STORY, max_tokens=60, seed=8))
        pick = random.Random(1)
        for _ in range(4 if THIN else 25):
            at, n = pick.randrange(len(whole) - 20), pick.randrange(1, 16)
            stop = whole[at:at + n]
            until = whole[:whole.index(stop)]
            body = {"prompt": STORY, "max_tokens": 60, "seed": 8, "stop": ["never in a story", stop], "return_token_ids": True}
            a = s.complete(**body)
            assert text_of(a) == until and a["choices"][0]["finish_reason"] == "stop", (stop, text_of(a))
            assert a["usage"]["completion_tokens"] == len(a["choices"][0]["token_ids"]) and "".join(a["choices"][0]["pieces"]) == until
            events = s.stream("/v1/completions", body)
            assert joined(events) == until, (stop, joined(events))
            assert text_of(s.complete(**body, include_stop_str_in_output=True)) == until + stop
            assert text_of(s.complete(**body, speculative={"enabled": False})) == until
        s.wait_idle()
        drafted = [s.get("/props")["speculation"]["drafted"]]
        for prompts in (["The dog"], ["The dog", STORY]):
            a = s.complete(prompts, max_tokens=300, seed=8, stop=whole[:12], ignore_eos=True)
            assert [c["finish_reason"] for c in a["choices"]] == ["length", "stop"][:len(prompts)]
            s.wait_idle()
            drafted.append(s.get("/props")["speculation"]["drafted"])
        assert drafted[2] - drafted[1] < drafted[1] - drafted[0] + 60, "an answer goes on behind its stop string beside one that runs"
        assert text_of(s.complete(STORY, max_tokens=60, seed=8, stop="a stop that is not there")) == whole
        echoed = s.complete(STORY, max_tokens=60, seed=8, stop="upon", echo=True)
        assert text_of(echoed).startswith(STORY + whole[:10]), "a stop string in the prompt does not stop the answer"


def test_counters_agree():
    """The answers' own numbers, their tokens and /metrics are the same numbers, whatever ends the texts."""
    names = {"num_spec_steps": "spec_decode_num_drafts_total", "num_draft_tokens": "spec_decode_num_draft_tokens_total",
             "num_accepted_draft_tokens": "spec_decode_num_accepted_tokens_total"}
    with pair() as s:
        whole = s.complete(STORY, max_tokens=60, seed=8, return_token_ids=True, speculative={"details": "detailed"}, ignore_eos=True)
        ids, text = whole["choices"][0]["token_ids"], text_of(whole)
        drafted = whole["choices"][0]["drafted"]
        first = next(i for i in range(1, 60) if drafted[i] and not drafted[i - 1] and ids[i] not in ids[:i])  # the first token of a draft that was accepted
        answers = [whole]
        # Stop strings that begin at a token behind an accepted one of its round, and end in a later round: the first event holds them back.
        late = ["".join(whole["choices"][0]["pieces"][i:drafted.index(0, i) + 3]) for i in range(1, 50) if drafted[i - 1] and drafted[i]]
        assert late, drafted
        for fields in [{"stop_token_ids": [ids[first]]}, {"stop": text[40:46]}, {"stop": text[20:29]}, {"stop": text[:3]}, {"speculative": {"enabled": False}},
                       {"max_tokens": 7}, {"stop": text[70:71], "include_stop_str_in_output": True}] + [{"stop": x} for x in late[:6]]:
            body = dict({"prompt": STORY, "max_tokens": 60, "seed": 8, "return_token_ids": True, "ignore_eos": True}, **fields)
            *events, last = s.stream("/v1/completions", dict(body, stream_options={"include_usage": True}))
            answers += [s.complete(**body), dict(last, choices=[{k: [x for e in events for x in e["choices"][0][k]] for k in ("token_ids", "drafted")}])]
            assert answers[-1]["choices"][0]["token_ids"] == answers[-2]["choices"][0]["token_ids"]
            assert all(e["spec"]["accepted"] == sum(e["choices"][0]["drafted"]) <= e["spec"]["tokens"] == len(e["choices"][0]["token_ids"]) for e in events), events
            assert [sum(e["spec"][k] for e in events) for k in ("drafted", "accepted")] == [last["timings"][k] for k in ("draft_n", "draft_n_accepted")], (fields, events)
        m, sums, tokens = s.wait_idle(), dict.fromkeys(names, 0), 0
        for a in answers:
            spec, times, n = a["metrics"]["speculative_decoding"], a["timings"], a["usage"]["completion_tokens"]
            for name in names:
                sums[name] += spec[name]
            tokens += n
            assert times["draft_n"] == spec["num_draft_tokens"] and times["draft_n_accepted"] == spec["num_accepted_draft_tokens"]
            assert n == times["draft_n_accepted"] + times["draft_n_verif_steps"] == len(a["choices"][0]["token_ids"]), a
            assert sum(spec["acceptance_histogram"]) == spec["num_spec_steps"] and sum(a["choices"][0]["drafted"]) == times["draft_n_accepted"], a
            assert not spec["num_spec_steps"] or abs(spec["mean_acceptance_length"] - 1 - spec["num_accepted_draft_tokens"] / spec["num_spec_steps"]) < 1e-9
        assert {names[k]: v for k, v in sums.items()} == {k: m[k] for k in names.values()} and m["generation_tokens_total"] == tokens, (sums, tokens, m)
        stopped, before = answers[1]["metrics"]["speculative_decoding"], whole["metrics"]["speculative_decoding"]
        assert answers[1]["choices"][0]["token_ids"] == ids[:first + 1] and answers[1]["choices"][0]["drafted"][first] == 0
        assert stopped["num_accepted_draft_tokens"] == sum(drafted[:first]), "the stop token is the round's own token"
        assert before["num_accepted_draft_tokens"] == sum(drafted)


def test_logprobs():
    with pair() as s:
        for seed in range(40):
            body = {"prompt": STORY, "max_tokens": 30, "seed": seed, "logprobs": 3, "echo": True, "ignore_eos": True}
            a = s.complete(**body)
            if a["timings"]["draft_n_accepted"] > 0:
                break
        else:
            raise AssertionError("no draft was accepted")
        assert a["choices"] == s.complete(**body, speculative={"enabled": False})["choices"], "logprobs differ under speculation"
        l = a["choices"][0]["logprobs"]
        prompt = a["usage"]["prompt_tokens"]
        assert len(l["tokens"]) == len(l["token_logprobs"]) == len(l["top_logprobs"]) == len(l["text_offset"]) == prompt + 30
        assert l["token_logprobs"][0] is None and l["top_logprobs"][0] is None and all(x <= 0 for x in l["token_logprobs"][1:])
        for token, own, top in list(zip(l["tokens"], l["token_logprobs"], l["top_logprobs"]))[1:]:
            assert top[token] == own and 3 <= len(top) <= 4 and max(top.values()) >= own
        text = text_of(a)
        assert text.startswith(STORY) and l["text_offset"][-1] + len(l["tokens"][-1]) == len(text)
        # The same tokens as a prompt: the rows of a prompt are those of decoding.
        ids = s.complete(**dict(body, return_token_ids=True))["choices"][0]["token_ids"]
        again = s.complete(ids, max_tokens=0, logprobs=3, echo=True)["choices"][0]["logprobs"]
        assert again["token_logprobs"] == l["token_logprobs"] and again["top_logprobs"] == l["top_logprobs"]
        events = s.stream("/v1/completions", body)
        parts = [e["choices"][0]["logprobs"] for e in events if e["choices"][0]["logprobs"]]
        assert sum((p["token_logprobs"] for p in parts), []) == l["token_logprobs"] and sum((p["text_offset"] for p in parts), []) == l["text_offset"]
        chat = s.chat("The cat", max_tokens=5, seed=4, logprobs=True, top_logprobs=2)["choices"][0]["logprobs"]["content"]
        assert len(chat) == 5 and all(len(t["top_logprobs"]) == 2 and bytes(t["bytes"]).decode() == t["token"] for t in chat)


def test_sampling_by_request():
    """A request is answered as it asks, or is told what is not possible; never by other sampling."""
    with pair() as s:
        code, _, body = s.call("POST", "/v1/completions", {"prompt": STORY, "temperature": 0})
        if code == 400:  # what the engine cannot do is refused, never done by another sampling
            assert "sampling" in error_of(json.loads(body))["message"]
            raise Skipped("the engine has one sampling for all requests")
        greedy = text_of(s.complete(STORY, max_tokens=30, temperature=0))
        for fields in ({"top_k": 1}, {"top_p": 0.0001}, {"temperature": 0, "seed": 9}, {"min_p": 1}):
            assert text_of(s.complete(STORY, max_tokens=30, **fields)) == greedy, fields
        first = s.complete(STORY, max_tokens=1, temperature=0, return_token_ids=True)["choices"][0]["token_ids"][0]
        banned = s.complete(STORY, max_tokens=20, temperature=0, logit_bias={str(first): -100}, return_token_ids=True)["choices"][0]["token_ids"]
        assert first not in banned
        assert text_of(s.complete(STORY, max_tokens=60, temperature=0, frequency_penalty=2)) != text_of(s.complete(STORY, max_tokens=60, temperature=0))
        # OpenAI's penalties look at the answer alone, so its first token does not depend on them; the repetition penalty reads the prompt.
        for fields, same in (({}, True), ({"frequency_penalty": 2}, True), ({"presence_penalty": 2}, True), ({"repetition_penalty": 100}, False)):
            a = s.complete([first] * 40, max_tokens=2, temperature=0, logit_bias={str(first): 40}, return_token_ids=True, **fields)
            assert (a["choices"][0]["token_ids"][0] == first) == same, fields
        e = error_of(s.complete(STORY, 400, logit_bias={"99999": 1}))
        assert e["param"] == "logit_bias"


def test_response_formats():
    schema = {
        "type": "object",
        "properties": {"name": {"enum": ["Lily", "Tom"]}, "age": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    with pair() as s:
        wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}
        for seed in range(4):
            body = {"prompt": STORY, "max_tokens": 80, "seed": seed, "response_format": wanted}
            a, b = s.complete(**body), s.complete(**body, speculative={"enabled": False})
            person = json.loads(text_of(a))
            assert text_of(a) == text_of(b) and a["choices"][0]["finish_reason"] == "stop", (a, b)
            assert list(person) == ["name", "age"] and person["name"] in ("Lily", "Tom") and 1 <= person["age"] <= 9, person
        colours = text_of(s.chat("Three colours", max_tokens=60, grammar='root ::= c ("," c){2}\nc ::= "red" | "green"'))
        assert len(colours.split(",")) == 3 and set(colours.split(",")) <= {"red", "green"}, colours
        events = s.stream("/v1/completions", {"prompt": STORY, "max_tokens": 80, "seed": 5, "response_format": wanted})
        assert json.loads(joined(events))["name"]
        e = error_of(s.complete(STORY, 400, response_format={"type": "json_schema", "json_schema": {"schema": {"not": {}}}}))
        assert e["param"] == "response_format" and e["message"] == "schema#: the keyword not is not supported", e
        e = error_of(s.complete(STORY, 400, grammar="root ::= x"))
        assert "grammar:1:10" in e["message"], e


def test_fails_closed():
    """Constraints in the words of other servers are obeyed, or refused by name; nothing is passed over."""
    with pair() as s:
        for fields, texts in (({"guided_choice": ["red", "a \"b\" \\n\nc"]}, ("red", "a \"b\" \\n\nc")), ({"structured_outputs": {"choice": ["x", "y"]}}, "xy"),
                              ({"ebnf": 'root ::= "p" | "q"'}, "pq"), ({"guided_json": {"enum": [1, 2]}}, "12"), ({"json_schema": '{"const": 7}'}, "7")):
            for seed in range(2):
                text = text_of(s.complete(STORY, max_tokens=30, seed=seed, **fields))
                assert text.strip() in texts, (fields, text)
        for tokens in (3, 8):  # behind an ignored end token only end tokens may follow
            ends = {"max_tokens": tokens, "seed": 1, "guided_choice": ["a"], "ignore_eos": True}
            alone = s.complete("Once", speculative={"enabled": False}, **ends)
            assert text_of(s.complete("Once", **ends)) == text_of(alone) == "a", text_of(alone)
        json.loads(text_of(s.complete(STORY, max_tokens=200, seed=1, response_format={"type": "json_object", "schema": {"type": "null", "x-note": 1}})))
        anything = {"type": "json_schema", "json_schema": {"name": "any", "schema": True}}
        assert text_of(s.complete(STORY, max_tokens=4, seed=1, response_format=anything)).lstrip()[:1] in tuple('{["tfn-0123456789')
        for fields in ({"guided_regex": "a"}, {"allowed_token_ids": [5]}, {"stop_regex": "a"}, {"min_new_tokens": 4}, {"truncate_prompt_tokens": 4}, {"nobody_knows": 1}):
            assert error_of(s.complete(STORY, 400, **fields))["param"] == list(fields)[0], fields
        for fields in ({"chat_template": "x"}, {"chat_template_kwargs": {"a": 1}}, {"add_generation_prompt": False}):
            assert error_of(s.chat("Hi", 400, **fields))["param"] in ("chat_template", "chat_template_kwargs"), fields
        # Ids of the vocabulary, seeds of 64 bits, and as many tokens as the context holds.
        size = s.get("/v1/models")["data"][0]["meta"]["n_vocab"]
        assert error_of(s.complete(STORY, 400, stop_token_ids=[size]))["param"] == "stop_token_ids"
        assert error_of(s.complete(STORY, 400, logit_bias={str(size): 1}))["param"] == "logit_bias"
        assert s.complete(STORY, max_tokens=1, stop_token_ids=[size - 1], logit_bias={str(size - 1): 1})["choices"]
        big = text_of(s.complete(STORY, max_tokens=20, seed=2**64 - 9))
        assert big == text_of(s.complete(STORY, max_tokens=20, seed=-9)) != text_of(s.complete(STORY, max_tokens=20, seed=2**63 - 9))
        assert s.complete(STORY, max_tokens=1, seed=2**64 - 9)["spec"]["seed"] == -9
        assert error_of(s.complete(STORY, 400, seed=2**64))["param"] == "seed"
        long = s.complete(STORY, max_tokens=2**64 - 1, ignore_eos=True, seed=1, metadata={"id": 2**70})
        assert long["usage"]["total_tokens"] == 512 and long["choices"][0]["finish_reason"] == "length"
        e = error_of(s.complete([5] * 600, 400))
        assert "maximum context length is 512 tokens" in e["message"] and e["code"] == "context_length_exceeded", e


def test_special_tokens_stop():
    """A special token has no text in an answer; as a stop string it ends the answer where it is drawn."""
    with pair() as s:
        end = next(t["piece"] for t in s.post("/tokenize", {"content": "</s>x", "with_pieces": True})["tokens"])
        assert end == "</s>", end
        for seed in range(40):
            body = {"prompt": "The end. They lived happily ever after", "max_tokens": 300, "seed": seed}
            a = s.complete(**body)
            if a["choices"][0]["finish_reason"] == "stop":
                break
        assert a["choices"][0]["finish_reason"] == "stop", "no text has ended"
        longer = s.complete(ignore_eos=True, **body)
        stopped = s.complete(ignore_eos=True, stop=["never in a story", end], **body)
        assert text_of(longer).startswith(text_of(a)) and len(text_of(longer)) > len(text_of(a))
        assert text_of(stopped) == text_of(a) and stopped["choices"][0]["finish_reason"] == "stop"
        e = error_of(s.complete(STORY, 400, stop=["\n" + end]))
        assert e["param"] == "stop" and "has the special token </s> beside other text" in e["message"], e


# ---- what is wrong ----------------------------------------------------------------------------------------------------


def test_errors():
    with Server(SERVE, "--max-body", "64", "--max-tokens", "100", model=DRAFT) as s:
        e = error_of(s.complete(STORY, 400, temperature=-1))
        assert e["type"] == "invalid_request_error" and e["param"] == "temperature"
        e = error_of(s.complete("a " * 2000, 400))
        assert e["code"] == "context_length_exceeded" and "512" in e["message"]
        assert error_of(s.complete([1] * 512, 400))["code"] == "context_length_exceeded"
        assert error_of(s.complete([5000], 400))
        assert error_of(s.complete(STORY, 404, model="gpt-9"))["code"] == "model_not_found"
        assert error_of(s.complete(STORY, 400, max_tokens=101))["param"] == "max_tokens"
        assert error_of(s.complete(STORY, 400, min_tokens=3))["param"] == "min_tokens"
        assert s.complete(STORY, max_tokens=1, response_format={"type": "text"})["choices"]
        for body in (b"", b"{", b"[]", b"nul", b'{"prompt": "x"} y', b'{"prompt": "\xff"}', b"[" * 60000, b'{"prompt":' + b"[" * 500):
            code, _, answer = s.call("POST", "/v1/completions", body)
            assert code == 400 and error_of(json.loads(answer)), body[:20]
        big = b'{"prompt": "' + b"x" * 100000 + b'"}'
        code, _, answer = s.call("POST", "/v1/completions", big)
        assert code == 413 and error_of(json.loads(answer))["type"] == "invalid_request_error"
        code, _, answer = s.call("POST", "/v1/completions", b"x" * 50000 + b"x" * 100000)
        assert code == 413
        chunk = b"c350\r\n" + b"x" * 50000 + b"\r\n"
        answer = s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413"), answer[:60]
        assert s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n").startswith(b"HTTP/1.1 413")
        assert s.metrics()["http_errors_total"] >= 16
        assert s.complete(STORY, max_tokens=2, ignore_eos=True)["usage"]["completion_tokens"] == 2


def test_key():
    with tempfile.NamedTemporaryFile("w", suffix=".key") as f:
        f.write("secret\n")
        f.flush()
        with Server(SERVE, "--api-key-file", f.name, "--cors", "https://example.org", model=DRAFT) as s:
            for headers in ({}, {"Authorization": "Bearer wrong!"}, {"Authorization": "secret"}, {"Authorization": "Bearer secret2"}):
                code, h, body = s.call("POST", "/v1/completions", {"prompt": STORY}, headers)
                assert code == 401 and error_of(json.loads(body))["type"] == "authentication_error" and h["WWW-Authenticate"] == "Bearer"
            assert s.call("GET", "/v1/models")[0] == 401 and s.call("GET", "/props")[0] == 401
            assert s.call("GET", "/health")[0] == s.call("GET", "/live")[0] == s.call("GET", "/metrics")[0] == s.call("GET", "/")[0] == 200
            key = {"Authorization": "Bearer secret"}
            code, h, _ = s.call("POST", "/v1/completions", {"prompt": STORY}, key)
            assert code == 200 and h["Access-Control-Allow-Origin"] == "https://example.org"
            assert s.call("OPTIONS", "/v1/completions")[0] == 204


def test_full_queue():
    """What does not fit is refused at once with 429 and a time to wait; nothing that was accepted is lost."""
    with pair("--batch", "2", "--queue", "3", "--max-streams", "60") as s:
        asked = [s.connect() for _ in range(40)]
        with s.frozen():  # it reads them all at once, so however slow this machine is, they do not fit
            for i, c in enumerate(asked):
                c.request("POST", "/v1/completions", json.dumps({"prompt": STORY, "max_tokens": 100, "seed": i, "ignore_eos": True}), JSON)
        answers = []
        for c in asked:
            r = c.getresponse()
            answers.append((r.status, r.headers["Retry-After"], json.loads(r.read())))
            c.close()
        codes = [a[0] for a in answers]
        assert set(codes) == {200, 429}, set(codes)
        assert all(int(a[1]) >= 1 and error_of(a[2])["type"] == "rate_limit_error" for a in answers if a[0] == 429)
        assert all(a[2]["usage"]["completion_tokens"] == 100 for a in answers if a[0] == 200)
        m = s.wait_idle()
        assert m["requests_rejected_total"] == codes.count(429)
        assert m['request_success_total{finished_reason="length"}'] == codes.count(200)
        assert error_of(s.complete([STORY] * 128, 429, max_tokens=200, ignore_eos=True)), "all answers of a request, or none"
        s.wait_idle()
    with Server(SERVE, "--max-streams", "1") as s:
        c, r = s.open_stream("/v1/completions", ENDLESS)
        assert error_of(s.complete(STORY, 429))
        r.close(), c.close()
        s.wait_idle()
        s.complete(STORY, max_tokens=1)


def test_deadline():
    with Server(SERVE, "--request-timeout", "0.05") as s:
        e = error_of(s.complete(STORY, 504, max_tokens=400, n=8))
        assert e["type"] == "timeout_error" and "0.05" in e["message"]
        c, r = s.open_stream("/v1/completions", {"prompt": STORY, "max_tokens": 400, "n": 8})
        events = parse_events(r.read())
        assert error_of(json.loads(events[-1]))["type"] == "timeout_error"
        s.wait_idle()


# ---- streams of a busy server -----------------------------------------------------------------------------------------


def test_ping():
    """A stream that waits for its turn is told so by comments."""
    with Server(SERVE, "--batch", "1", "--ping", "0.05") as s:
        c, r = s.open_stream("/v1/completions", ENDLESS)
        c2, r2 = s.open_stream("/v1/completions", {"prompt": STORY, "max_tokens": 1})
        waited = b""
        while waited.count(b":\n\n") < 2:
            waited += r2.read1()
        assert parse_events(waited) == []
        r.close(), c.close()  # its turn comes
        assert parse_events(r2.read())[-1] == "[DONE]"
        c2.close()


def turns_of(thread):
    """ns of the turns that a thread has asked the scheduler for; 0: the system's own length (sched_getattr(2), x86-64 and 64-bit Arm)."""
    attr = struct.pack("IIQiIQQQ", 48, *[0] * 7)
    buffer = ctypes.create_string_buffer(attr, 48)
    number = {"x86_64": 315, "aarch64": 275}[os.uname().machine]
    assert ctypes.CDLL(None, use_errno=True).syscall(number, thread, buffer, 48, 0) == 0, os.strerror(ctypes.get_errno())
    return struct.unpack("IIQiIQQQ", buffer.raw)[5]


def test_short_turns():
    """The thread that writes events runs when it wakes, though the engine's threads keep the processors busy."""
    if tuple(int(x) for x in os.uname().release.split(".")[:2]) < (6, 12):
        raise Skipped("Linux %s has turns of one length" % os.uname().release)
    with Server(SERVE, model=DRAFT) as s:
        s.complete(STORY, max_tokens=2)
        turns = [turns_of(int(t)) for t in os.listdir("/proc/%d/task" % s.process.pid)]
        assert turns.count(100000) == 1, turns


# ---- load and shutdown ------------------------------------------------------------------------------------------------


def test_concurrent_equals_alone():
    """200 seeded requests at once and one at a time: byte for byte, with speculation and without."""
    n = 40 if THIN else 200
    prompts = ["Once upon a time", "The dog", "Lily had a big red ball. She", "Tom and Sam went to the park. They saw"]
    bodies = [{"prompt": prompts[i % 4], "max_tokens": 10 + i % 23, "seed": i // 4, "stream": i % 5 == 0,
               "logprobs": 1 if i % 7 == 0 else None} for i in range(n)]

    def ask(s, body, draft):
        body = body if draft else dict(body, speculative={"enabled": False})
        if body["stream"]:
            events = s.stream("/v1/completions", body)
            return joined(events), events[-1]["choices"][0]["finish_reason"], None
        c = s.complete(**body)["choices"][0]
        return c["text"], c["finish_reason"], c["logprobs"]

    with pair("--batch", "16", threads=2) as s:
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            at_once = list(pool.map(lambda i: ask(s, bodies[i], i % 2), range(n)))
            again = list(pool.map(lambda i: ask(s, bodies[i], (i + 1) % 2), range(n)))
        assert at_once == again, "speculation changes answers"
        m = s.wait_idle()
        assert m["spec_decode_num_accepted_tokens_total"] > 0 and m["num_requests_running"] == 0
    with pair("--batch", "1", "--no-prefix-cache") as s:
        alone = [ask(s, b, True) for b in bodies]
    assert at_once == alone, [i for i in range(n) if at_once[i] != alone[i]]


if __name__ == "__main__":
    sys.exit(run(globals()))
