# SPDX-License-Identifier: MIT
"""What the tests of wager serve share: the programs, their answers, and how a file of tests runs: FILE WAGER WAGER_SERVE [TEST...]"""
import os
import sys
import time
import traceback

from server import DRAFT, ROOT, Server

WAGER, SERVE = (os.path.realpath(program) for program in sys.argv[1:3])
STORY = "Once upon a time"
THIN = bool(os.environ.get("WG_THIN"))  # under a sanitizer, where a token takes a twentieth of a second: fewer requests


class Skipped(Exception):
    pass


def text_of(answer, i=0):
    c = answer["choices"][i]
    return c["message"]["content"] if "message" in c else c["text"]


def joined(events, index=0):
    """The text of an answer from its events."""
    parts = [c for e in events for c in e["choices"] if c["index"] == index]
    return "".join(c["text"] if "text" in c else c["delta"].get("content", "") for c in parts)


def error_of(answer):
    e = answer["error"]
    assert set(e) == {"message", "type", "param", "code"} and e["message"], answer
    return e


def pair(*options, **more):
    """The bundled pair with drafts of one length: how much is drafted does not depend on the machine."""
    return Server(SERVE, "--draft", "model:model=%s,length=4" % DRAFT, *options, **more)


def run(tests):
    """The functions test_* among `tests`, or those of them that the command line names. Returns the exit status."""
    os.chdir(ROOT)
    wanted = sys.argv[3:]
    failed = 0
    for name, test in [(n, f) for n, f in tests.items() if n.startswith("test_") and (not wanted or n in wanted)]:
        start = time.time()
        try:
            test()
            print("ok   %-40s %5.1f s" % (name, time.time() - start), flush=True)
        except Skipped as e:
            print("SKIPPED %-36s %s" % (name, e), flush=True)
        except Exception as e:  # pylint: disable=broad-except
            traceback.print_exc()
            print("FAIL %-40s %s" % (name, e), flush=True)
            failed += 1
    return failed != 0

