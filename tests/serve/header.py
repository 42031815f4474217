#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the header of a request decides before its body is read: framing (RFC 9112), hosts, keys, types of bodies, limits; and what the
headers of answers tell browsers.

usage: tests/serve/header.py WAGER WAGER_SERVE [TEST...]      the tests are the functions test_*; standard library only"""
import json
import re
import sys
import time

from cases import SERVE, STORY, error_of, run
from server import DRAFT, JSON, Server

BODY = b'{"prompt": "a"}'
LINE, HOST, TYPE = b"POST /tokenize HTTP/1.1\r\n", b"Host: 127.0.0.1\r\n", b"Content-Type: application/json\r\n"
LENGTH, CHUNKED, CHUNKS = b"Content-Length: %d\r\n" % len(BODY), b"Transfer-Encoding: chunked\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
NEXT = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"  # behind the body, on the same connection


def answers(data):
    """[(status, headers, body)] of what a connection has sent."""
    out = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        assert re.match(r"HTTP/1\.1 \d{3} ", lines[0]), lines[0]
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}
        n = int(headers["content-length"])
        out.append((int(lines[0].split()[1]), headers, data[:n]))
        data = data[n:]
    return out


def refused(s, data, status, words, pages=False):
    """One answer, in JSON, and the connection is closed, although more has been sent. pages: libmicrohttpd may answer by its own."""
    start = time.monotonic()
    answer = s.raw(data + NEXT, 20)
    assert time.monotonic() - start < 15, "it is not closed"
    if pages and b"<html>" in answer:
        assert answer.startswith(b"HTTP/1.1 %d " % status) and b"\r\nConnection: close\r\n" in answer and b"HTTP/1.1 200" not in answer, (data, answer)
        return
    found = answers(answer)
    assert [f[0] for f in found] == [status] and found[0][1]["connection"] == "close" and found[0][1]["x-request-id"], (data, found)
    assert words in error_of(json.loads(found[0][2]))["message"], (data, found)


def test_framing():
    """What two readers could take for different requests is answered with 400, and ends the connection."""
    with Server(SERVE, "--idle-timeout", "30", model=DRAFT) as s:
        good = LINE + HOST + TYPE + LENGTH + b"\r\n" + BODY
        assert [a[0] for a in answers(s.raw(good + NEXT.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")))] == [200, 200]
        head = LINE + HOST + TYPE
        # libmicrohttpd 0.9.77 and newer refuse most of these themselves, with pages in HTML; older ones none.
        newer = b"<html>" in s.raw(head + b"A: b\r\n c\r\n" + LENGTH + b"\r\n" + BODY)
        for data in (head + LENGTH + CHUNKED + b"\r\n" + CHUNKS, head + CHUNKED + LENGTH + b"\r\n" + CHUNKS, head + LENGTH + LENGTH + b"\r\n" + BODY,
                     head + LENGTH + b"Content-Length: 0\r\n\r\n" + BODY, head + CHUNKED + CHUNKED + b"\r\n" + CHUNKS):
            refused(s, data, 400, "length of the body more than once", newer)
        for data in (head + HOST + LENGTH + b"\r\n" + BODY, LINE + b"Host: a\r\n" + TYPE + HOST + LENGTH + b"\r\n" + BODY, LINE + TYPE + LENGTH + b"\r\n" + BODY):
            refused(s, data, 400, "fields Host; expected one", newer)
        for field in (b"A: b\0c\r\n", b"A: \0\r\n", b"A : b\r\n", b"Content-Length : 3\r\n", b"Content-Length\t: 3\r\n", b"A: b\r\n c\r\n", b"A: b\r\n\tc\r\n", b"A: b\rc\r\n",
                      b"A: b\n", b"A: b\x01\r\n", b"(A): b\r\n", b": b\r\n", b"A: b\r\r\n"):
            refused(s, head + field + LENGTH + b"\r\n" + BODY, 400, "malformed", newer)
        refused(s, LINE + HOST + TYPE + LENGTH + b"\n" + BODY, 400, "malformed", newer)
        for line in (b"GET /live x HTTP/1.1\r\n", b"GET  /live HTTP/1.1\r\n", b"GET /live HTTP/1.1\n"):
            refused(s, line + HOST + b"\r\n", 400, "malformed", newer)
        if not newer:  # the newer ones close without a word
            refused(s, b"GET /live\0/x HTTP/1.1\r\n" + HOST + b"\r\n", 400, "malformed")
        refused(s, head + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS, 400, "chunked", newer)
        refused(s, head.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n" + CHUNKS, 400, "Content-Length", newer)
        # Nothing follows chunks on a connection: servers differ on where they end.
        assert [a[0] for a in answers(s.raw(head + CHUNKED + b"\r\n" + CHUNKS + NEXT))] == [200]
        for host in (b"a b", b"a,b", b"127.0.0.1:8x", b"", b"user@127.0.0.1", b"127.0.0.1/x"):
            (status, _, body), = answers(s.raw(b"GET /live HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n\r\n" % host))
            assert status == 400 and "expected NAME or NAME:PORT" in error_of(json.loads(body))["message"], host
        assert s.raw(b"GET /live HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200"), "an old client names no host"


def test_long_headers():
    """Headers beyond --max-header have an answer of ours."""
    with Server(SERVE, "--max-header", "8", model=DRAFT) as s:
        refused(s, b"GET /" + b"a" * 12000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414, "--max-header")
        refused(s, b"GET /live HTTP/1.1\r\n" + HOST + b"A: " + b"a" * 12000 + b"\r\n\r\n", 431, "--max-header")
        assert s.raw(b"GET /live HTTP/1.1\r\nConnection: close\r\n" + HOST + b"A: " + b"a" * 7000 + b"\r\n\r\n").startswith(b"HTTP/1.1 200")


def get_from(s, host, path="/live", key=""):
    (status, _, body), = answers(s.raw(("GET %s HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n%s\r\n" % (path, host, key)).encode()))
    return status, body


def test_hosts():
    """A page whose name leads to this machine (DNS rebinding) is not answered."""
    with Server(SERVE, "--allow-host", "box.example, other", model=DRAFT) as s:
        for host in ("127.0.0.1", "127.0.0.1:%d" % s.port, "localhost", "LOCALHOST:99", "[::1]", "[::1]:80", "127.1.2.3", "a.localhost", "box.example", "Box.Example:8080", "other"):
            assert get_from(s, host)[0] == 200, host
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:%d" % s.port, "box.example.evil", "box", "10.0.0.1", "[::2]", "127."):
            status, body = get_from(s, host, "/metrics")
            assert status == 403 and "--allow-host" in error_of(json.loads(body))["message"], host
    with Server(SERVE, model=DRAFT) as s:
        assert get_from(s, "evil.example", "/")[0] == 403 and get_from(s, "box.example")[0] == 403
    with Server(SERVE, "--api-key", "k", model=DRAFT) as s:
        assert get_from(s, "any.example")[0] == 200, "who has the key is no page of a stranger"
    with Server(SERVE, "--allow-host", "*", model=DRAFT) as s:
        assert get_from(s, "any.example")[0] == 200


def test_types():
    """Bodies that a page may send to another origin without asking are refused, and so are compressed ones."""
    with Server(SERVE, model=DRAFT) as s:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain;charset=UTF-8", "application/jsonx", None):
            head = LINE + HOST + LENGTH + b"Connection: close\r\n" + (b"Content-Type: %s\r\n" % kind.encode() if kind else b"")
            (status, _, body), = answers(s.raw(head + b"\r\n" + BODY))
            assert status == 415 and "Content-Type: application/json" in error_of(json.loads(body))["message"], kind
        for kind in ("application/json", "Application/JSON; charset=utf-8"):
            assert s.post("/tokenize", {"prompt": "a"}, headers={"Content-Type": kind})["count"]
        for coding in ("gzip", "deflate", "br"):
            e = error_of(s.post("/tokenize", {"prompt": "a"}, 415, {"Content-Encoding": coding}))
            assert "Content-Encoding: " + coding in e["message"]
        assert s.post("/tokenize", {"prompt": "a"}, headers={"Content-Encoding": "identity"})["count"]


def test_keys_come_first():
    """Clients without a key cannot fill the memory for bodies: who has it is answered beside them."""
    big = b'{"prompt": "a", "user": "%s"}' % (b"x" * 3000000)
    with Server(SERVE, "--api-key", "k", "--max-uploads", "8", model=DRAFT) as s:
        s.complete(STORY, 401)
        before = s.resident()
        head = LINE + HOST + TYPE + b"Content-Length: %d\r\n" % len(big)
        strangers = [s.socket(head + b"\r\n" + big[:-1]) for _ in range(20)]
        key = dict(JSON, Authorization="Bearer k")
        assert s.call("POST", "/tokenize", big, key)[0] == 200
        assert s.resident() - before < 40000, "bodies of strangers are kept"
        for k in strangers:
            k.sendall(big[-1:])
            assert k.recv(100).startswith(b"HTTP/1.1 401")
            k.close()


def test_full_uploads():
    """Who finds the memory for bodies full is told to come again, and may; those who fill it have their answers."""
    big = b'{"prompt": "a", "user": "%s"}' % (b"x" * 3000000)
    with Server(SERVE, "--max-uploads", "8", model=DRAFT) as s:
        end = time.monotonic() + 100
        holders = [s.socket(LINE + HOST + TYPE + b"Content-Length: %d\r\n\r\n" % len(big) + big[:-1]) for _ in range(2)]
        while True:  # each has half of the memory when its body is there
            code, headers, body = s.call("POST", "/tokenize", BODY)
            if code == 503 or time.monotonic() > end:
                break
            time.sleep(0.02)
        e = error_of(json.loads(body))
        assert code == 503 and int(headers["Retry-After"]) >= 1 and e["type"] == "unavailable_error" and "--max-uploads" in e["message"], (code, body)
        for k in holders:
            k.sendall(big[-1:])
            assert k.recv(100).startswith(b"HTTP/1.1 200")
            k.close()
        assert s.call("POST", "/tokenize", BODY)[0] == 200


def test_pages():
    with Server(SERVE, "--cors", "https://example.org", model=DRAFT) as s:
        asked = "authorization, content-type, x-stainless-os"
        code, h, _ = s.call("OPTIONS", "/v1/chat/completions", headers={"Origin": "https://example.org", "Access-Control-Request-Method": "POST",
                                                                         "Access-Control-Request-Headers": asked})
        assert code == 204 and h["Access-Control-Allow-Headers"] == asked and "POST" in h["Access-Control-Allow-Methods"]
        assert s.call("OPTIONS", "/live", headers={"Access-Control-Request-Headers": "a(b"})[1]["Access-Control-Allow-Headers"] == "Authorization, Content-Type"
        for path in ("/live", "/nothing"):
            h = s.call("GET", path)[1]
            assert h["Access-Control-Allow-Origin"] == "https://example.org"
            assert {name.strip() for name in h["Access-Control-Expose-Headers"].split(",")} == {"X-Request-Id", "Retry-After"}
        code, h, page = s.call("GET", "/")
        policy = dict(part.strip().split(" ", 1) for part in h["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'" and policy["connect-src"] == "'self'"
        assert h["X-Frame-Options"] == "DENY" and h["X-Content-Type-Options"] == "nosniff"
        word = re.fullmatch(r"'nonce-([0-9a-f]{32})'", policy["script-src"])[1]
        tags = re.findall(rb"<(?:script|style)\b[^>]*>", page)
        assert tags and all(b'nonce="%s"' % word.encode() in tag for tag in tags), tags
        assert word not in s.call("GET", "/")[1]["Content-Security-Policy"]
        # What is not here, as the API says it.
        e = error_of(s.get("/v1/nothing", 404))
        assert e["type"] == "invalid_request_error" and "GET /v1/nothing" in e["message"]
        name = s.get("/v1/models")["data"][0]["id"]
        assert s.get("/v1/models/" + name) == s.get("/v1/models")["data"][0]
        e = error_of(s.get("/v1/models/gpt-9", 404))
        assert e["code"] == "model_not_found" and e["type"] == "invalid_request_error"
        assert s.call("POST", "/v1/models/x", {})[0] == 405


if __name__ == "__main__":
    sys.exit(run(globals()))
