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
        for line in (b"GET /live x HTTP/1.1\r\n", b"GET  /live HTTP/1.1\r\n", b"GET /live HTTP/1.1\n", b"G\x01T /live HTTP/1.1\r\n"):
            refused(s, line + HOST + b"\r\n", 400, "malformed", newer)
        for field in (TYPE, b"Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", b"Authorization: a\r\nAuthorization: b\r\n"):
            refused(s, head + field + LENGTH + b"\r\n" + BODY, 400, "2 fields %s; expected one" % field.split(b":")[0].decode(), newer)
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


def test_what_the_library_refuses():
    """What libmicrohttpd answers before our code sees it is never taken for a request, and ends the connection."""
    with Server(SERVE, "--idle-timeout", "30", model=DRAFT) as s:
        head = LINE + HOST + TYPE
        n = b"%d" % len(BODY)
        lengths = [head + b"Content-Length: %s\r\n\r\n" % v + BODY for v in (n + b", " + n, b"+" + n, b"-1", b"0x%x" % len(BODY), n + b"a", b"1 5", b"", b"9" * 30)]
        chunks = [head + CHUNKED + b"\r\n" + v for v in (b"zz\r\n", b"-1\r\nx\r\n", b"0x5\r\nabcde\r\n0\r\n\r\n", b"%x\r\n%sXX0\r\n\r\n" % (len(BODY), BODY), b"f" * 20 + b"\r\n" + BODY)]
        lines = [v + b"\r\n" + HOST + b"\r\n" for v in (b"GET /live HTTP/2.0", b"GET /live HTTP/0.9", b"GET /live HTTP/1.11", b"GET /live FTP/1.1", b"GET /live", b"GET\t/live HTTP/1.1", b"GET\t/live",
                                                       b" GET /live HTTP/1.1")]
        for data in lengths + chunks + lines + [head + b"abc\r\n" + LENGTH + b"\r\n" + BODY]:
            answer = s.raw(data + NEXT, 20)
            assert not answer or re.match(rb"HTTP/1\.1 (400|413|505) [^\r]*\r\n(.+\r\n)*Connection: close\r\n", answer), (data, answer)
            assert b" 200 " not in answer and answer.count(b"\r\n\r\n") <= 2 and b"alive" not in answer, (data, answer)
            # 0.9.75 writes the header of its answer to a bad length twice.
            assert len(set(re.findall(rb"HTTP/1\.1 \d+ [^\r]*", answer))) <= 1, (data, answer)


def test_targets():
    """The first line names a path, or a whole address as to a proxy, whose host counts; an escape separates nothing and ends nothing."""
    with Server(SERVE, "--name", "org/model", model=DRAFT) as s:
        def get(target, host=b"127.0.0.1", words=""):
            (status, _, body), = answers(s.raw(b"GET %s HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n\r\n" % (target, host)))
            assert words in body.decode(), (target, body)
            return status
        for target in (b"/live", b"/liv%65", b"/live?a=%00", b"http://127.0.0.1/live", b"HTTP://localhost:%d/live?x" % s.port, b"/v1/models/org/model", b"/v1/models/org%2Fmodel", b"/v1/models/org%2fmode%6c?x"):
            assert get(target) == 200, target
        assert get(b"http://127.0.0.1/live", b"evil.example") == 200, "the field Host does not count"
        assert get(b"http://evil.example/live") == 403
        assert get(b"http://127.0.0.1:80", words="<!doctype html>") == get(b"http://127.0.0.1?x", words="<!doctype html>") == 200
        for target in (b"/v1%2Fmodels", b"/v1/models%2Forg/model", b"/live%00", b"/%6cive/", b"/v1/models/org%252Fmodel", b"/live%zz"):
            assert get(target) == 404, target
        for target in (b"/v1/models/org/model%00", b"/v1/models/org/model%00x", b"/v1/models/%", b"live", b"ftp://127.0.0.1/live"):
            assert get(target, words="the target of the request") == 400, target
        for target in (b"http:///live", b"http://a@127.0.0.1/live", b"http://127.0.0.1:x/live"):
            assert get(target, words="expected NAME or NAME:PORT") == 400, target


