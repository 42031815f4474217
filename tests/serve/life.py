#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The start and the end of the server: its command line, draining, and kill -9.

usage: tests/serve/life.py WAGER WAGER_SERVE [TEST...]      the tests are the functions test_*; standard library only"""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from cases import SERVE, STORY, WAGER, error_of, joined, pair, run, text_of
from server import DRAFT, ENDLESS, TARGET, Server, parse_events


def test_drain():
    with pair("--batch", "4", "--shutdown-timeout", "600") as s:
        body = {"prompt": STORY, "max_tokens": 100, "seed": 1, "ignore_eos": True}
        streams = [s.open_stream("/v1/completions", body)]
        endless, unread = s.open_stream("/v1/completions", ENDLESS)  # so that there is something to shut down for as long as we look
        streams += [s.open_stream("/v1/completions", body) for _ in range(5)]
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(s.complete(**body)))
        waiting.start()
        s.wait_for(lambda m: m["num_requests_waiting"] + m["num_requests_running"] == ENDLESS["n"] + 7 and m["http_connections"] == 9)
        s.process.send_signal(signal.SIGTERM)
        code = 200
        while code == 200:
            code, _, body = s.call("GET", "/health")
        assert code == 503 and error_of(json.loads(body))["type"] == "unavailable_error"
        assert s.call("GET", "/live")[0] == 200
        assert error_of(s.complete(STORY, 503))
        unread.close(), endless.close()
        texts = set()
        for c, r in streams:
            events = parse_events(r.read())
            assert events[-1] == "[DONE]"
            texts.add(joined([json.loads(e) for e in events[:-1]]))
            c.close()
        waiting.join()
        assert texts == {text_of(answers[0])} and answers[0]["usage"]["completion_tokens"] == 100
        s.end()


def test_drain_has_an_end():
    with Server(SERVE, "--batch", "1", "--shutdown-timeout", "0.2") as s:
        streams = [s.open_stream("/v1/completions", ENDLESS) for _ in range(2)]
        s.process.send_signal(signal.SIGTERM)
        for c, r in streams:
            events = parse_events(r.read())
            assert events[-1] == "[DONE]"
            assert "abort" in {x["finish_reason"] for e in events[:-1] for x in json.loads(e)["choices"]}
            c.close()
        s.end()


def test_kill():
    """kill -9 in the middle of streams leaves nothing to repair: a server on the same port, at once, gives the same answers."""
    bodies = [{"prompt": p, "max_tokens": 60, "seed": i} for i, p in enumerate(("Once upon a time", "The dog", "Lily had a"))]
    with tempfile.TemporaryDirectory() as folder:
        with pair(cwd=folder) as s:
            answers = [text_of(s.complete(**b)) for b in bodies]
            streams = [s.open_stream("/v1/completions", dict(ENDLESS, seed=i)) for i in range(2)]
            begun = b""  # of the first one; the second one waits
            while b"data: " not in begun:
                begun += streams[0][1].read1()
            s.kill()
            for c, r in streams:
                try:
                    r.read()
                except (http.client.IncompleteRead, ConnectionResetError):
                    c.close()
                else:
                    raise AssertionError("a stream that was cut off seems whole")
        with pair("--port", str(s.port), cwd=folder) as again:
            assert again.port == s.port and [text_of(again.complete(**b)) for b in bodies] == answers
        assert not os.listdir(folder), os.listdir(folder)


def test_command():
    """wager serve is the program beside it; mistakes are told with what was expected."""
    cases = (([], 2, "no model is named"), ([DRAFT, "--prot", "1"], 2, "there is no option --prot (did you mean '--port'?)"), ([DRAFT, "--port"], 2, "--port needs a value"),
             ([DRAFT, "--port", "70000"], 2, "--port 70000: expected a whole number from 0 to 65535"), (["-m", DRAFT, "other.gguf"], 2, "a second model: other.gguf"),
             ([DRAFT, "--mode", "fast"], 2, "expected one of: continuous, dynamic, static"), ([DRAFT, "-d", DRAFT, "--draft", "none"], 2, "give one"),
             ([DRAFT, "--speculation", "adaptiv"], 2, "expected one of: fixed, off, adaptive (did you mean 'adaptive'?)"), (["-m", "/nowhere.gguf"], 1, "/nowhere.gguf"),
             ([DRAFT, "--no-page=1"], 2, "takes no value"), ([DRAFT, "--api-key", ""], 2, "--api-key is empty"),
             ([DRAFT, "--name", ""], 2, "--name is empty: expected NAME"), ([DRAFT, "--cors", ""], 2, "--cors is empty: expected ORIGIN"),
             ([DRAFT, "--cors", "example.org"], 2, "--cors example.org: expected the origin of pages"), ([DRAFT, "--cors", "http://a/b"], 2, "--cors http://a/b: expected"),
             ([DRAFT, "--metrics-prefix", "a b"], 2, "--metrics-prefix a b: expected letters"), ([DRAFT, "--metrics-prefix", "1a"], 2, "--metrics-prefix 1a: expected letters"),
             ([DRAFT, "--api-key-file", "/nowhere"], 1, "--api-key-file /nowhere: cannot open: No such file"),
             ([DRAFT, "--api-key-file", "/dev/null"], 1, "--api-key-file /dev/null: the file is empty; expected a key"),
             ([DRAFT, "--api-key-file", "/"], 1, "--api-key-file /: cannot read a line: Is a directory"),
             ([DRAFT, "-d", "/nowhere.gguf"], 1, "wager serve: -d /nowhere.gguf: there is no such file"),
             ([DRAFT, "--draft", "auto:of=ngram", "--profile=/nowhere.json"], 1, "wager serve: --profile /nowhere.json: there is no such file"), (["/nowhere.gguf"], 1, "/nowhere.gguf"),
             ([DRAFT, "--chat", "chatml"], 1, "chatml needs the token <|im_start|>"), ([DRAFT, "--draft", "ngram:k"], 1, "--draft ngram:k: expected NAME"),
             ([DRAFT, "--draft", "ngrm"], 1, 'wager serve: --draft ngrm: unknown drafter "ngrm"; expected one of: none'), ([DRAFT, "--rule", "mach"], 1, "wager serve: --rule mach: unknown verification rule"),
             ([DRAFT, "--device", "gpu"], 1, 'wager serve: --device gpu: "gpu" is unknown'), ([DRAFT + "x"], 1, f"wager serve: -m {DRAFT}x: {DRAFT}x: there is no such file (did you mean '{DRAFT}'?)"),
             ([DRAFT, "--rule", "lenience:factor=x"], 1, "wager serve: --rule lenience:factor=x: factor: expected number"), ([DRAFT, "--draft", "auto"], 1, "such as auto:of=suffix"),
             (["--config", "/nowhere.json"], 1, "wager serve: --config /nowhere.json: unable to open"),
             ([DRAFT, "--profile", "nominl"], 1, "profile nominl: expected nominal, new, or a file"),
             ([DRAFT, "--host", "no.such.host.invalid", "--port", "0"], 1, "expected an address of this machine"))
    for options, status, words in cases:
        done = subprocess.run([WAGER, "serve", *options], capture_output=True, text=True)
        assert done.returncode == status and words in done.stderr, (options, done.returncode, done.stderr)
    for option in "--help", "--version":
        with open("/dev/full", "w") as full:
            done = subprocess.run([SERVE, option], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "standard output cannot be written" in done.stderr, done
        done = subprocess.run(["sh", "-c", '"$0" "$1" >&-', SERVE, option], capture_output=True, text=True)
        assert done.returncode == 1 and "standard output cannot be written" in done.stderr, done
    help_text = subprocess.run([WAGER, "serve", "--help"], capture_output=True, text=True)
    assert help_text.returncode == 0 and "--shutdown-timeout S" in help_text.stdout
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = subprocess.run([SERVE, DRAFT, "--port", str(taken.getsockname()[1])], capture_output=True, text=True)
        assert done.returncode == 1 and "cannot listen" in done.stderr
    with tempfile.TemporaryDirectory() as t:
        with open(os.path.join(t, "c.json"), "w") as f:
            json.dump({"target": {"model": TARGET}, "draft": {"kind": "ngram", "k": 4}, "verify": {"rule": "coupled"}, "batch": 3}, f)
        with Server(SERVE, "-d", DRAFT, "--config", f.name) as s:
            assert s.get("/props")["speculation"]["drafter"] == "auto (model)", "options win over the config"
        with Server(SERVE, "--draft", f"auto:of=model:model={DRAFT};length=4", "--rule", "rejection", "--profile", "configs/profiles/story.json",
                    model=TARGET) as s:
            profile = s.get("/props")["speculation"]["profile"]
            assert len(profile) == 64 and f'profile="{profile}"' in s.call("GET", "/metrics")[2].decode(), profile
        with Server(SERVE, "--config", f.name, model=TARGET) as s:
            assert s.get("/props")["speculation"]["profile"] == "", "a drafter of one length asks for no prices"
            props = s.get("/props")
            assert props["total_slots"] == 3 and props["speculation"]["drafter"] == "ngram" and props["speculation"]["rule"] == "coupled"
        alone = os.path.join(t, "wager")
        os.link(WAGER, alone) if os.stat(WAGER).st_dev == os.stat(t).st_dev else subprocess.run(["cp", WAGER, alone], check=True)
        done = subprocess.run([alone, "serve", DRAFT], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
        assert done.returncode == 1 and "libmicrohttpd-dev" in done.stderr, done


if __name__ == "__main__":
    sys.exit(run(globals()))
