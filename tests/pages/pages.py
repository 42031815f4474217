#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the command blocks of the pages and compares what they print with what the pages say.

    pages.py WAGER [PAGE...]            all pages, or these
    pages.py WAGER --write [PAGE...]    writes the output of console blocks instead

The first words of a fence say what a block is:

    ```sh                 commands. Each must exit with 0, and print every number with a decimal point that its comment has.
    ```sh needs=PATH,...  the same, where these files or programs exist; else a skip that is shown. model:FILE is one that `wager pull` fetched
    ```sh skip=WHY        commands for another place; shown, not run
    ```console            "$ command" lines and what they print, compared with times masked
    ```console green=[]   the same on a terminal: what is green there stands in these brackets
    ```json file=PATH     this file of the repository

A block without such words that looks like commands is an error, so no block is left out silently. All blocks of a page run in one
shell, in a folder that has the repository's files as links and build/, results/ and models/ of its own. Runs are shortened (`quick`):
fewer repeats, steps and prompts, which change no number that is compared."""
import argparse
import contextlib
import ctypes.util
import importlib.util
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ELSEWHERE = {"docs/results.md": "results/run-all.sh writes it", "docs/performance.md": "its own script measures it",
             "CONTRIBUTING.md": "its commands are the suite's own"}
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "wager")
MODELS = os.path.expanduser("~/.cache/wager/models")  # the suite has a cache of its own, without models
LINES, COLUMNS = 28, 160  # of an output that a page shows
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
ASSIGNMENTS = re.compile(r"\w+=\S+( \w+=\S+)*$")
COMMANDS = re.compile(r"^(\$ |\$W |W=|\./|wager |build/|cmake |python3? |curl |for |pip |tools/|cd |tar |sbatch )", re.M)


class Block:
    def __init__(self, page, text, match):
        words = match[1].split()
        self.page, self.line = page, text[:match.start()].count("\n") + 1
        self.kind = words[0] if words else ""
        self.word, _, self.value = match[1][len(self.kind):].strip().partition("=")
        self.body, self.span = match[2], match.span(2)
        self.where = "%s:%d" % (page, self.line)


def blocks_of(page, errors):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        text = f.read()
    all_blocks = [Block(page, text, m) for m in FENCE.finditer(text)]
    for b in all_blocks:
        if not b.kind and COMMANDS.search(b.body):
            errors.append("%s: commands without a word behind ```: sh, console, or sh skip=WHY" % b.where)
        if b.word not in ("", "needs", "skip", "green", "file") or (b.word and not b.value):
            errors.append("%s: '%s' behind ```%s; expected needs=, skip=, green= or file=" % (b.where, b.word, b.kind))
    return text, [b for b in all_blocks if b.kind in ("sh", "console") or b.word == "file"]


def complete(text):
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    return done.returncode == 0 and not done.stderr


def commands_of(block):
    """(command, comment, expected output or None) of each command; the comment in a console block is the whole line."""
    if block.kind == "console":
        for part in re.split(r"^\$ ", block.body, flags=re.M)[1:]:
            line, _, output = part.partition("\n")
            yield re.sub(r"\s{2,}#.*$", "", line), line, output
        return
    held = ""
    for line in block.body.splitlines():
        held += line + "\n"
        if line.strip() and not line.endswith("\\") and complete(held):
            found = re.search(r"\s{2,}#(.*)$", held.rstrip())
            command = re.sub(r"\s{2,}#[^\n]*$", "", held, flags=re.M).rstrip()
            if command and not command.startswith("#"):
                yield command, found[1] if found else "", None
            held = ""
    assert not held.strip(), "%s: the last command has no end: %s" % (block.where, held)


def quick(command, compared):
    """The same command with less to do; compared: nothing is left out that its output counts."""
    def more(pattern, added):
        return re.sub(r"((?:^|[ (])(?:\S*wager|\$W) %s\b[^|&;>\n]*[^|&;>\n ])" % pattern, r"\1 " + added, command)
    command = command.replace("\\\n", " ")
    command = re.sub(r"\bWG_CPU=\w+ ", "", command).replace("--batch 1..64", "--batch 1..2")
    command = command.replace("prove --rule all", "prove --rule all --cases 2")
    command = re.sub(r"--shapes \S+", "", command).replace("plan --student", "plan --student --shapes 1x64")
    command = command.replace("--requests 32", "--requests 8")
    command = more("plan -m", "--limit 2 -n 16")
    command = more("bench train", "--sequences 1")
    command = more("run", "--set repeats=1 --set alpha=false" + ("" if compared else " --set prompts.limit=2 --set max_tokens=16"))
    command = more("train", "--set train.steps=2 --set train.batch=2 --set train.micro=2 --set train.length=64")
    command = more("distill", "--set train.steps=2 --set train.batch=2 --set train.micro=2 --set train.length=64 --set distill.documents=1 --set distill.predict=false")
    return command


VOLATILE = re.compile(r"^(machine:|Speculate: |Do not speculate: |Undecided: |results:|time |\*: |Learnt here|\d+ of \d+ cells|auto, which|\d+ intervals|No interval|warning)|no draft at all")
ROW = re.compile(r"^(.*?)(\s[\d.]+)(\s+\d+\.\d\d\s+(?:[\d.]+ %|-))\s+[\d.]+\s.*\d+\.\d\dx.*$")  # ... temperature, tau and acceptance ...


def masked(line, form):
    """A line without what follows the clock, and without the digest of a config, which every new option changes; form: without any
    number."""
    line = re.sub(r"^(\w+) \([0-9a-f]{12}\)$", r"\1 (#)", line)
    line = re.sub(r"[\d.]+ tok/s", "# tok/s", re.sub(r" in [\d.]+ ms", " in # ms", line))
    row = ROW.match(line)
    if row:  # a sampled row depends on the repeats, one of `auto` on the clock
        line = line.split("  ")[0] if line.startswith("auto") else row[1] + row[2] + (row[3] if float(row[2]) == 0 else "")
    elif "speed-up" in line and "tok/s" in line:
        line = line[:line.index("tok/s")]
    if form:
        line = re.sub(r"[-+]?\d[\d.,x%e+-]*", "#", line)
    return " ".join(line.split())


def follows_clock(command):
    return re.search(r"(wager|\$W|\S+/wager) (plan|compare|bench|load|audit|prove)\b|--probe\b", command)


def differs(command, expected, got):
    """What the page says and the program does not, or None. Where most of an output follows the clock, every line of the page must have
    one of its form; else lines must be equal, but for times."""
    form = bool(follows_clock(command))
    table = "speed-up" in expected and not form
    said = [masked(x, form) for x in expected.splitlines() if x.strip() and not VOLATILE.search(x)]
    cut = bool(said) and re.fullmatch(r"\[\d+ lines more\]|\[# lines more\]", said[-1])
    said = said[:-1] if cut else said
    now = [masked(x[:COLUMNS], form) for x in got.splitlines() if x.strip() and not VOLATILE.search(x)]
    if table:  # the rows; notes below a table depend on repeats
        said = [x for x in said if re.search(r"^(\w+( \(.*\))?$|(\w+) .* (match|rejection) [\d.]+( |$)|drafter )", x)]
    for i, line in enumerate(said):
        if form or table:
            if line not in now and not (form and line.split(" ")[0] in [x.split(" ")[0] for x in now]):
                return "not printed: %s" % line
        elif i >= len(now) or line != now[i]:
            return "line %d: the page has\n    %s\n  the program\n    %s" % (i + 1, line, now[i] if i < len(now) else "(nothing)")
    if not (form or table or cut) and len(now) > len(said):
        return "the program prints more: %s" % now[len(said)]
    return None


@contextlib.contextmanager
def tree(program, text):
    """A folder like the repository after ./quickstart.sh."""
    with tempfile.TemporaryDirectory(prefix="wager-pages.", ignore_cleanup_errors=True) as t:
        for name in os.listdir(ROOT):
            if name in ("results", "models", "configs"):  # written to, or written down as paths
                shutil.copytree(os.path.join(ROOT, name), os.path.join(t, name), ignore=shutil.ignore_patterns("*.svg", "gpu"))
            elif name not in ("build", "runs", ".git", ".ci"):
                os.symlink(os.path.join(ROOT, name), os.path.join(t, name))
        for folder in ("build/release", "bin"):
            os.makedirs(os.path.join(t, folder))
        for name in ("wager", "wager-serve"):
            os.symlink(os.path.join(os.path.dirname(program), name), os.path.join(t, "build/release", name))
            os.symlink(os.path.join(os.path.dirname(program), name), os.path.join(t, "bin", name))
        for name, built in (("plugin-verifier", "tests/plugin-verifier"), ("plugin-drafter", "plugins")):
            os.symlink(os.path.join(os.path.dirname(program), built), os.path.join(t, "build", name))
        if "Qwen3-0.6B" in text:  # folders of the form of the fetched ones
            subprocess.run([sys.executable, os.path.join(HERE, "miniature_pair.py"), os.path.join(t, "models")], check=True)
        yield t


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def terminal(command, brackets):
    """The command on a terminal of its own; text in green stands in brackets."""
    names = r"s/\x1b\[32m\([^\x1b]*\)\x1b\[0m/%s\1%s/g; s/\x1b\[[0-9;]*m//g; s/\r$//" % (brackets[0], brackets[1])
    return "( unset NO_COLOR; export TERM=xterm; script -qec %s /dev/null | sed -z '%s' )" % (shlex.quote(command), names)


def script_of(commands, log, port, short):
    """One shell for all commands of a page; numbers name the files of each."""
    out = ["exec 2>/dev/null", "set -a"]  # variables of a page are also those of its commands
    for i, (b, command, _, _) in enumerate(commands):
        command = (quick(command, b.kind == "console") if short else command).replace(":8080", ":%d" % port)
        if b.word == "green":
            command = terminal(command, b.value)
        files = ">%s/%d.out 2>%s/%d.err </dev/null" % (log, i, log, i)
        if re.search(r"(wager|\$W) serve ", command):
            out.append("{ %s --port %d\n} %s &" % (command, port, files))
            out.append("for k in $(seq 300); do grep -q listening %s/%d.out && break; sleep 0.1; done; grep -q listening %s/%d.out" % (log, i, log, i))
        else:
            out.append("{ %s\n} %s" % (command, files))
        out.append("echo $? $EPOCHREALTIME >%s/%d.rc" % (log, i))
    return "\n".join(["set +m", *out, "kill $(jobs -p) 2>/dev/null; wait", "exit 0"])


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def missing(value, folder):
    def there(what):
        if what.startswith("python:"):
            return importlib.util.find_spec(what[7:])
        if what.startswith("lib:"):
            return ctypes.util.find_library(what[4:])
        if what.startswith("model:"):
            return os.path.exists(os.path.join(MODELS, what[6:]))
        return os.path.exists(os.path.join(folder, what)) or os.path.exists(os.path.join(folder, "bin", what)) or shutil.which(what)
    return [what for what in value.split(",") if not there(what)]


def run_page(page, program, short, errors, notes):
    """Runs the commands of a page: [(block, command, comment, expected, output, status, seconds)]."""
    text, found = blocks_of(page, errors)
    with tree(program, text) as folder, tempfile.TemporaryDirectory() as log:
        commands = []
        for b in found:
            if b.word == "file":
                if read(os.path.join(ROOT, b.value)) != b.body:
                    errors.append("%s: %s has another text" % (b.where, b.value))
                continue
            lacks = missing(b.value, folder) if b.word == "needs" else []
            if b.word == "skip" or lacks:
                notes.append("%s: %s" % (b.where, "needs " + ", ".join(lacks) if lacks else b.value))
                continue
            runs = short or b.kind == "console"  # what is written is the output of console blocks
            commands += [(b, *c) for c in commands_of(b) if runs or ASSIGNMENTS.match(c[0])]
        if not commands:
            return text, []
        env = dict(os.environ, NO_COLOR="1", PATH=os.path.join(folder, "bin") + ":" + os.environ["PATH"], TMPDIR=log)
        env.pop("COLUMNS", None)
        env["XDG_CACHE_HOME"] = os.path.join(log, "cache")
        os.makedirs(os.path.join(log, "cache/wager"))
        os.makedirs(os.path.join(CACHE, "profiles"), exist_ok=True)
        os.symlink(os.path.join(CACHE, "profiles"), os.path.join(log, "cache/wager/profiles"))
        os.symlink(MODELS, os.path.join(log, "cache/wager/models"))
        begin = time.time()
        shell = subprocess.Popen(["bash", "-c", script_of(commands, log, free_port(), short)], cwd=folder, env=env, start_new_session=True)
        try:
            shell.wait(timeout=900)
        except subprocess.TimeoutExpired:
            errors.append("%s: not done after 900 s" % page)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
                shell.wait()
        done = []
        for i, (b, command, comment, expected) in enumerate(commands):
            status, _, when = read("%s/%d.rc" % (log, i)).strip().partition(" ")
            output = read("%s/%d.out" % (log, i)) + read("%s/%d.err" % (log, i))
            seconds, begin = (float(when) - begin, float(when)) if when else (0, begin)
            done.append((b, command, comment, expected, output, status, seconds))
        return text, done


def check(page, program, errors, notes):
    begin, used = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    _, done = run_page(page, program, True, errors, notes)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    for b, command, comment, expected, output, status, _ in done:
        where = "%s: %s" % (b.where, command.splitlines()[0])
        if status != "0":
            errors.append("%s\n  status %s\n  %s" % (where, status or "(not run)", "\n  ".join(output.strip().splitlines()[-4:])))
            continue
        lacks = [x for x in re.findall(r"\d+\.\d+", comment) if expected is None and x not in output]
        if lacks:
            errors.append("%s\n  does not print %s" % (where, ", ".join(lacks)))
        wrong = expected is not None and differs(command, re.sub(r"\nStatus \d+, .*", "", expected), output)
        if wrong:
            errors.append("%s\n  %s" % (where, wrong))
    if done:
        cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        print("%5.1f s, %5.1f of processors, %3d commands  %s" % (time.time() - begin, cpu, len(done), page), flush=True)
    return len(done)


def shown(output):
    output = output.replace("-%s-" % socket.gethostname(), "-HOST-").replace(os.path.expanduser("~") + "/", "~/")
    lines = [x[:COLUMNS].rstrip() for x in output.splitlines()]
    return "\n".join(lines[:LINES] + (["[%d lines more]" % (len(lines) - LINES)] if len(lines) > LINES else [])) + "\n"


def write(page, program):
    errors = []
    text, done = run_page(page, program, False, errors, [])
    made = {}
    timed = re.compile(r"[\d.]+(?= tok/s)|(?<= in )\d+(?= ms)")
    for b, command, comment, _, output, status, _ in done:
        if b.kind == "console":
            made.setdefault(b.span, []).append("$ %s\n%s" % (comment, timed.sub("...", shown(output)) if output else ""))
            assert status == "0", (b.where, command, output)
    for (first, end), parts in sorted(made.items(), reverse=True):
        text = text[:first] + "".join(parts) + text[end:]
    with open(os.path.join(ROOT, page), "w", encoding="utf-8") as f:
        f.write(text)
    return None


def pages():
    for folder in ("", "docs", "models", "results"):
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            page = os.path.join(folder, name)
            if name.endswith(".md") and page not in ELSEWHERE and page != "CHANGELOG.md":
                yield page


def main():
    args = argparse.ArgumentParser()
    args.add_argument("program")
    args.add_argument("page", nargs="*")
    args.add_argument("--write", action="store_true")
    a = args.parse_intermixed_args()
    program = os.path.realpath(a.program)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = a.page or list(pages())
    errors, notes, count = [], [], 0
    for page in chosen:
        if a.write:
            write(page, program)
            continue
        told = len(errors)
        count += check(page, program, errors, notes)
        for error in errors[told:]:
            print("FAILED: %s" % error, flush=True)
    for note in notes:
        print("not run: %s" % note)
    print("%d commands, %d blocks not run, %d wrong" % (count, len(notes), len(errors)))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
