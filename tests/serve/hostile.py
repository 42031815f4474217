#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The server and clients that behave badly: they leave, do not read, ask for what takes long, or send what is no HTTP. No other client is
held up, and nothing is left of them.

usage: tests/serve/hostile.py WAGER WAGER_SERVE [TEST...]      the tests are the functions test_*; standard library only"""
import concurrent.futures
import json
import random
import re
import resource
import select
import signal
import socket
import sys
import time

from cases import SERVE, STORY, THIN, Skipped, error_of, joined, pair, run, text_of
from server import DRAFT, ENDLESS, PATIENCE, Server, parse_events, request_bytes


def test_vanishing_clients():
    """Each client that leaves is counted once, whoever finds it: the watch on its socket, or a write that fails (a comment, an event)."""
    with pair("--batch", "4", "--queue", "400", "--ping", "0.01") as s:
        for turn in range(8):
            before = s.metrics()
            sockets = [s.socket(request_bytes("/v1/completions", dict(ENDLESS, stream=turn < 6))) for _ in range(3)]  # one runs, two wait
            s.wait_for(lambda m: m["num_requests_waiting"] > 2 * 128)
            with s.frozen():
                for k in sockets:
                    k.close()
            after = s.wait_idle()
            more = {name: after[name] - before[name] for name in before if name.startswith(("clients_gone", "request_success"))}
            assert more["clients_gone_total"] == 3 and sum(more.values()) == 3 + 3 * 128, (turn, more)
            assert more['request_success_total{finished_reason="abort"}'] > 128, (turn, more)
        # One that resets instead of closing, in the middle of a stream.
        k = s.socket(request_bytes("/v1/completions", dict(ENDLESS, stream=True)))
        k.recv(100)
        k.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        k.close()
        s.wait_idle()
        s.wait_for(lambda m: m["http_connections"] == 1)
    # Beside a connection that is silent, and that no time limit closes: nothing is left of streams whose clients left.
    with Server(SERVE, "--idle-timeout", "0", model=DRAFT) as s, s.socket():
        s.wait_for(lambda m: m["http_connections"] == 2)
        descriptors = s.descriptors()  # of the connection that has read the metrics, or not
        for _ in range(30):
            with s.socket(request_bytes("/v1/completions", {"prompt": STORY, "max_tokens": 400, "stream": True, "ignore_eos": True})) as k:
                k.recv(200)
        s.wait_idle()
        # The connection that reads the metrics may still be open when they were read; all others are closed.
        s.wait_for(lambda m: m["http_connections"] == 2 and s.descriptors() <= descriptors)


def test_slow_reader():
    """A client that does not read costs others nothing, and gets all of its answer when it reads."""
    with Server(SERVE, "--batch", "4", model=DRAFT) as s:
        body = {"prompt": STORY, "max_tokens": 450, "stream": True, "ignore_eos": True, "seed": 2, "n": 8, "return_token_ids": True, "logprobs": 5}
        k = socket.socket()
        k.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        k.connect(("127.0.0.1", s.port))
        k.sendall(request_bytes("/v1/completions", body, "Connection: close\r\n"))
        s.wait_for(lambda m: m["generation_tokens_total"] > 100)
        assert s.complete(STORY, max_tokens=5, ignore_eos=True)["usage"]["completion_tokens"] == 5
        s.wait_idle()
        k.settimeout(PATIENCE)
        k.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        data = b""
        while piece := k.recv(65536):
            data += piece
        k.close()
        chunks, rest = [], data.split(b"\r\n\r\n", 1)[1]
        while rest:
            n, rest = rest.split(b"\r\n", 1)
            chunks.append(rest[:int(n, 16)])
            rest = rest[int(n, 16) + 2:]
        events = parse_events(b"".join(chunks))
        whole = s.complete(**dict(body, stream=False))
        assert events[-1] == "[DONE]" and [joined([json.loads(e) for e in events[:-1]], i) for i in range(8)] == [text_of(whole, i) for i in range(8)]


def waits_of_others(s, data):
    """The longest time of /health while these bytes, whose prompt is too long, are read, as a share of that time."""
    shares = [1]
    while shares[-1] > 0.5 and len(shares) < 4:  # another program may have had the processor
        times = []
        with s.socket(data) as k:
            start = time.monotonic()
            while not select.select([k], [], [], 0)[0]:
                times.append(-time.monotonic())
                assert s.get("/health")
                times[-1] += time.monotonic()
            took = time.monotonic() - start
            head, answer = k.recv(65536).split(b"\r\n\r\n", 1)
            assert head.startswith(b"HTTP/1.1 400") and error_of(json.loads(answer))["code"] == "context_length_exceeded", (head, answer)
        print("     %d times /health in %.2f s, at most %.3f s" % (len(times), took, max(times)))
        shares.append(max(times) / took)
    assert shares[-1] <= 0.5, shares


def ends_while_it_reads(data):
    """Requests that are being read, those that wait for it, and those that come in while the server ends do not outlast it. Which
    of them a connection is in is up to the threads: one end of seven failed while a connection could be suspended too late."""
    for _ in range(6):
        with Server(SERVE, "--shutdown-timeout", "0.1", model=DRAFT) as s:
            waiting = [s.socket(data) for _ in range(4)]
            s.process.send_signal(signal.SIGTERM)
            s.end()
            for k in waiting:
                k.close()


def test_long_prompt():
    """A prompt of 4 MB, which takes a second to read, holds no other client up."""
    words = random.Random(3).choices("the a dog cat ball sun Tom Lily ran saw big red little house tree and then said".split(), k=1000000)
    long = request_bytes("/v1/completions", {"prompt": " ".join(words)})
    with Server(SERVE, model=DRAFT) as s:
        waits_of_others(s, long)
        assert text_of(s.complete(STORY, max_tokens=5, seed=1)) == text_of(s.complete(
            STORY, max_tokens=5, seed=1, user="u" * 20000)), "the same answer by the way of long bodies"
        events = s.stream("/v1/completions", {"prompt": STORY, "max_tokens": 5, "seed": 1, "user": "u" * 20000})
        assert joined(events) == text_of(s.complete(STORY, max_tokens=5, seed=1))
        assert s.post("/detokenize", {"tokens": s.post("/tokenize", {"content": "a dog " * 5000})["tokens"]})["content"] == "a dog " * 5000
    ends_while_it_reads(long)


def test_costly_grammar():
    """A grammar of 10 KB whose first state takes a quarter of a second holds no other client up: which of its 400 choices a text
    is in depends on all of its last characters, so that nearly every token leads to a state of its own."""
    choices = ["[ -~]* [%c-%c] [ -~]{12}" % (97 + i % 13, 110 + i // 13 % 13) for i in range(400)]
    costly = request_bytes("/v1/completions", {"prompt": [5] * 600, "grammar": "root ::= " + " | ".join(choices)})
    assert len(costly) < 16384, "a body that is short"
    with Server(SERVE, model=DRAFT) as s:
        waits_of_others(s, costly)
    ends_while_it_reads(costly)


def test_out_of_memory():
    """Bodies for which there is no memory have a quick 503; afterwards all is as before."""
    if THIN:
        raise Skipped("a sanitizer's own memory has no limit")
    with Server(SERVE, model=DRAFT) as s:
        good = s.complete(STORY, max_tokens=5, seed=1)["choices"]
        with open("/proc/%d/status" % s.process.pid) as f:
            size = int(re.search(r"VmSize:\s+(\d+)", f.read())[1]) << 10
        for room in (4, 20):  # MiB: less than a document needs, and than the tables of a grammar
            resource.prlimit(s.process.pid, resource.RLIMIT_AS, (size + (room << 20), resource.RLIM_INFINITY))
            for body in ({"prompt": "a " * 3500000}, {"prompt": [5] * 2500000}, {"prompt": STORY, "response_format": {"type": "json_schema", "json_schema": {
                    "schema": {"enum": ["x" * 4000000]}}}}, {"prompt": STORY, "response_format": schema_of(1)}):
                start = time.monotonic()
                code, headers, answer = s.call("POST", "/v1/completions", body)
                took = time.monotonic() - start
                e = error_of(json.loads(answer))
                assert code == 503 and e["type"] == "unavailable_error" and int(headers["Retry-After"]) >= 1, (code, e)
                assert took < 25, "it took %.0f s" % took
        # Room for the tokens of a text, not for their answer: each of the other million texts of tokens would be asked for in vain.
        resource.prlimit(s.process.pid, resource.RLIMIT_AS, (size + (40 << 20), resource.RLIM_INFINITY))
        start = time.monotonic()
        code, headers, answer = s.call("POST", "/tokenize", {"prompt": "a " * 1500000, "with_pieces": True})
        assert code == 503 and error_of(json.loads(answer)) and time.monotonic() - start < 25, (code, time.monotonic() - start)
        resource.prlimit(s.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert s.complete(STORY, max_tokens=5, seed=1)["choices"] == good
        assert s.post("/tokenize", {"prompt": "a " * 3000000})["count"] > 3000000


def schema_of(i):
    return {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {"key%d" % i: {"type": "string"}}, "required": ["key%d" % i]}}}


def test_memory_of_schemas():
    """Schemas that come and go, each of them new, from many clients: memory finds its bound."""
    if THIN:
        raise Skipped("a sanitizer keeps what was freed")
    def round_of(s, first):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda i: s.complete(STORY, max_tokens=4, response_format=schema_of(first + i)), range(80)))
        return s.resident() >> 10

    with Server(SERVE, "--batch", "8", model=DRAFT) as s:
        after = [round_of(s, 1000 * i) for i in range(4)]
        print("     MiB: %s" % after)
        assert after[3] - after[0] < 24, after


def test_malformed_http():
    with Server(SERVE, "--idle-timeout", "1", "--max-connections", "100", model=DRAFT) as s:
        pick = random.Random(2)
        good = request_bytes("/v1/completions", {"prompt": STORY, "max_tokens": 2})
        assert s.raw(b"nonsense\r\n\r\n")[:12] in (b"HTTP/1.1 400", b"HTTP/1.0 400", b"")
        for data in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" + b"A: " + b"b" * 60000 + b"\r\n\r\n"):
            answer = s.raw(data, 2)
            assert not answer or answer.startswith(b"HTTP/1."), answer[:60]
        for _ in range(150):  # bytes changed, cut and repeated at random places
            data = bytearray(good)
            for _ in range(pick.randrange(1, 8)):
                at = pick.randrange(len(data))
                data[at:at + pick.randrange(3)] = bytes(pick.randrange(256) for _ in range(pick.randrange(4)))
            answer = s.raw(bytes(data), 0.02)
            assert not answer or answer.startswith(b"HTTP/1."), answer[:60]
        idle = [s.socket(good[:pick.randrange(len(good))]) for _ in range(60)]  # half a request each, and silence
        assert s.complete(STORY, max_tokens=2, ignore_eos=True)["usage"]["completion_tokens"] == 2
        s.wait_for(lambda m: m["http_connections"] <= 1)
        for k in idle:
            k.close()
        assert s.raw(good + good.replace(b"Host: x", b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close")).count(b"text_completion") == 2, "pipelining"


if __name__ == "__main__":
    sys.exit(run(globals()))
