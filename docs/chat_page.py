#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes the screenshot of the README: the chat page of a running wager-serve in Chromium, after one answer. No speed
ratio is measured: the browser takes time from a server on the same machine. usage: docs/chat_page.py WAGER_SERVE [OUT.png]. Needs
`wager pull smollm2-135m-instruct`, and chromium."""
import base64
import os
import shutil
import socket
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/serve"))
from page import Page, answered, wait  # noqa: E402
from server import Server  # noqa: E402

WIDTH = 760
QUESTION = "Write a Python class for a stack, then one for a queue."


def main():
    program = os.path.realpath(sys.argv[1])
    out = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "docs/chat-page.png")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        sys.exit("no chromium: install it (apt-get install chromium)")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with Server(program, "--draft", "suffix", model="smollm2-135m-instruct", threads=0) as server, \
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as t:
        chrome = subprocess.Popen([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t,
                                   "--remote-debugging-port=%d" % port, "--window-size=%d,600" % WIDTH, "http://127.0.0.1:%d/" % server.port],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            page = Page(port)
            wait(page, "document.getElementById('facts') && document.getElementById('facts').textContent")
            page.value("document.getElementById('text').value = '%s'; document.getElementById('ask').requestSubmit()" % QUESTION)
            answered(page)
            print(page.value("document.querySelector('.figures').textContent"))
            height = page.value("document.documentElement.scrollHeight")
            page.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False)
            shot = base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])
        finally:
            chrome.kill()
            chrome.wait()
    with open(out, "wb") as f:
        f.write(shot)
    print("%s: %d KB" % (out, len(shot) // 1000))


if __name__ == "__main__":
    main()