def test_answers_before_bodies():
    """What the header, or the part of the body that has come, shows to be refused is answered at once, and the connection closes; a client that
    goes on sending reads its answer."""
    with Server(SERVE, "--api-key", "k", "--max-body", "1000", "--idle-timeout", "0", model=DRAFT) as s:
        key = b"Authorization: Bearer k\r\n"
        for fields, path, status, body in ((b"", b"/tokenize", 401, b"abc"), (key, b"/tokenize", 413, b"abc"), (key, b"/nothing", 404, b"abc"), (key + b"Host: b\r\n", b"/tokenize", 400, b"abc"),
                                           (key + b"Content-Encoding: br\r\n", b"/tokenize", 415, b""), (key, b"/live", 405, b"abc")):
            data = b"POST %s HTTP/1.1\r\n" % path + HOST + TYPE + fields + b"Content-Length: 4000000\r\n\r\n" + body
            start = time.monotonic()
            (found, headers, answer), = answers(s.raw(data, 20))
            assert found == status and headers["connection"] == "close" and headers["x-request-id"] and headers["date"].endswith("GMT") and error_of(json.loads(answer)), (data, answer)
            assert time.monotonic() - start < 10, data
        with s.socket(LINE + HOST + TYPE + key + CHUNKED + b"\r\n") as k:
            for _ in range(12):  # the end of this body does not come
                k.sendall(b"%x\r\n%s\r\n" % (100000, b"x" * 100000))
            assert k.recv(100).startswith(b"HTTP/1.1 413")
        big = b"x" * (30 << 20)  # far more than the system keeps for either side
        with s.socket(LINE + HOST + TYPE + key + b"Content-Length: %d\r\n\r\n" % len(big) + big) as k:
            assert k.recv(100).startswith(b"HTTP/1.1 413")
        with s.socket(LINE + HOST + TYPE + b"Content-Length: 9\r\n\r\n") as k:
            assert s.metrics()["http_connections"] == 2 and k.recv(100).startswith(b"HTTP/1.1 401")
            s.wait_for(lambda m: m["http_connections"] == 1)  # a client that neither goes on nor leaves is left after a while
        assert s.metrics()["http_errors_total"] == 9


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
        for host in ("127.0.0.1", "127.0.0.1:%d" % s.port, "localhost", "LOCALHOST:99", "[::1]", "[::1]:80", "127.0.0.1 \t", "127.1.2.3", "a.localhost", "box.example", "Box.Example:8080", "other"):
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
        for kind in ("application/json; charset=utf-16", "application/json;charset=\"latin-1\"", "application/json; a=b; charset=utf-16le"):
            assert "UTF-8" in error_of(s.post("/tokenize", {"prompt": "a"}, 415, {"Content-Type": kind}))["message"], kind
        for kind in ("application/json", "Application/JSON; charset=utf-8", "application/json;charset=\"UTF-8\"", "application/json ; a=charset", "application/json \t"):
            assert s.post("/tokenize", {"prompt": "a"}, headers={"Content-Type": kind})["count"]
        for coding in ("gzip", "deflate", "br"):
            e = error_of(s.post("/tokenize", {"prompt": "a"}, 415, {"Content-Encoding": coding}))
            assert "Content-Encoding: " + coding in e["message"]
        assert s.post("/tokenize", {"prompt": "a"}, headers={"Content-Encoding": "identity"})["count"]


def test_keys_come_first():
    """Clients without a key cannot fill the memory for bodies: who has it is answered beside them."""
    big = b'{"prompt": "a"%s}' % (b" " * 3000000)
    with Server(SERVE, "--api-key", "k", "--max-uploads", "8", model=DRAFT) as s:
        s.complete(STORY, 401)
        before = s.resident()
        head = LINE + HOST + TYPE + b"Content-Length: %d\r\n" % len(big)
        strangers = [s.socket(head + b"\r\n" + big[:-1]) for _ in range(20)]
        key = dict(JSON, Authorization="Bearer k")
        assert s.call("POST", "/tokenize", big, key)[0] == 200
        assert s.resident() - before < 40000, "bodies of strangers are kept"
        for k in strangers:
            assert k.recv(100).startswith(b"HTTP/1.1 401")
            k.close()
        assert s.call("GET", "/v1/models", headers={"Authorization": "Bearer k \t"})[0] == 200, "spaces behind a value are none of it"


def test_full_uploads():
    """Who finds the memory for bodies full is told to come again, and may; those who fill it have their answers."""
    big = b'{"prompt": "a"%s}' % (b" " * 3000000)
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
            assert h["Access-Control-Allow-Origin"] == "https://example.org" and h["Vary"] == "Origin"
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
