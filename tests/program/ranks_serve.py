#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wager serve on ranks, threads and processes: the answers of one rank, byte by byte, and no process is left behind.
usage: ranks_serve.py WAGER. Exit 77 where there is no wager-serve; without MPI only threads are tested."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request

program = os.path.realpath(sys.argv[1])
folder = os.path.dirname(program)
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
model, draft = (os.path.join(root, f"models/story-{part}-q8_0.gguf") for part in ("target", "draft"))
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_MCA_btl="self,vader,tcp")


def answers(before, *after):
    """Texts and counts of several requests to a server, which is ended by SIGTERM."""
    words = [*before, program, "serve", model, "--draft", f"model:model={draft},length=3", "--port", "0", "--threads", "1", *after]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = re.search(r"listening at http://[^:]+:(\d+)", server.stdout.readline())
    if not found:
        server.kill()
        sys.exit(f"FAIL: {words}: no server: {server.communicate()[1]}")
    got = []
    for prompt, temperature in (("Once upon a time", 0), ("The dog was", 1), ("Lily had a", 0.5)):
        body = {"prompt": prompt, "max_tokens": 24, "temperature": temperature, "seed": 7, "n": 2}
        request = urllib.request.Request(f"http://127.0.0.1:{found[1]}/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as r:
            answer = json.load(r)
        got.append(([c["text"] for c in answer["choices"]], answer["usage"]))
    server.send_signal(signal.SIGTERM)
    try:
        server.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        server.kill()
        sys.exit(f"FAIL: {words} does not end")
    return got


if not os.path.exists(os.path.join(folder, "wager-serve")):
    print("skipped: no wager-serve")
    sys.exit(77)
want = answers([])
if answers([], "--ranks", "threads:2") != want:
    sys.exit("FAIL: two threads give other answers")
if shutil.which("mpirun") and os.path.exists(os.path.join(folder, "libwager-mpi.so")):
    if subprocess.run(["mpirun", "-n", "2", "true"], capture_output=True).returncode == 0:
        if answers(["mpirun", "--oversubscribe", "-n", "2"]) != want:
            sys.exit("FAIL: two processes give other answers")
        alone = subprocess.run([os.path.join(folder, "wager-serve"), model, "--ranks", "mpi"], capture_output=True, text=True, timeout=60,
                               env=dict(os.environ, OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="1"))
        words = "ranks mpi: rank 1 would decide, too; expected `wager serve` on all ranks, of which rank 0 starts wager-serve, or --ranks mpi"
        if alone.returncode == 0 or words not in alone.stderr:
            sys.exit(f"FAIL: rank 1 that decides: {alone.stderr}")
        lost = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", program, "serve", "none.gguf"], capture_output=True, text=True,
                              timeout=60)
        if lost.returncode == 0 or "none.gguf" not in lost.stderr:
            sys.exit(f"FAIL: a model that is not there: {lost.stderr}")
print("ok")
