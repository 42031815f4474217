#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bytes that are no good HTTP or JSON, at a real server: it answers with HTTP, or closes; it never ends, and keeps nothing of them.

usage: tests/serve/fuzz.py WAGER_SERVE [--seconds S] [--seed N]     3 seconds when left out; ctest runs that

A case is made of good requests: mutated in their bytes, fields or JSON, repeated, cut off, chunked, oversized, with headers that contradict
each other. It is sent in pieces, several cases at a time, by clients that read, that read slowly, or that leave. What the server says is
parsed by the standard library. After each hundred cases nothing may be running, and a good request has its answer. A failure prints
the seed and the number of the case; --seed N --case K sends that case alone."""
import argparse
import http.client
import io
import json
import os
import random
import select
import socket
import sys
import time

from server import DRAFT, PATIENCE, ROOT, Server

STORY = "Once upon a time"
TEXTS = [b"\0", b"\r\n", b"\r\n\r\n", b"\n", b":", b" ", b"\xff\xfe", b"\xed\xa0\x80", b"%00", b"../", b"A" * 5000, b"0", b"-1", b"99999999999999999999"]
VALUES = [None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -2**63, 1e308, -0.0, 0.5, "", "x", "\ud800", "\x00", [], {}, [[]], [{}], [None], [1.5], {"": 0},
          "a" * 20000, [1] * 3000, ["x"] * 200, {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}, {"type": "grammar", "grammar": "root ::= root"}]
FIELDS = ("prompt messages max_tokens max_completion_tokens n seed stop stop_token_ids stream stream_options echo logprobs top_logprobs temperature top_p top_k min_p "
          "presence_penalty frequency_penalty repetition_penalty logit_bias ignore_eos return_token_ids priority response_format grammar speculative speculative.n_max "
          "best_of suffix tools model tokens content with_pieces chat_template_kwargs timings_per_token add_special_tokens").split()
BODIES = {
    "/v1/completions": {"prompt": STORY, "max_tokens": 3, "seed": 1},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Tom"}], "max_tokens": 3, "stream": True},
    "/tokenize": {"prompt": STORY, "return_token_strs": True},
    "/detokenize": {"tokens": [1, 2, 300]},
    "/apply-template": {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
}
PATHS = ["/health", "/live", "/metrics", "/v1/models", "/props", "/version", "/", "/nothing", "*", "http://x/health", "/" + "a" * 4000, "/health?a=%zz&&=", "//", "/%2e%2e"]


def changed_json(pick, body):
    """A body with other values, more fields, or fewer."""
    body = json.loads(json.dumps(body))
    for _ in range(pick.randrange(1, 4)):
        field = pick.choice(FIELDS)
        if pick.random() < 0.2:
            body.pop(field, None)
        else:
            body[field] = pick.choice(VALUES)
    body["max_tokens"] = min(body["max_tokens"], 8) if isinstance(body.get("max_tokens"), int) else 3  # short answers: many cases
    text = json.dumps(body, ensure_ascii=pick.random() < 0.5).encode("utf-8", "surrogatepass")
    if pick.random() < 0.2:
        text = pick.choice((b"[" * 200 + text, text[:pick.randrange(len(text) + 1)], text + text, b"\xef\xbb\xbf" + text, text.replace(b'"', b"'"),
                            text.replace(b":", b":" + b"[" * 130), b"{" + b'"a":{' * 127 + b"}" * 128, b" " * 9000 + text))
    return text


def changed_bytes(pick, data):
    data = bytearray(data)
    for _ in range(pick.randrange(1, 6)):
        at = pick.randrange(len(data) + 1)
        end = at + pick.randrange(4)
        data[at:end] = pick.choice((bytes(pick.randrange(256) for _ in range(pick.randrange(4))), pick.choice(TEXTS), bytes(data[at:at + pick.randrange(60)])))
    return bytes(data)


def framed(pick, body):
    """The body with the headers that frame it, most of them right."""
    kind = pick.randrange(10)
    if kind < 5:
        return b"Content-Length: %d\r\n\r\n" % len(body) + body
    if kind < 8:
        out, at = b"Transfer-Encoding: chunked\r\n\r\n", 0
        while at < len(body):
            n = pick.randrange(1, 400)
            size = b"%x" % len(body[at:at + n])
            out += pick.choice((size, size, size, size.upper(), b"0" + size, size + b";a=b", size + b" ", b"-" + size, b"f" * 16)) + b"\r\n" + body[at:at + n] + b"\r\n"
            at += n
        return out + pick.choice((b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nA: b\r\n\r\n", b"0\r\n", b""))
    if kind == 8:  # two lengths, or a length beside chunks
        return b"Content-Length: %d\r\n" % len(body) + pick.choice((b"Content-Length: 1\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: x\r\n")) + b"\r\n" + body
    return pick.choice((b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body), b"Content-Length: -1\r\n\r\n", b"Content-Length: 1e3\r\n\r\n",
                        b"Content-Length: 999999999999\r\n\r\n", b"\r\n", b"Content-Length: %d\r\n\r\n" % (len(body) + 7))) + body


def case(pick):
    """The bytes of one connection."""
    out = b""
    for _ in range(pick.choice((1, 1, 1, 1, 2, 5))):
        path = pick.choice(list(BODIES) * 4 + PATHS)
        method = b"POST" if path in BODIES else pick.choice((b"GET", b"GET", b"HEAD", b"OPTIONS", b"DELETE", b"get", b"POST", b"\x01"))
        headers = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n" + pick.choice((b"", b"", b"Connection: close\r\n", b"Connection: keep-alive, close\r\n", b"X-Request-Id: a\x7fb\r\n", b"Authorization: Bearer\r\n",
                                                 b"A: b\r\n c\r\n", b"A:" + b"b" * 40000 + b"\r\n", b"A: b\r\n" * 700, b"Upgrade: websocket\r\nConnection: Upgrade\r\n"))
        request = b"%s %s HTTP/%s\r\n%s" % (method, path.encode(), pick.choice((b"1.1", b"1.1", b"1.1", b"1.0", b"0.9", b"2.0", b"1.10")), headers)
        body = changed_json(pick, BODIES[path]) if path in BODIES else b""
        out += request + (framed(pick, body) if body or pick.random() < 0.1 else b"\r\n")
    return changed_bytes(pick, out) if pick.random() < 0.5 else out


def check_answers(data):
    """Whole answers, one behind the other; the last one may be cut off where the connection was closed."""
    f = io.BytesIO(data)
    while f.tell() < len(data):
        at = f.tell()
        end = data.find(b"\r\n\r\n", at) + 4
        assert data[at:at + 7] == b"HTTP/1.", data[at:at + 80]
        if end < 4:
            return
        if data[end:end + 7] == b"HTTP/1.":  # an answer to HEAD has the length of a body, and none; 100 has neither
            f.seek(end)
            continue
        kept = io.BytesIO(data[at:])
        kept.close = lambda: None  # the reader closes what it has read
        answer = http.client.HTTPResponse(type("Socket", (), {"makefile": lambda self, mode: kept})())
        try:
            answer.begin()
            body = answer.read()
        except (http.client.IncompleteRead, http.client.BadStatusLine, ConnectionError):
            return
        assert answer.status in (200, 204, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 417, 429, 431, 500, 501, 503, 505), answer.status
        assert answer.status != 500, body
        if body and answer.headers["Content-Type"] == "application/json":
            json.loads(body)
        f.seek(at + kept.tell())
        if answer.will_close:
            return


class Client:
    """One case on a connection of its own."""

    def __init__(self, server, pick):
        self.data, self.pick, self.answer, self.over = case(pick), pick, b"", False
        self.leaves = pick.randrange(len(self.data) + 1) if pick.random() < 0.3 else None  # bytes after which it closes
        self.lingers = pick.random() < 0.5  # reads its answers before it closes
        self.sent, self.socket = 0, server.socket()
        self.socket.setblocking(False)
        self.silent = time.monotonic()

    def step(self):
        """Sends a piece and reads what is there."""
        end = len(self.data) if self.leaves is None else self.leaves
        try:
            if self.sent < end:
                self.sent += self.socket.send(self.data[self.sent:min(end, self.sent + self.pick.choice((1, 7, 300, 5000, 100000)))])
        except BlockingIOError:
            pass
        except OSError:
            self.sent = end
        try:
            while select.select([self.socket], [], [], 0)[0]:
                piece = self.socket.recv(65536)
                self.answer += piece
                self.silent = time.monotonic()
                if not piece:
                    self.close()
                    return
        except OSError:
            self.close()
            return
        if self.sent >= end and (self.leaves is not None or not self.lingers or time.monotonic() - self.silent > 0.3):
            self.close()

    def close(self):
        self.over = True
        self.socket.close()


def run_cases(server, seed, numbers):
    clients = [Client(server, random.Random("%d %d" % (seed, n))) for n in numbers]
    while not all(c.over for c in clients):
        for c in clients:
            if not c.over:
                c.step()
        time.sleep(0.0005)
    for c, n in zip(clients, numbers):
        try:
            check_answers(c.answer)
        except Exception as e:
            raise AssertionError("seed %d, case %d: %r\nsent %r\ngot %r" % (seed, n, e, c.data[:3000], c.answer[:3000])) from e
    return sum(len(c.data) for c in clients)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--case", type=int)
    o = p.parse_args()
    program = os.path.realpath(o.program)
    os.chdir(ROOT)
    # Uploads that are announced and never come end by the time limit of a connection.
    with Server(program, "--max-body", "64", "--idle-timeout", "2", "--queue", "100", "--draft", "ngram:k=3", "--max-connections", "300", model=DRAFT) as server:
        good, n, sent, start = server.complete(STORY, max_tokens=8, seed=1)["choices"], 0, 0, time.time()
        descriptors = server.descriptors()
        while not n or (o.case is None and time.time() - start < o.seconds):
            for _ in range(5):
                numbers = [o.case] if o.case is not None else range(n, n + 20)
                sent += run_cases(server, o.seed, numbers)
                n += len(numbers)
            assert server.process.poll() is None, "seed %d: the server ended in cases %d..%d" % (o.seed, n - 100, n - 1)
            server.wait_idle()
            assert server.complete(STORY, max_tokens=8, seed=1)["choices"] == good, "seed %d: another answer after case %d" % (o.seed, n - 1)
        server.wait_for(lambda m: m["http_connections"] == 1 and server.descriptors() <= descriptors + 1)
        m = server.metrics()
        print("%d cases, %d KiB in %.0f s: %d answers, %d of them errors, %d clients gone" % (
            n, sent >> 10, time.time() - start, m["http_responses_total"], m["http_errors_total"], m["clients_gone_total"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
