#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server of completions for the tests of `wager load`, with known delays and known faults: server.py, which prints its port and
ends with its standard input, or server.py PORT [key=value ...], with defaults for what prompts do not say.

What it does is written in the request's prompt, as words key=value: first=MS until the first event, gap=MS between events,
events=N, tokens=K of each, say=ids|n|usage|no (how events say their tokens), think=N as=NAME (of a chat: the first N events are
reasoning, under that name), and fault=NAME, one of FAULTS. The speculation of a
request is made up: two drafts of four tokens a pass, three accepted."""
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = """drop reset none-at-all 429 503 500 line junk json list silent error endless nodone nothing late-role half"""
lock = threading.Lock()
counted = {"drafts": 0, "tokens": 0, "accepted": 0}
connections = set()
busy = most = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, text, kind="application/json"):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/health":
            self.answer(200, '{"status":"ok"}')
        elif self.path == "/v1/models":
            self.answer(200, '{"object":"list","data":[{"id":"tiny","object":"model"}]}')
        elif self.path == "/metrics":
            n, d = counted["tokens"], counted["drafts"]
            self.answer(200, f'# HELP x y\nvllm:spec_decode_num_drafts_total{{engine="0"}} {d}.0\n'
                             f'vllm:spec_decode_num_draft_tokens_total{{engine="0"}} {n}.0\n'
                             f'vllm:spec_decode_num_accepted_tokens_total{{engine="0"}} {counted["accepted"]}.0\n'
                             f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="0"}} {2 * d}\n'
                             f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="1"}} {d}\n', "text/plain")
        elif self.path == "/seen":
            self.answer(200, json.dumps({"most": most, "connections": len(connections)}))
        else:
            self.answer(404, '{"error":{"message":"no such path"}}')

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, o):
        self.chunk("data: " + (o if isinstance(o, str) else json.dumps(o)) + "\n\n")

    def do_POST(self):
        global busy, most
        with lock:
            busy += 1
            most = max(most, busy)
            connections.add(self.client_address)
        try:
            self.serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with lock:
                busy -= 1

    def serve(self, q):
        chat = "messages" in q
        prompt = q["messages"][0]["content"] if chat else q["prompt"]
        want = dict(defaults, **dict(w.split("=", 1) for w in prompt.split() if "=" in w))
        fault = want.get("fault", "")
        assert not fault or fault in FAULTS.split(), fault
        if fault in ("429", "503", "500"):
            self.answer(int(fault), '{"error":{"message":"not now","type":"rate_limit_error"}}')
            return
        if fault == "none-at-all":
            self.close_connection = True
            return
        self.events, self.tokens = int(want.get("events", 4)), int(want.get("tokens", 1))
        if not q.get("stream"):
            time.sleep(float(want.get("first", 0)) / 1e3)
            n = self.events * self.tokens
            self.answer(200, json.dumps({"choices": [{"index": 0, "text": "w" * n, "finish_reason": "length"}],
                                         "usage": {"prompt_tokens": len(prompt.split()), "completion_tokens": n}}))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.stream(chat, len(prompt.split()), want, fault)

    def piece(self, chat, i, want):
        say, text = want.get("say", "n"), f"t{i} " * self.tokens
        choice = {"index": 0, "finish_reason": None}
        member = want["as"] if i < int(want.get("think", 0)) else "content"
        choice.update({"delta": {member: text}} if chat else {"text": text})
        o = {"choices": [choice]}
        if say == "ids":
            choice["token_ids"] = list(range(self.tokens))
        elif say == "n":
            o["n_tokens"] = self.tokens
        elif say == "usage":
            o["usage"] = {"prompt_tokens": 1, "completion_tokens": (i + 1) * self.tokens}
        return o

    def stream(self, chat, prompt_tokens, want, fault):
        if chat or fault == "late-role":
            self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        self.chunk(": a comment\n\n")
        time.sleep(float(want.get("first", 0)) / 1e3)
        for i in range(self.events if fault != "nothing" else 0):
            if i:
                time.sleep(float(want.get("gap", 0)) / 1e3)
            self.event(self.piece(chat, i, want))
            if i == 1 and fault and self.broken(fault):
                return
        choice = {"index": 0, "finish_reason": "length"}
        choice.update({"delta": {}} if chat else {"text": ""})
        self.event({"choices": [choice]})
        n = self.events * self.tokens
        if fault != "nothing":
            with lock:
                counted["drafts"] += self.events
                counted["tokens"] += 4 * self.events
                counted["accepted"] += 3 * self.events
        self.event({"choices": [], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": n},
                    "timings": {"draft_n": 4 * self.events, "draft_n_accepted": 3 * self.events,
                                "draft_n_verif_steps": self.events}})
        if fault != "nodone":
            self.event("[DONE]")
        self.chunk("")

    def broken(self, fault):
        """In the middle of the stream; True: nothing follows."""
        if fault in ("drop", "reset", "half"):
            if fault == "half":
                self.chunk('data: {"choices": [{"index"')
            if fault == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
            self.connection.close() if fault == "reset" else self.connection.shutdown(socket.SHUT_RDWR)
        elif fault == "line":
            self.event("x" * 3_000_000)
        elif fault == "junk":
            self.chunk("<html>not a stream</html>\n\n")
        elif fault == "json":
            self.event('{"choices": [')
        elif fault == "list":
            self.event("[1, 2]")
        elif fault == "error":
            self.event({"error": {"message": "out of pages", "type": "server_error"}})
        elif fault == "silent":
            self.chunk("")
        elif fault == "endless":
            time.sleep(5)
        else:
            return False
        return True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    handle_error = lambda self, request, address: None
    request_queue_size = 256


defaults = dict(w.split("=", 1) for w in sys.argv[2:])
server = Server(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 0), Handler)
print(server.server_address[1], flush=True)
if not sys.argv[1:]:
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
server.serve_forever()
