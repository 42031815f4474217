#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What goes wrong among ranks that are processes: one that is stopped, killed, late, of another version, or whose disk is full.
Each is a named error within seconds, leaves no process and no half line, and `run --resume` goes on to the texts of an
undisturbed run. usage: ranks_life.py WAGER [whole]. Exit 77 where mpirun starts no two processes or there is no module of MPI."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

program, whole = os.path.realpath(sys.argv[1]), "whole" in sys.argv[2:]
WITHIN = 5  # seconds until an error is said
ENDED = 20  # until mpirun has ended all processes after that, on a machine that does other work, too
REQUESTS = 40
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_MCA_btl="self,vader,tcp")


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def check(good, what):
    if not good:
        raise AssertionError(what)


class Ranks:
    """mpirun in the background. `lines`: what it said on stderr, each with the time; `pid` by rank."""

    def __init__(self, *words):
        self.lines, self.out = [], ""
        self.process = subprocess.Popen(["mpirun", "--oversubscribe", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.readers = [threading.Thread(target=self.read_errors), threading.Thread(target=self.read_output)]
        for reader in self.readers:
            reader.start()

    def read_errors(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line))

    def read_output(self):
        for line in self.process.stdout:
            self.out += line

    def said(self):
        return "".join(line for _, line in self.lines)

    def pids(self):
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    parent = int(f.read().rsplit(")", 1)[1].split()[1])
                with open(f"/proc/{pid}/environ", "rb") as f:
                    rank = re.search(rb"(?:^|\0)OMPI_COMM_WORLD_RANK=(\d+)", f.read())
            except OSError:
                continue
            if parent == self.process.pid and rank:
                found[int(rank[1])] = int(pid)
        return found

    def when_said(self, words, since, within):
        """Waits until stderr has the words; the seconds since then."""
        while time.monotonic() < since + within + 10:
            for at, line in self.lines:
                if words in line:
                    check(at - since < within, f"said only after {at - since:.1f} s: {line}")
                    return
            time.sleep(0.02)
        self.process.kill()
        check(False, f"expected '{words}', got: {self.said()}")

    def end(self, within):
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            check(False, f"no end within {within} s: {self.said()}")
        for reader in self.readers:
            reader.join()
        return self.process.returncode


def ended(path):
    """Ids of the whole lines of a file of requests; a half line is an error unless it is the last."""
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        lines = f.read().split("\n")
    return {(r["id"], r.get("arm"), r.get("cell")): r["output_sha256"] for r in map(json.loads, lines[:-1]) if "output_sha256" in r}


def run_ranks(*more):
    return Ranks("-n", "2", program, "run", "config.json", "--ranks", "mpi", "--out", "of2", *more)


def broken_run(what, disturb, words, resume, within=WITHIN):
    """A run on two ranks that is disturbed after some requests: says the words and ends; what had ended is whole. within: seconds
    until the words, longer where mpirun says them, or wager after some more requests."""
    before = len(ended("of2/requests.jsonl"))
    ranks, pids = run_ranks(*(["--resume"] if resume else [])), {}
    while sorted(pids) != [0, 1]:
        check(ranks.process.poll() is None, f"{what}: ended early: {ranks.said()}")
        pids = ranks.pids()
    while len(ended("of2/requests.jsonl")) < before + 3:
        check(ranks.process.poll() is None, f"{what}: ended early: {ranks.said()}")
        time.sleep(0.01)
    since = time.monotonic()
    disturb(pids)
    ranks.when_said(words, since, within)
    check(ranks.end(ENDED) != 0, f"{what}: a status of success")
    since = time.monotonic()
    while left := [p for p in pids.values() if os.path.exists(f"/proc/{p}")]:
        check(time.monotonic() - since < ENDED, f"{what}: processes {left} are left")
        time.sleep(0.05)
    check(len(ended("of2/requests.jsonl")) < REQUESTS, f"{what}: the run was too short for this test")


def disturbed():
    with open("prompts.jsonl", "w") as f:
        for i in range(REQUESTS):
            f.write(json.dumps({"id": i, "prompt": f"The {i} cats sat. The {i} cats"}) + "\n")
    with open("config.json", "w") as f:
        json.dump({"name": "life", "target": {"model": "f32.gguf", "threads": 1}, "draft": {"kind": "ngram"}, "max_tokens": 24,
                   "prompts": {"file": "prompts.jsonl"}, "sampling": {"temperature": 1}}, f)
    one = subprocess.run([program, "run", "config.json", "--out", "one"], capture_output=True, text=True)
    check(one.returncode == 0, one.stderr)
    want = ended("one/requests.jsonl")
    check(len(want) == REQUESTS or len(want) == 2 * REQUESTS, f"{len(want)} requests on one rank")

    broken_run("killed", lambda pids: os.kill(pids[1], signal.SIGKILL), "rank 1", False, ENDED)
    broken_run("stopped", lambda pids: os.kill(pids[1], signal.SIGSTOP), "rank 0 of 2: rank 1 has sent no heartbeat", True)
    if whole:
        broken_run("rank 0 stopped", lambda pids: os.kill(pids[0], signal.SIGSTOP), "rank 1 of 2: rank 0 has sent no heartbeat", True)
    size = os.path.getsize("of2/requests.jsonl") + 1500
    broken_run("full disk", lambda pids: resource.prlimit(pids[0], resource.RLIMIT_FSIZE, (size, size)), "requests.jsonl", True, ENDED)
    last = run_ranks("--resume")
    check(last.end(300) == 0, f"the last resumed run: {last.said()}")
    check(ended("of2/requests.jsonl") == want, "the resumed run has other texts than one rank")


def digest(text):
    return re.findall(r'"output_sha256":"[0-9a-f]*"', text)


def late():
    words = [program, "generate", "-m", "f32.gguf", "-p", "x", "-n", "8", "--json"]
    want = digest(subprocess.run(words, capture_output=True, text=True).stdout)
    ranks = Ranks("-n", "1", *words, ":", "-n", "1", "sh", "-c", 'sleep 6; exec "$0" "$@"', *words)
    check(ranks.end(120) == 0, f"a late rank: {ranks.said()}")
    check(want and digest(ranks.out) == want, f"a late rank: other digests: {ranks.out}")
    check("rank 0 of 2 waits for ranks that have not started" in ranks.said(), f"a late rank: {ranks.said()}")
    check("rank 1 of 2 waits" not in ranks.said(), "the late rank waits for itself")


def other_version():
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[-1]
    with open(program, "rb") as f:
        text = f.read()
    other = bytes([b ^ 1 for b in version.encode()[-1:]])
    with open("other", "wb") as f:
        f.write(text.replace(version.encode() + b"\0", version.encode()[:-1] + other + b"\0"))
    os.chmod("other", 0o755)
    shutil.copy(os.path.join(os.path.dirname(program), "libwager-mpi.so"), ".")
    words = ["generate", "-m", "f32.gguf", "-p", "x"]
    ranks = Ranks("-n", "1", program, *words, ":", "-n", "1", "./other", *words)
    check(ranks.end(60) != 0 and "rank 1 has another version of wager" in ranks.said(), f"another version: {ranks.said()}")


def stopped_at_the_end():
    """A rank that is stopped just before rank 0 ends, which waits for it then."""
    ranks = Ranks("-n", "2", program, "serve", "f32.gguf", "--port", "0", "--threads", "1")
    while "listening at" not in ranks.out:
        check(ranks.process.poll() is None, f"a server: {ranks.said()}")
        time.sleep(0.05)
    pids = ranks.pids()
    since = time.monotonic()
    os.kill(pids[1], signal.SIGSTOP)
    os.kill(pids[0], signal.SIGTERM)
    ranks.when_said("rank 0 of 2: rank 1 has sent no heartbeat", since, WITHIN)
    check(ranks.end(ENDED) != 0, "a server whose rank was stopped: a status of success")


def full_output():
    words = ["logits", "f32.gguf", "--tokens", "1,2", "--out", "/dev/full"]
    ranks = Ranks("-n", "2", program, *words)
    check(ranks.end(60) != 0 and "/dev/full: cannot write" in ranks.said(), f"a full disk: {ranks.said()}")


if not shutil.which("mpirun") or not os.path.exists(os.path.join(os.path.dirname(program), "libwager-mpi.so")):
    skip("no mpirun, or built without MPI")
tried = subprocess.run(["timeout", "60", "mpirun", "-n", "2", "true"], capture_output=True, text=True)
if tried.returncode:
    skip(f"mpirun cannot start two processes here: {tried.stderr}")
with tempfile.TemporaryDirectory(prefix="wager-life.") as folder:
    os.chdir(folder)
    subprocess.run([program, "synth", "--like", "tiny", "--type", "f32", "--seed", "1", "--out", "f32.gguf"], check=True,
                   stdout=subprocess.DEVNULL)
    waits = threading.Thread(target=late)
    late_error = []
    threading.excepthook = lambda e: late_error.append(e.exc_value)
    waits.start()
    disturbed()
    if os.path.exists(os.path.join(os.path.dirname(program), "wager-serve")):
        stopped_at_the_end()
    other_version()
    full_output()
    waits.join()
    check(not late_error, late_error)
    os.chdir("/")
print("ok")
