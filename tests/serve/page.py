#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page at / in a browser, over its DevTools protocol: page.py WAGER_SERVE BROWSER."""
import base64
import itertools
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

from server import DRAFT, ENDLESS, ROOT, Server


class Page:
    """The first page of a browser: WebSocket frames with JSON (RFC 6455), as little as is needed."""

    def __init__(self, port):
        url, until = None, time.monotonic() + 120  # the first start of a browser on a machine takes long
        while not url:
            assert time.monotonic() < until, "the browser has no page after two minutes"
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/json" % port) as f:
                    url = next(p["webSocketDebuggerUrl"] for p in json.load(f) if p["type"] == "page")
            except (OSError, StopIteration):
                time.sleep(0.1)
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n" % (url.split(str(port), 1)[1], port, key)).encode())
        self.data, self.id = b"", 0
        while b"\r\n\r\n" not in self.data:
            self.data += self.socket.recv(4096)
        self.data = self.data.split(b"\r\n\r\n", 1)[1]

    def take(self, n):
        while len(self.data) < n:
            self.data += self.socket.recv(65536)
        out, self.data = self.data[:n], self.data[n:]
        return out

    def call(self, method, **params):
        self.id += 1
        text = json.dumps({"id": self.id, "method": method, "params": params}).encode()
        size = struct.pack(">BBH", 0x81, 0xfe, len(text)) if len(text) > 125 else struct.pack(">BB", 0x81, 0x80 | len(text))
        self.socket.sendall(size + b"\0\0\0\0" + text)  # a mask of zeros
        while True:
            n = self.take(2)[1]
            n = struct.unpack(">H", self.take(2))[0] if n == 126 else struct.unpack(">Q", self.take(8))[0] if n == 127 else n
            answer = json.loads(self.take(n))
            if answer.get("id") == self.id:
                assert "error" not in answer and "exceptionDetails" not in answer["result"], answer
                return answer["result"]

    def value(self, script):
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")


HINT = "document.getElementById('hint').textContent"


def wait(page, what):
    for _ in range(600):
        if page.value(what):
            return
        time.sleep(0.1)
    raise AssertionError("not so after a minute: %s" % what)


def answered(page):
    """A link has asked; the answer is complete when another question may be sent."""
    wait(page, "document.querySelector('.figures') && !document.getElementById('send').disabled")


def change(page, name, value):
    page.value("(e => { e.%s; e.dispatchEvent(new Event('input')) })(document.getElementById('%s'))" % (value, name))


def legend(page, program):
    """What the legend promises: green only where the rule, the temperature and the drafter give some."""
    change(page, "temperature", "value = '0.8'")
    assert "keeps few drafts, perhaps none: temperature 0" in page.value(HINT)
    change(page, "draft", "checked = false")
    assert page.value(HINT) == "Speculation is off: plain decoding."
    with Server(program, "--draft", "none") as server:
        page.value("location.href = 'http://127.0.0.1:%d/'" % server.port)
        wait(page, "document.getElementById('facts') && document.getElementById('facts').textContent.startsWith('drafter none')")
        assert page.value(HINT).startswith("Plain decoding: this server drafts nothing.")
        assert page.value("document.querySelectorAll('.kept').length") == 0
    with Server(program, "--draft", "auto:of=model:model=%s;length=8,costs=1/9" % DRAFT) as server:
        page.value("location.href = 'http://127.0.0.1:%d/#Once'" % server.port)
        wait(page, "document.getElementById('facts') && document.getElementById('facts').textContent.startsWith('drafter auto (model)')")
        answered(page)
        assert "No draft: auto (model) expected none to pay;" in page.value("document.querySelector('.figures').textContent")
    assert "had no draft: auto (model) expected none to pay here; --draft KIND:length=N drafts always" in server.log
    with Server(program, "--draft", "suffix") as server:
        page.value("location.href = 'http://127.0.0.1:%d/'" % server.port)
        wait(page, "document.getElementById('facts') && document.getElementById('facts').textContent.startsWith('drafter suffix')")
        assert page.value(HINT) == "Green: tokens that suffix drafted and the target accepted, by the rule match."
    print("ok: the legend promises what can be seen")


ANSWER = """# A *stack*

Use `**list**`, **not _a_ set**, in my_own_name; 2 * 3 * 4, **open.
<img src=x onerror="document.title = 'taken'">

1. one
2. **two**
- dash

```python
class Stack:
    items = ["*a*", `b`]

    x_y_z = 1
```
end"""
SHOWN = ("<p><strong>A <em>stack</em></strong></p><p>Use <code>**list**</code>, <strong>not <em>a</em> set</strong>, in my_own_name; "
         "2 * 3 * 4, **open.\n&lt;img src=x onerror=\"document.title = 'taken'\"&gt;</p>"
         '<ol><li value="1" style="margin-left: 0em;">one</li><li value="2" style="margin-left: 0em;"><strong>two</strong></li></ol>'
         '<ul><li style="margin-left: 0em;">dash</li></ul>'
         '<pre>class Stack:\n    items = ["*a*", `b`]\n\n    x_y_z = 1\n</pre><p>end</p>')


