#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OpenAI's Python client against the server.

usage: tests/serve/client.py WAGER_SERVE live | replay | record
live: the cases below, by the client; what it sends and gets must be what fixtures.jsonl has. record: writes that file. replay: sends
the recorded requests without the client, and compares the answers: seeds and the Prefix Law make them the same on every machine."""
import json
import os
import sys

from server import DRAFT, ROOT, Server

FIXTURES = os.path.join(ROOT, "tests/serve/fixtures.jsonl")
DROPPED = ("id", "created", "timings", "metrics", "system_fingerprint", "detail")  # times, versions, names of answers


def stable(value):
    """Without what differs from one answer to the next."""
    if isinstance(value, dict):
        return {k: stable(v) for k, v in value.items() if k not in DROPPED}
    return [stable(v) for v in value] if isinstance(value, list) else value


def answer_of(content_type, body):
    if content_type.startswith("text/event-stream"):
        events = [e[6:] for e in body.split("\n\n") if e.startswith("data: ")]
        return [e if e == "[DONE]" else stable(json.loads(e)) for e in events]
    return stable(json.loads(body))


def cases(client, openai, done):
    """The calls of the client, one after the other; done(name) ends a case."""
    story = "Once upon a time"

    models = client.models.list()
    assert [m.id for m in models.data] == ["story"] and models.data[0].object == "model"
    done("models")

    whole = client.completions.create(model="story", prompt=story, max_tokens=24, seed=1)
    assert whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 24
    done("completion")

    text, usage = "", None
    for event in client.completions.create(model="story", prompt=story, max_tokens=24, seed=1, stream=True, stream_options={"include_usage": True}):
        text += event.choices[0].text if event.choices else ""
        usage = event.usage or usage
    assert text == whole.choices[0].text and usage == whole.usage
    done("completion, stream")

    scored = client.completions.create(model="story", prompt=story, max_tokens=4, seed=1, logprobs=2, echo=True)
    l = scored.choices[0].logprobs
    assert l.token_logprobs[0] is None and len(l.tokens) == scored.usage.total_tokens and scored.choices[0].text.startswith(story)
    assert "".join(l.tokens[-4:]) == scored.choices[0].text[l.text_offset[-4]:]
    done("completion, logprobs and echo")

    several = client.completions.create(model="story", prompt=[story, "The dog"], max_tokens=8, seed=1, n=2)
    assert [c.index for c in several.choices] == [0, 1, 2, 3]
    done("completion, prompts and n")

    talk = [{"role": "system", "content": "A story."}, {"role": "user", "content": "Tom had a ball."}]
    chat = client.chat.completions.create(model="story", messages=talk, max_completion_tokens=24, seed=2)
    assert chat.choices[0].message.role == "assistant" and chat.choices[0].message.content and chat.choices[0].finish_reason == "length"
    done("chat")

    text = ""
    for event in client.chat.completions.create(model="story", messages=talk, max_completion_tokens=24, seed=2, stream=True):
        text += event.choices[0].delta.content or ""
    assert text == chat.choices[0].message.content
    done("chat, stream")

    words = chat.choices[0].message.content
    stopped = client.chat.completions.create(model="story", messages=talk, max_completion_tokens=24, seed=2, stop=[words[10:14]])
    assert stopped.choices[0].message.content == words[:words.index(words[10:14])] and stopped.choices[0].finish_reason == "stop"
    done("chat, stop string")

    scored = client.chat.completions.create(model="story", messages=talk, max_completion_tokens=3, seed=2, logprobs=True, top_logprobs=2)
    assert len(scored.choices[0].logprobs.content) == 3 and len(scored.choices[0].logprobs.content[0].top_logprobs) == 2
    done("chat, logprobs")

    def formatted(schema):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}

    person = {"type": "object", "properties": {"name": {"enum": ["Lily", "Tom"]}}, "required": ["name"], "additionalProperties": False}
    told = client.chat.completions.create(model="story", messages=talk, max_completion_tokens=200, seed=3, response_format=formatted(person))
    assert json.loads(told.choices[0].message.content)["name"] in ("Lily", "Tom") and told.choices[0].finish_reason == "stop"
    done("chat, response_format")

    for name, kind, call in (
            ("error, value", openai.BadRequestError, lambda: client.completions.create(model="story", prompt=story, temperature=-1)),
            ("error, model", openai.NotFoundError, lambda: client.chat.completions.create(model="none", messages=talk)),
            ("error, context", openai.BadRequestError, lambda: client.completions.create(model="story", prompt=[5] * 600)),
            ("error, format", openai.BadRequestError, lambda: client.chat.completions.create(model="story", messages=talk, response_format=formatted({"not": {}}))),
            ("error, key", openai.AuthenticationError, lambda: client.with_options(api_key="wrong").models.list())):
        try:
            call()
        except kind as e:
            assert e.body["message"] and (name != "error, context" or e.code == "context_length_exceeded"), e.body
        else:
            raise AssertionError("no error: " + name)
        done(name)


def by_client(server):
    """[{name, method, path, headers, body, status, answer}] of all cases."""
    import openai
    try:
        import httpx2 as httpx  # what the client stands on since its version 3
    except ImportError:
        import httpx
    seen, kept = [], []

    class Recorder(httpx.HTTPTransport):
        def handle_request(self, request):
            response = super().handle_request(request)
            body = response.read().decode()
            headers = {k: v for k, v in request.headers.items() if k in ("authorization", "content-type", "accept")}
            seen.append({"method": request.method, "path": request.url.path, "headers": headers, "body": request.read().decode(),
                         "status": response.status_code, "answer": answer_of(response.headers["content-type"], body)})
            return response

    def done(name):
        assert seen, name
        kept.extend(dict({"name": name}, **s) for s in seen)
        seen.clear()
        print("ok   %s" % name, flush=True)

    with openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % server.port, api_key="secret", max_retries=0,
                       http_client=httpx.Client(transport=Recorder())) as client:
        cases(client, openai, done)
    print("openai %s" % openai.__version__)
    return kept


def by_replay(server, recorded):
    kept = []
    for r in recorded:
        status, headers, body = server.call(r["method"], r["path"], r["body"] or None, r["headers"])
        kept.append(dict(r, status=status, answer=answer_of(headers["Content-Type"], body.decode())))
    return kept


def main():
    program, mode = os.path.realpath(sys.argv[1]), sys.argv[2]
    os.chdir(ROOT)
    recorded = []
    if mode != "record":
        with open(FIXTURES, encoding="utf-8") as f:
            recorded = [json.loads(line) for line in f]
    with Server(program, "--draft", "model:model=%s,length=4" % DRAFT, "--name", "story", "--api-key", "secret") as server:
        got = by_replay(server, recorded) if mode == "replay" else by_client(server)
    if mode == "record":
        with open(FIXTURES, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(g) + "\n" for g in got)
        return 0
    wrong = 0
    for was, now in zip(recorded, got):
        now = json.loads(json.dumps(now))
        parts = [k for k in was if was[k] != now[k]]
        if parts:
            wrong += 1
            for k in parts:
                print("FAIL %s: %s was\n%s\nand is\n%s" % (was["name"], k, json.dumps(was[k]), json.dumps(now[k])))
    print("%d requests, %d wrong%s" % (len(got), wrong, "; after a change of the bundled models: models/update.sh" if wrong else ""))
    return wrong != 0 or len(got) != len(recorded) or len(recorded) < 13


if __name__ == "__main__":
    sys.exit(main())
