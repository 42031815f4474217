#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wager serve under wager load, with the bundled pair: serving.py WAGER.

Sampled requests with seeds have the same answers one at a time and all at once, without speculation, with a draft model and with
adaptive lengths, in every way of batching; and where more comes than the queue takes, the rest is turned away and nothing is
lost."""
import os
import socket
import subprocess
import sys

from checks import check, end, numbers

wager = os.path.realpath(sys.argv[1])
if not os.path.exists(os.path.join(os.path.dirname(wager), "wager-serve")):
    print("SKIPPED: there is no wager-serve beside", wager)
    sys.exit(77)
target, draft, prompts = "models/story-target-q8_0.gguf", "models/story-draft-q8_0.gguf", "configs/prompts/quickstart.jsonl"


def load(server, *tests):
    """The numbers of each test, against one server."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([wager, "serve", target, "--port", port, *server], **quiet) as p:
        try:
            out = [numbers(wager, "http://127.0.0.1:" + port, prompts, "--ready", "60", "-n", "24", *flags.split()) for flags in tests]
        except SystemExit:
            p.kill()
            raise
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
end("serving")