def markdown(page):
    """An answer with marks, in pieces of three characters of which every second was drafted: elements, text that stays text, and the
    green of every piece whose characters are shown."""
    pieces = [ANSWER[i:i + 3] for i in range(0, len(ANSWER), 3)]
    choice = {"delta": {"content": ANSWER}, "pieces": pieces, "drafted": [i % 2 for i in range(len(pieces))]}
    script = "(() => { const said = empty(), to = document.createElement('div'); add(said, %s); show(said, to); %%s })()" % json.dumps(choice)
    plain = script % "for (const k of [...to.querySelectorAll('.kept')]) k.replaceWith(...k.childNodes); to.normalize(); return to.innerHTML"
    assert page.value(plain) == SHOWN, page.value(plain)
    kept = page.value(script % "return [...to.querySelectorAll('.kept')].map(k => k.textContent).join('')")
    language = range(ANSWER.index("python"), ANSWER.index("python") + 6)  # of the fence; it is not shown
    letters = "".join(c for i, c in enumerate(ANSWER) if i // 3 % 2 and c.isalpha() and i not in language)
    assert letters and "".join(c for c in kept if c.isalpha()) == letters, (kept, letters)
    assert page.value("document.title") != "taken"
    for whole in ("```", "**", "`", "- ", "*a", "1. x\n```\n", "\n\n\n"):  # what a stream may stop at
        page.value("(() => { const s = empty(); add(s, {delta: {content: %s}}); show(s, document.createElement('div')) })()" % json.dumps(whole))
    print("ok: light Markdown, as text")


def measured(page, server):
    """The speed of plain decoding is said where it was measured, over the same text."""
    assert page.value("document.querySelectorAll('.figures').length") == 1
    before, drawn = server.metrics(), page.value("document.querySelector('.answer').innerHTML")
    page.value("document.querySelector('.measure').click()")
    wait(page, "document.querySelector('.figures').textContent.includes('measured now') && !document.getElementById('send').disabled")
    said = page.value("document.querySelector('.figures').textContent")
    found = re.search(r"accepted draft tokens, ([\d.]+) tokens/s\. .* Plain decoding, measured now: ([\d.]+) tokens/s; with drafts ([\d.]+) "
                      r"times that\. The same text\.$", said)
    assert found and abs(float(found[1]) / float(found[2]) - float(found[3])) < 0.006 + 0.01 * float(found[3]), said
    more = {k: server.metrics()[k] - before[k] for k in ("generation_tokens_total", "spec_decode_num_draft_tokens_total")}
    assert more == {"generation_tokens_total": 200, "spec_decode_num_draft_tokens_total": 0}, more
    assert page.value("document.querySelector('.answer').innerHTML") == drawn, "the answer stands there again"
    print("ok: %s" % said)


def look(page, server):
    answered(page)
    assert page.value("document.getElementById('model').textContent") == "story"
    assert page.value("document.getElementById('facts').textContent").startswith("drafter model, rule match, context 512")
    assert page.value("document.querySelector('.turn.user').textContent") == "Once upon a time"
    said = page.value("document.querySelector('.figures').textContent")
    found = re.match(r"(\d+) tokens in (\d+) passes: ([\d.]+) tokens per pass, (\d+) accepted draft tokens, [\d.]+ tokens/s\. "
                     r"Plain decoding: (\d+) passes for the same text\.measure plain decoding$", said)
    assert found, said
    tokens, passes, per_pass, accepted, plain = (float(x) for x in found.groups())
    m = server.metrics()
    assert tokens == plain == m["generation_tokens_total"] == passes + accepted and abs(per_pass - tokens / passes) < 0.01, said
    assert accepted == m["spec_decode_num_accepted_tokens_total"], said
    assert tokens == 200 and accepted > 50, said  # at the page's own settings: temperature 0
    assert page.value(HINT) == "Green: tokens that model drafted and the target accepted, by the rule match."
    assert page.value("document.querySelectorAll('.kept').length") == accepted + 1, "one is in the legend"
    text = page.value("document.querySelector('.answer').textContent")
    kept = page.value("[...document.querySelectorAll('.answer .kept')].map(e => e.textContent).join('')")
    assert len(text) > tokens and 0 < len(kept) < len(text), said
    assert page.value("document.querySelectorAll('.error').length") == 0
    print("ok: %s" % said)
    measured(page, server)
    endless, unread = server.open_stream("/v1/completions", ENDLESS)  # what is asked next waits, so it has not ended when it is stopped
    asked = server.metrics()["http_responses_total"]
    page.value("document.getElementById('text').value = 'Tom'; document.getElementById('tokens').value = 450; document.getElementById('ask').requestSubmit()")
    readings = itertools.count(1)  # each is an answer too, counted when it has been read
    server.wait_for(lambda m: m["http_responses_total"] > asked + next(readings))
    page.value("document.getElementById('stop').click()")
    server.wait_for(lambda m: m["clients_gone_total"] == 1)
    unread.close(), endless.close()
    server.wait_idle()
    assert server.metrics()["clients_gone_total"] == 2
    print("ok: the button stops an answer")
    assert page.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def main():
    program, browser = os.path.realpath(sys.argv[1]), sys.argv[2]
    os.chdir(ROOT)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with Server(program, "--draft", "model:model=%s,length=4" % DRAFT, "--name", "story") as server, \
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as t, open(os.path.join(t, "log"), "w+", encoding="utf-8") as log:
        chrome = subprocess.Popen([browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + t, "--enable-logging=stderr",
                                   "--remote-debugging-port=%d" % port, "--window-size=400,800",
                                   "http://127.0.0.1:%d/#Once%%20upon%%20a%%20time" % server.port], stdout=log, stderr=log)
        try:
            page = Page(port)
            look(page, server)
            markdown(page)
            legend(page, program)
        finally:
            chrome.kill()
            chrome.wait()
        log.seek(0)
        said = [line for line in log if ":CONSOLE" in line]
        assert not said, "the console is not empty: %s" % said
    return 0


if __name__ == "__main__":
    sys.exit(main())
