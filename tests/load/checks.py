# SPDX-License-Identifier: MIT
"""What the tests of wager load share: checks, after which a test goes on, and a run of the program."""
import json
import subprocess
import sys

failed = 0


def check(name, good, *what):
    global failed
    if not good:
        failed += 1
        print("FAIL", name, *what)


def numbers(wager, url, prompts, *flags, status=0):
    """The numbers of one load test. Ends the program as skipped where wager has no libcurl."""
    r = subprocess.run([wager, "load", url, "-p", prompts, "--json", *flags], capture_output=True, text=True)
    if "built without libcurl" in r.stderr or "libcurl is not there" in r.stderr:
        print("SKIPPED:", r.stderr.strip())
        sys.exit(77)
    check(" ".join(flags), r.returncode == status, r.returncode, r.stderr)
    return json.loads(r.stdout)


def end(name):
    print(name + ":", "failed" if failed else "passed")
    sys.exit(failed > 0)
