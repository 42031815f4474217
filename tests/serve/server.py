# SPDX-License-Identifier: MIT
"""Starts wager-serve on a free port and speaks HTTP with it; standard library only."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.path.join(ROOT, "models/story-target-q8_0.gguf")
DRAFT = os.path.join(ROOT, "models/story-draft-q8_0.gguf")

# Seconds after which what has not happened will not: far more than a slow machine or a sanitizer takes. No test is about them.
PATIENCE = 240

JSON = {"Content-Type": "application/json"}  # of bodies

# The most answers of a request (WGS_CHOICES), each as long as the context of the bundled models allows: work of half a minute and more,
# so a request of this kind has not ended when a test looks at it, however late it comes. Who sends it leaves before its end.
ENDLESS = {"prompt": "Once upon a time", "max_tokens": 480, "n": 128, "ignore_eos": True, "seed": 1}


class Server:
    """A running server; `with` ends it and checks that it ends well."""

    def __init__(self, program, *options, model=TARGET, threads=1, cwd=None):
        self.command = [program, model, "--port", "0", "--threads", str(threads), *options]
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)
        line = self.process.stdout.readline()
        found = re.search(r"listening at http://([^:]+|\[.*\]):(\d+)$", line)
        if not found:
            raise AssertionError("no server: %s%s" % (line, self.process.communicate()[1]))
        self.port = int(found[2])
        self.log, self.killed = None, False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.killed:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.end(check=kind is None)

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.communicate()

    def end(self, check=True, seconds=PATIENCE):
        try:
            _, self.log = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError("the server does not end")
        if check:
            assert self.process.returncode == 0, "the server ended with %d:\n%s" % (self.process.returncode, self.log)

    def connect(self, timeout=PATIENCE):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(self, method, path, body=None, headers=None, timeout=PATIENCE):
        """(status, headers, bytes) of one request on a connection of its own."""
        c = self.connect(timeout)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        headers = headers or {}
        typed = body is None or "content-type" in (name.lower() for name in headers)
        c.request(method, path, body, headers if typed else {**JSON, **headers})
        r = c.getresponse()
        out = r.status, r.headers, r.read()
        c.close()
        return out

    def get(self, path, status=200):
        code, _, body = self.call("GET", path)
        assert code == status, (path, code, body)
        return json.loads(body)

    def post(self, path, body, status=200, headers=None):
        code, _, answer = self.call("POST", path, body, headers)
        assert code == status, (path, body, code, answer)
        return json.loads(answer)

    def complete(self, prompt, status=200, **fields):
        return self.post("/v1/completions", dict(fields, prompt=prompt), status)

    def chat(self, text, status=200, **fields):
        return self.post("/v1/chat/completions", dict(fields, messages=[{"role": "user", "content": text}]), status)

    def open_stream(self, path, body, headers=None):
        c = self.connect()
        c.request("POST", path, json.dumps(dict(body, stream=True)), {**JSON, **(headers or {})})
        r = c.getresponse()
        assert r.status == 200, (r.status, r.read())
        assert r.headers["Content-Type"] == "text/event-stream"
        return c, r

    def stream(self, path, body):
        """All events as objects; the last one must be [DONE]."""
        c, r = self.open_stream(path, body)
        events = parse_events(r.read())
        c.close()
        assert events and events[-1] == "[DONE]", events[-1:]
        return [json.loads(e) for e in events[:-1]]

    def metrics(self):
        """{name with labels: value}, without the prefix."""
        code, headers, body = self.call("GET", "/metrics")
        assert code == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = [line for line in body.decode().split("\n") if line and line[0] != "#"]
        return {line.rsplit(" ", 1)[0].split(":", 1)[1]: float(line.rsplit(" ", 1)[1]) for line in lines}

    def wait_for(self, what, seconds=PATIENCE):
        """Until what(metrics) holds."""
        end = time.time() + seconds
        while True:
            m = self.metrics()
            if what(m):
                return m
            assert time.time() < end, {k: m[k] for k in ("num_requests_running", "num_requests_waiting", "kv_pages_used",
                                                         "http_connections", "clients_gone_total")}
            time.sleep(0.02)

    def wait_idle(self):
        return self.wait_for(lambda m: m["num_requests_running"] == 0 and m["num_requests_waiting"] == 0 and m["kv_pages_used"] == 0)

    def frozen(self):
        """In a `with`: the server stands still, and finds afterwards all at once what clients did meanwhile."""
        return Frozen(self.process.pid)

    def socket(self, data=b""):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        s.sendall(data)
        return s

    def raw(self, data, seconds=PATIENCE):
        """What comes back for these bytes, until the server closes or says nothing for a while."""
        with self.socket(data) as s:
            s.settimeout(seconds)
            out = b""
            try:
                while piece := s.recv(65536):
                    out += piece
            except (socket.timeout, ConnectionResetError):
                pass
            return out

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def resident(self):
        """KiB of resident memory."""
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


class Frozen:
    """A process that is stopped for a while."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        while not self.stopped():
            time.sleep(0.001)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)

    def stopped(self):
        """All threads are: a signal reaches them one by one."""
        def state(task):
            with open("/proc/%d/task/%s/stat" % (self.pid, task)) as f:
                return f.read().rsplit(")", 1)[1].split()[0]
        return all(state(task) == "T" for task in os.listdir("/proc/%d/task" % self.pid))


def parse_events(body):
    """The data of server-sent events; comments are left out."""
    events = []
    for block in body.decode().split("\n\n"):
        if block and not block.startswith(":"):
            assert block.startswith("data: ") and "\n" not in block, repr(block)
            events.append(block[6:])
    return events


def request_bytes(path, body, extra=""):
    data = json.dumps(body).encode()
    return ("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n" % (path, len(data), extra)).encode() + data
