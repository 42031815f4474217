#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wager serve under wager load, with the bundled pair: serving.py WAGER.

Sampled requests with seeds have the same answers one at a time and all at once, without speculation, with a draft model and with
adaptive lengths, in every way of batching; and where more comes than the queue takes, the rest is turned away and nothing is
lost."""
import json
import os
import socket
import subprocess
import sys

wager = os.path.realpath(sys.argv[1])
if not os.path.exists(os.path.join(os.path.dirname(wager), "wager-serve")):
    print("SKIPPED: there is no wager-serve beside", wager)
    sys.exit(77)
target, draft, prompts = "models/story-target-q8_0.gguf", "models/story-draft-q8_0.gguf", "configs/prompts/quickstart.jsonl"
failed = 0


def check(name, good, *what):
    global failed
    if not good:
        failed += 1
        print("FAIL", name, *what)


def load(server, *tests):
    """The numbers of each test, against one server."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([wager, "serve", target, "--port", port, *server], **quiet) as p:
        out = []
        for flags in tests:
            r = subprocess.run([wager, "load", "http://127.0.0.1:" + port, "--ready", "60", "-p", prompts, "-n", "24", "--json",
                                *flags.split()], capture_output=True, text=True)
            if "libcurl" in r.stderr:
                p.kill()
                print("SKIPPED:", r.stderr.strip())
                sys.exit(77)
            check(flags, r.returncode == 0, server, r.stderr)
            out.append(json.loads(r.stdout))
        p.terminate()
        check("drained", p.wait(60) == 0, server, p.returncode)
    return out


sampled = "--requests 48 -t 0.8 --seed 7 -c "
model = "model:model=" + draft
plain, crowd = load(["--speculation", "off"], sampled + "1", sampled + "48")
digest = plain["output_sha256"]
check("all answered", plain["completed"] == crowd["completed"] == 48 and "spec_decode_num_drafts" not in plain)
check("alone or not", crowd["output_sha256"] == digest)
for server in (["--draft", model + ",length=3", "--mode", "static"], ["-d", draft, "--mode", "dynamic", "--batch", "5"],
               ["--draft", model + ",length=8", "--speculation", "adaptive", "--batch", "16"]):
    m, = load(server, sampled + "48")
    check("same answers", m["completed"] == 48 and m["output_sha256"] == digest, server, m["failed_by_kind"], m["first_errors"])
    check("drafts", "-d" in server or m.get("spec_decode_num_drafts", 0) > 0, server)  # -d: `auto`, which may find that none pays

m, = load(["-d", draft, "--batch", "2", "--queue", "4"], "--requests 200 -r 2000 -c 0")
rejected = m["failed_by_kind"]["rejected"]
check("overload", m["completed"] >= 6 and rejected > 0 and m["completed"] + rejected == 200, m["failed_by_kind"])
print("serving:", "failed" if failed else "passed")
sys.exit(failed > 0)
