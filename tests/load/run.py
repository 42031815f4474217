#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wager load against a server whose delays and faults are known (server.py): run.py WAGER.

Delays are sleeps, so a measured latency is at least the known one; how much more is this machine's, and bounded loosely. Exact
percentiles are tested on made records (test_load_metrics)."""
import json
import os
import subprocess
import sys
import tempfile
import urllib.request

from checks import check, end, numbers

wager, here = os.path.realpath(sys.argv[1]), os.path.dirname(os.path.realpath(__file__))
folder = tempfile.mkdtemp(prefix="wager load ")
server = subprocess.Popen([sys.executable, os.path.join(here, "server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
url = f"http://127.0.0.1:{int(server.stdout.readline())}"


def load(prompts, *flags, status=0):
    path = os.path.join(folder, "prompts.jsonl")
    with open(path, "w") as f:
        f.writelines(json.dumps({"prompt": p}) + "\n" for p in prompts)
    return numbers(wager, url, path, *flags, status=status)


def at_least(name, value, known, slack, early=0):
    """early: what a gap may be shorter, because the event before it was read late."""
    check(name, value is not None and known - early - 1e-3 <= value <= known + slack, value, "expected", known - early, "to",
          known + slack)


def delays():
    """The i-th request waits 20 i ms for its first event: percentiles of TTFT are those of 20, 40 .. 200 ms."""
    m = load([f"first={20 * i} gap=10 events=4 tokens=3 say=ids" for i in range(1, 11)], "-c", "10", "--requests", "10",
             "--warmups", "3", "--percentiles", "50,90", "--detailed")
    at_least("median TTFT", m["median_ttft_ms"], 110, 60)
    at_least("p90 TTFT", m["p90_ttft_ms"], 182, 60)
    at_least("mean ITL", m["mean_itl_ms"], 10, 20, 5)
    at_least("mean ITL per token", m["mean_itl_per_token_ms"], 10 / 3, 7, 5 / 3)
    at_least("mean TPOT", m["mean_tpot_ms"], 30 / 11, 7, 15 / 11)
    at_least("mean E2EL", m["mean_e2el_ms"], 140, 90)
    for i in range(10):
        at_least(f"TTFT {i}", m["ttfts"][i] * 1e3, 20 * (i + 1), 100)
    check("counts", m["completed"] == 10 and m["failed"] == 0 and m["total_output_tokens"] == 120 and
          m["total_input_tokens"] == 50 and m["not_sent"] == 0 and m["output_lens"] == [12] * 10, m)
    check("events", m["tokens_per_event"] == 3 and m["event_tokens_known"] == 1 and m["itl_tokens"][0] == [3, 3, 3], m)
    check("text", m["generated_texts"][0] == "".join(f"t{i} " * 3 for i in range(4)), m["generated_texts"][0])
    check("speculation", m["spec_decode_num_drafts"] == 40 and m["spec_decode_acceptance_rate"] == 75 and
          m["spec_decode_acceptance_length"] == 4 and m["spec_decode_source"] == "metrics" and
          m["spec_decode_per_position_acceptance_rates"] == [2, 1], m)
    check("model", m["model_id"] == "tiny" and m["max_concurrency"] == 10 and m["request_rate"] == "inf")
    check("latency", m["latency_model"]["median_relative_error"] < 0.3, m["latency_model"])


def tokens_of_events():
    same = None
    for say, known in (("ids", 1), ("n", 1), ("usage", 1), ("no", 0)):
        for endpoint in ("completions", "chat"):
            m = load([f"events=3 tokens=2 say={say}"], "--requests", "3", "--endpoint", endpoint)
            check(f"{say} {endpoint}", m["total_output_tokens"] == 18 and m["event_tokens_known"] == known, m)
            same = same or m["output_sha256"]
            check(f"digest {say} {endpoint}", m["output_sha256"] == same)
    m = load(["first=30 events=3 tokens=2"], "--requests", "3", "--no-stream")
    check("no stream", m["completed"] == 3 and m["mean_tpot_ms"] is None and m["total_output_tokens"] == 18, m)
    at_least("no stream", m["mean_ttft_ms"], 30, 100)


def reasoning():
    """The first token of a model that reasons is one of its reasoning, whatever the member is called."""
    for name in ("reasoning_content", "reasoning"):
        m = load([f"first=20 gap=150 events=4 think=2 as={name} say=no"] * 2, "--requests", "2", "--warmups", "1", "--endpoint", "chat", "--detailed")
        at_least(name + " TTFT", m["mean_ttft_ms"], 20, 120)
        check(name, m["total_output_tokens"] == 8 and m["generated_texts"][0] == "t0 t1 t2 t3 ", m["total_output_tokens"], m["generated_texts"])


def faults():
    """Every fault is one kind of failure, and every request that is sent is counted once."""
    kinds = {"drop": "dropped", "reset": "dropped", "half": "dropped", "silent": "dropped", "none-at-all": "unreachable",
             "429": "rejected", "503": "rejected", "500": "status", "line": "too_long", "junk": "malformed",
             "json": "malformed", "list": "malformed", "error": "server_error", "endless": "timeout", "nothing": "empty", "nodone": None,
             "late-role": None}
    prompts = [f"gap=5 events=4 fault={f}" for f in kinds] + ["gap=5"]
    n = len(prompts)
    m = load(prompts, "-c", "6", "--requests", str(n), "--timeout", "1.5", "--line-limit", "1000000", "--detailed", status=1)
    for i, (fault, kind) in enumerate(kinds.items()):
        check(fault, m["outcomes"][i] == (kind or "completed"), m["outcomes"][i], m["errors"][i])
        check(fault, (m["errors"][i] == "") == (kind is None), m["errors"][i])
    check("sum", m["completed"] == 3 and m["failed"] == n - 3 == sum(m["failed_by_kind"].values()), m["failed_by_kind"])
    first = m["first_errors"]
    check("first errors", first["server_error"] == "out of pages" and len(first) == 9, first)
    check("no [DONE]", m["without_done"] == 1, m["without_done"])
    check("only rejections", load(["fault=429", "gap=1"], "--requests", "4")["failed_by_kind"]["rejected"] == 2)


def loops():
    m = load(["gap=10"], "-c", "5", "--requests", "25")
    seen = json.load(urllib.request.urlopen(url + "/seen"))
    check("clients", m["max_concurrent_requests"] == 5 and m["connections"] <= 5, m)
    check("never more", seen["most"] <= 10, seen)
    m = load(["gap=1"], "-c", "3", "--requests", "9", "--one-connection-each")
    check("one connection each", m["connections"] == 9, m["connections"])
    m = load(["gap=1"], "-r", "100", "-c", "0", "--requests", "30", "--seed", "3", "--detailed", "--goodput",
             "ttft:5000,e2el:1e-3")
    check("open loop", m["duration"] >= 0.3 and m["completed"] == 30 and m["request_goodput"] == 0, m["duration"])
    check("late", m["late_ms"] < 100 and m["mean_client_queue_time_ms"] >= 0, m["late_ms"])
    with open(os.path.join(folder, "times"), "w") as f:
        f.write('0.05\n\n{"timestamp": 0.1}\n0.25\n')
    m = load(["gap=1"], "--arrivals", os.path.join(folder, "times"), "-c", "0", "--requests", "10", "--detailed")
    check("trace", m["completed"] == 3 and m["num_prompts"] == 3 and all(
        t <= s < t + 0.1 for s, t in zip(m["start_times"], (0.05, 0.1, 0.25))), m["start_times"])


def interrupted():
    """Ctrl-C: what is under way is cancelled, what was not sent is said."""
    path = os.path.join(folder, "long.jsonl")
    with open(path, "w") as f:
        f.write('{"prompt": "first=10 gap=20 events=10"}\n')
    p = subprocess.Popen([wager, "load", url, "-p", path, "--json", "-c", "2", "--requests", "1000"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    try:
        p.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        p.terminate()
    out, err = p.communicate()
    m = json.loads(out)
    check("interrupted", p.returncode == 130 and "interrupted after" in err, p.returncode, err)
    check("nothing lost", m["completed"] + m["failed"] + m["not_sent"] == 1000 and m["failed_by_kind"]["cancelled"] == 2, m)


def servers_that_are_none():
    """Messages where there is no server, or no model."""
    for where, flags, text in (("http://127.0.0.1:1", [], "http://127.0.0.1:1/v1/models: no answer: "),
                               ("http://127.0.0.1:1", ["--ready", "0.1"], "/health did not answer 200 within 0.1 s"),
                               (url + "/else", [], "/v1/models names no model (status 404); name it: --model")):
        r = subprocess.run([wager, "load", where, *flags], capture_output=True, text=True)
        check(where, r.returncode == 1 and text in r.stderr, r.returncode, r.stderr)


def sweep():
    """Two kinds of server, two settings of one, two loads, two repeats; stopped and resumed; and what a config may not say."""
    script = f"'{sys.executable}' '{os.path.join(here, 'server.py')}' {{port}}"
    config = {"name": "curve", "question": "Does <it> work?", "clients": [1, 4], "requests": 4, "repeats": 2,
              "warmups": 1, "requests_per_client": 2, "goal_ttft": 10000,
              "servers": [{"name": "made", "command": script + " {first} {gap}",
                           "vary": {"first": {"none": "first=0"}, "gap": {"slow": "gap=20", "fast": "gap=2"}}},
                          {"name": "plain", "command": script + " events=2"}]}
    path, out = os.path.join(folder, "sweep.json"), os.path.join(folder, "sweep")
    command = [wager, "load", "--sweep", path, "--out", out]

    def write(o):
        with open(path, "w") as f:
            json.dump(o, f, indent=1)

    def run(*more):
        return subprocess.run(command + list(more), capture_output=True, text=True)

    write(config)
    r = run()
    check("sweep", r.returncode == 0 and "report.html" in r.stdout, r.stderr)
    cells = {(c["server"], c["clients"], c["rate"]): c for c in json.load(open(os.path.join(out, "summary.json")))["cells"]}
    slow, fast = cells["made, none, slow", 4, None], cells["made, none, fast", 4, None]
    check("cells", len(cells) == 6 and all(c["failed"] == 0 and c["tests"] == 2 for c in cells.values()), cells.keys())
    check("requests", slow["completed"] == 16 and cells["plain", 1, None]["completed"] == 8, slow["completed"])
    check("better", fast["over_best_other"] > 1 > slow["over_best_other"] and slow["group"] == "made, none", slow)
    check("alone", cells["plain", 4, None]["over_best_other"] is None and slow["over_first_load"] > 1, slow)
    check("same answers", slow["output_sha256"] == fast["output_sha256"] != cells["plain", 4, None]["output_sha256"])
    page = open(os.path.join(out, "report.html")).read().split('id="data">')[1].split("<")[0]
    document = json.loads(page)
    check("page", document["kind"] == "load" and document["question"] == "Does <it> work?" and len(document["summary"]["cells"]) == 6, document)
    check("page's servers", [s["name"] for s in document["servers"]] == ["made, none, slow", "made, none, fast", "plain"], document["servers"])
    there = ": cannot make the folder: File exists; --resume goes on with one that is there"
    check("not twice", run().returncode == 1 and there in run().stderr)

    for name in os.listdir(os.path.join(here, "../../configs/load")):  # read without fault, and refused for the folder alone
        command[3] = os.path.join(here, "../../configs/load", name)
        check(name, "cannot make the folder" in run().stderr, run().stderr)
    command[3] = path
    lines = open(os.path.join(out, "points.jsonl")).read().split("\n")
    with open(os.path.join(out, "points.jsonl"), "w") as f:
        f.write("\n".join(lines[:9]) + "\n" + lines[9][:40])
    r = run("--resume")
    again = open(os.path.join(out, "points.jsonl")).read().split("\n")
    check("resumed", r.returncode == 0 and again[:9] == lines[:9] and len(again) == 13, len(again), r.stderr)
    write(dict(config, repeats=501, turns=2))
    check("too many", "501 repeats of 2 turns are more than 1000 tests of a server at a load" in run().stderr, run().stderr)
    write(dict(config, requests=5))
    check("another config", run("--resume").returncode == 2 and
          ": cannot be resumed: it is no folder of this config; choose another --out, without --resume" in run("--resume").stderr)

    command[-1] = os.path.join(folder, "turns")
    starts = os.path.join(folder, "starts")
    write(dict(config, turns=3, clients=[2], servers=config["servers"][:1] + [
        {"name": "plain", "command": f"sh -c \"echo >>'{starts}'; exec {script} events=2\""}]))
    r = run()
    check("started once a repeat", len(open(starts).read()) == 2)
    lines = [json.loads(line) for line in open(os.path.join(out[:-5] + "turns", "points.jsonl"))]
    done = [(p["repeat"], p["turn"], p["server"]) for p in lines]
    check("turns", r.returncode == 0 and len(set(done)) == 18 and [d[:2] for d in done] == sorted(d[:2] for d in done), done,
          r.stderr)
    check("another first", done[0][2] != done[3][2], done)
    cells = {c["server"]: c for c in json.load(open(os.path.join(out[:-5] + "turns", "summary.json")))["cells"]}
    slow = cells["made, none, slow"]
    low, high = slow["over_best_other_ci"]
    check("interval", slow["tests"] == 6 and low <= slow["over_best_other"] <= high < 1 and
          slow["best_other"] == "made, none, fast" and "over_best_other_ci" not in cells["plain"], slow)

    command[-1] = os.path.join(folder, "none")
    write(dict(config, servers=[{"name": "x", "command": "sh -c 'echo no model; exit 3' {port}"}]))
    r = run()
    ended = "the server 'sh -c 'echo no model; exit 3' {port}' has ended; its log "
    check("no server", r.returncode == 1 and ended in r.stderr and "no model" in r.stderr, r.stderr)
    command[-1] = os.path.join(folder, "never")
    write(dict(config, ready_seconds=0.5, servers=[{"name": "x", "command": "sleep 5 # {port}"}]))
    check("never ready", "was not ready in time" in run().stderr)
    command[-1] = os.path.join(folder, "it's")
    check("quote", "no free port, or a quote in the path" in run().stderr)


for part in (delays, tokens_of_events, reasoning, faults, loops, interrupted, servers_that_are_none, sweep):
    part()
server.stdin.close()
server.wait()
end("load")
