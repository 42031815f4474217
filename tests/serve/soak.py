#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many requests of all kinds beside idle connections: no descriptor or page is lost, and resident memory stays within 2 % or 4 MB.

usage: tests/serve/soak.py WAGER_SERVE [REQUESTS] [IDLE]     20000 and 1000 when left out; of a release build; not a part of ctest

The first tenth warms up: pages and buffers are touched for the first time. Then memory is read after each tenth, when no request
runs. Kinds: completions, streams, chats, stop strings, several answers, scored prompts, long bodies; a tenth with a schema, of which half are
one of ten and half are new; errors; bodies that are no JSON or too large; and clients that leave, before the answer or in the middle of it."""
import multiprocessing
import os
import random
import sys
import time

from server import DRAFT, JSON, ROOT, Server, request_bytes

CLIENTS = 32
WORDS = "the a dog cat ball sun Tom Lily ran saw big red little house tree and then said".split()


def prompt(pick):
    return "Once " + " ".join(pick.choice(WORDS) for _ in range(pick.randrange(1, 16)))


def one(server, connection, pick, i):
    """One request on a connection that stays; (kind, status). Those that leave have one of their own."""
    kind = "schema" if pick.random() < 0.1 else pick.choice(("plain", "plain", "plain", "stream", "stream", "chat", "stop", "several", "scored", "long", "error", "no json", "large", "gone", "gone late"))
    body = {"prompt": prompt(pick), "max_tokens": pick.randrange(1, 8), "seed": i}
    path = "/v1/completions"
    if kind in ("stream", "gone late"):
        body["stream"] = True
    elif kind == "chat":
        body["messages"], path = [{"role": "user", "content": body.pop("prompt")}], "/v1/chat/completions"
    elif kind == "stop":
        body["stop"] = ["e", "the"]
    elif kind == "several":
        body["n"] = 3
    elif kind == "scored":
        body.update(logprobs=2, echo=True, max_tokens=0)
    elif kind == "long":  # read by the thread of long bodies
        body["user"] = "u" * 20000
    elif kind == "schema":
        name = "key%d" % (pick.randrange(10) if pick.random() < 0.5 else i)
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}}}
    elif kind == "error":
        body["top_p"] = 2
    data = request_bytes(path, body)
    if kind.startswith("gone"):
        with server.socket(data) as s:
            if kind == "gone late":
                s.recv(200)
        return kind, 0
    text = {"no json": b"{", "large": b"x" * 70000}.get(kind, data.split(b"\r\n\r\n", 1)[1])
    connection.request("POST", path, text, JSON)
    r = connection.getresponse()
    r.read()
    return kind, r.status


def client(port, seed, n, wrong):
    pick, server = random.Random(seed), Server.__new__(Server)
    server.port = port
    connection = server.connect()
    expected = {"error": 400, "no json": 400, "large": 413}
    for i in range(n):
        kind, status = one(server, connection, pick, seed * 1000000 + i)
        if status not in (0, expected.get(kind, 200)):
            wrong.put("%s: %d" % (kind, status))
        if i % 500 == 499:  # connections come and go too
            connection.close()
            connection = server.connect()
    connection.close()


def run(port, seed, requests):
    wrong = multiprocessing.Queue()
    clients = [multiprocessing.Process(target=client, args=(port, seed * CLIENTS + k, requests // CLIENTS, wrong)) for k in range(CLIENTS)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
        assert c.exitcode == 0, "a client failed"
    return [wrong.get() for _ in range(wrong.qsize())]


def main():
    program = os.path.realpath(sys.argv[1])
    requests, idle = int((sys.argv[2:] or [20000])[0]), int((sys.argv[3:] or [1000])[0])
    os.chdir(ROOT)
    options = ("--draft", "ngram:k=3", "--batch", "8", "--max-body", "64", "--idle-timeout", "0", "--queue", "1000", "--pages", "200")
    with Server(program, *options, model=DRAFT) as server:
        silent = [server.socket() for _ in range(idle)]
        server.wait_for(lambda m: m["http_connections"] == idle + 1)
        memory, descriptors, start = [], [], time.time()
        for tenth in range(10):
            wrong = run(server.port, tenth, requests // 10)
            assert not wrong, wrong[:5]
            m = server.wait_idle()
            server.wait_for(lambda now: now["http_connections"] == idle + 1)
            memory.append(server.resident())
            descriptors.append(server.descriptors())
            print("%7d requests, %5.0f s: %d KiB resident, %d descriptors, %d of %d pages used, %d cached, %d clients gone" % (
                (tenth + 1) * (requests // 10), time.time() - start, memory[-1], descriptors[-1], m["kv_pages_used"], m["kv_pages"],
                m["kv_pages_cached"], m["clients_gone_total"]), flush=True)
        for s in silent:
            s.close()
        server.wait_for(lambda now: now["http_connections"] == 1)
        low, high = min(memory), max(memory)
        print("memory from %d to %d KiB: %.2f %%; descriptors %d to %d, %d without idle connections" % (
            low, high, 100 * (high / low - 1), min(descriptors), max(descriptors), server.descriptors()))
        assert high <= max(1.02 * low, low + 4096) and max(descriptors) - min(descriptors) <= 1  # one may belong to the reading of the metrics
    return 0


if __name__ == "__main__":
    sys.exit(main())
