#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What HTTP costs: processor time of the server's threads for each event of streams, by the system's accounts (not by a clock, so other
programs do not count). usage: tests/serve/cost.py WAGER_SERVE [CLIENTS] [MODEL]; one thread computes, 16 clients when left out

The thread of HTTP reads requests, makes JSON and writes. The thread of the engine computes, too: with a tiny MODEL (wager synth --like
tiny) its time is an upper bound of what scheduling and events cost."""
import concurrent.futures
import os
import sys

from server import DRAFT, ROOT, TARGET, Server, parse_events


def seconds_of(pid):
    """{thread: seconds of processor time}; the first thread takes signals."""
    times = {}
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            times[int(task)] = int(f.read().split()[0]) * 1e-9
    return times


def ask(server, i, chat):
    body = {"max_tokens": 200, "ignore_eos": True, "seed": i}
    body.update({"messages": [{"role": "user", "content": "Once upon a time"}]} if chat else {"prompt": "Once upon a time"})
    c, r = server.open_stream("/v1/chat/completions" if chat else "/v1/completions", body)
    events = len(parse_events(r.read()))
    c.close()
    return events


def main():
    program, clients = os.path.realpath(sys.argv[1]), int((sys.argv[2:] or [16])[0])
    model = os.path.realpath(sys.argv[3]) if sys.argv[3:] else TARGET
    os.chdir(ROOT)
    draft = () if sys.argv[3:] else ("--draft", "model:model=%s,length=4" % DRAFT)
    for chat in (False, True):
        with Server(program, *draft, "--batch", str(clients), model=model) as server:
            with concurrent.futures.ThreadPoolExecutor(clients) as pool:
                list(pool.map(lambda i: ask(server, i, chat), range(clients)))
                before = seconds_of(server.process.pid)
                events = sum(pool.map(lambda i: ask(server, i, chat), range(4 * clients)))
                after = seconds_of(server.process.pid)
            spent = sorted(((after[t] - before.get(t, 0)), t) for t in after if t != server.process.pid)
            m = server.metrics()
            steps = m['spec_round_seconds_total{phase="draft"}'] + m['spec_round_seconds_total{phase="verify"}']
            print("%s, %d clients: %d events; HTTP %.1f us an event, engine %.1f us an event (%.1f s in passes in all)" % (
                "chat" if chat else "completions", clients, events, spent[-2][0] / events * 1e6, spent[-1][0] / events * 1e6, steps))
    return 0


if __name__ == "__main__":
    sys.exit(main())
