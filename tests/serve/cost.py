#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What HTTP and scheduling cost: processor time of the server's threads for each event of streams, by the system's accounts (not by a clock, so
other programs do not count). One thread computes.

usage: tests/serve/cost.py WAGER_SERVE [--clients N] [--tokens N] [--model FILE [--tiny FILE]]      the bundled pair where no model is named

The thread of HTTP reads requests, makes JSON and writes. The thread of the engine computes, too: with a model that hardly computes
(wager synth --like tiny) its time is an upper bound of what scheduling and events cost. With --tiny both are measured, and the last line is the
share of HTTP and scheduling in the time of an event of --model:

    wager synth --like tiny --seed 1 --out tiny.gguf
    wager synth --like tinyllama-1.1b --type q8_0 --seed 1 --out large.gguf
    tests/serve/cost.py WAGER_SERVE --model large.gguf --tiny tiny.gguf --clients 4 --tokens 16"""
import argparse
import concurrent.futures
import os
import sys

from server import DRAFT, ROOT, TARGET, Server, parse_events


def seconds_of(pid):
    """Seconds of processor time of libmicrohttpd's thread, which it names, and of all others, of which the engine's alone computes."""
    times = [0, 0]
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, task)) as comm, open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            times[not comm.read().startswith("MHD")] += int(f.read().split()[0]) * 1e-9
    assert times[0] > 0, "this libmicrohttpd does not name its thread"
    return times


def ask(server, i, chat, tokens):
    body = {"max_tokens": tokens, "ignore_eos": True, "seed": i}
    body.update({"messages": [{"role": "user", "content": "Once upon a time"}]} if chat else {"prompt": "Once upon a time"})
    c, r = server.open_stream("/v1/chat/completions" if chat else "/v1/completions", body)
    events = len(parse_events(r.read()))
    c.close()
    return events


def measure(program, model, draft, clients, tokens, chat):
    """Seconds of an event: (of the thread of HTTP, of the engine's)."""
    with Server(program, *draft, "--batch", str(clients), model=model) as server:
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            list(pool.map(lambda i: ask(server, i, chat, tokens), range(clients)))
            before = seconds_of(server.process.pid)
            events = sum(pool.map(lambda i: ask(server, i, chat, tokens), range(4 * clients)))
            after = seconds_of(server.process.pid)
        m = server.metrics()
        steps = m['spec_round_seconds_total{phase="draft"}'] + m['spec_round_seconds_total{phase="verify"}']
        http, engine = ((b - a) / events for a, b in zip(before, after))
        print("%s, %s, %d clients: %d events; HTTP %.1f us an event, engine %.1f us an event (%.1f s in passes in all)" % (
            os.path.basename(model), "chat" if chat else "completions", clients, events, http * 1e6, engine * 1e6, steps), flush=True)
        return http, engine


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--clients", type=int, default=16)
    p.add_argument("--tokens", type=int, default=200)
    p.add_argument("--model")
    p.add_argument("--tiny")
    o = p.parse_args()
    program, model, tiny = (path and os.path.realpath(path) for path in (o.program, o.model, o.tiny))
    os.chdir(ROOT)
    draft = ("--draft", "none") if model else ("--draft", "model:model=%s,length=4" % DRAFT)
    for chat in (False, True):
        scheduling = measure(program, tiny, ("--draft", "none"), o.clients, o.tokens, chat)[1] if tiny else 0
        http, engine = measure(program, model or TARGET, draft, o.clients, o.tokens, chat)
        if tiny:
            print("%s: HTTP and at most %.1f us of scheduling are %.2f %% of an event" % (
                "chat" if chat else "completions", scheduling * 1e6, 100 * (http + scheduling) / (http + engine)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
