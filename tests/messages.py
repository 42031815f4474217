#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every message of the rooms in STRICT occurs in a test: messages.py ROOT.

A message is the format of a call to a reporter (wg_fail, wg_problem, standard error ...), or the text that a call passes to a
helper with a parameter `why`. It is tested when a case of tests/bad/*.txt has a text of this format, or a string of a
test has at least its first or last half. UNREACHABLE lists the exceptions, each with its reason; an exception that is no
longer needed is an error too. For the other folders the number of untested messages is printed."""
import os
import re
import sys

STRICT = {"api": 20, "experiments": 150, "lab": 10, "core/setup": 30, "core/trace": 5, "draft": 80, "verify/proof": 1,
          "core/file": 50, "core/text": 15}  # and so many messages at least
OTHERS = ["core/base", "core/kv", "core/dist", "core/model", "core/engine", "core/sched", "verify"]

# Where the format stands among the arguments of a reporter.
REPORTERS = {"wg_fail": 2, "wg_fail_in": 2, "wg_problem": 3, "wg_problem_in_set": 2, "axis_problem": 3, "wg_json_problem": 4,
             "refuse": 3, "wg_cli_refuse": 1, "wgj_fail": 2, "wgj_undefined": 1,
             "wgj_expected": 1, "lex_fail": 2, "fprintf": 1, "fputs": 0}
SHORTEST = 8  # letters of a format below which it only passes on what another one said

UNREACHABLE = {
    "tensor '%s': its inputs over the calibration text are not finite, or damping %g is too small for them":
        "needs activations that overflow",
    "cuda:0 cannot be opened: %s": "needs an emulated device that cannot be opened",
    "a trace record of %zu bytes; try trace_rows=top": "needs a round of 4 GB",
    "%s: cannot map into memory: %s": "needs a system that has no address space left",
    "'%.40s...' is too long: %d bytes of at most %zu": "needs a longer text than an option of the outer drafter holds",
    "drafter cascade: %s has %d tokens, the target %d: a middle model needs as many":
        "needs two models of one tokenizer that pad its vocabulary differently",
    "law %s was not declared": "needs a drafter of ours that breaks the contract; those of plug-ins are found out before",
    "%s: a word of more than %d MB from byte %llu on: expected plain text": "needs a text of 512 MB",
    "%s:%ld: longer than %d MB; expected a round a line": "needs a line of 256 MB",
    "a text of %zu tokens; expected at most %d": "needs a text of 2 GB",
    "libcurl is not there (%s); install libcurl4": "needs a machine without libcurl",
    "libcurl has no curl_%s; install a newer libcurl4": "needs an older libcurl",
    "%s/points.jsonl: cannot write: %s": "needs a disk that fills up during a sweep",
    "%s: cannot cut a half line: %s": "needs a file that can be written and not cut",
    "wager pull: out of memory for the result; the model is there\n": "needs an allocation of the program to fail",
    "%s: its address is too long": "needs a revision of 2 KB, which no name has",
    "%.60s...: the path of the hub's folder is too long": "needs a home folder that no system call takes",
    "%.60s...: the path of the folder of models is too long": "needs a home folder that no system call takes",
    "%.60s...: this path is too long": "needs a path that no system call takes",
    "%s: the answer is longer than %zu bytes": "needs an answer of 32 MB",
    "wager: out of memory for JSON; the output is not complete\n":
        "needs memory that ends; test_command_memory has its allocations fail, of the command without its main()",
    "libcurl does not start": "needs a libcurl that fails to start",
    "this program was built without libcurl: install libcurl4-openssl-dev, configure and build it again":
        "needs a build without libcurl",
}

STRING = r'"(?:[^"\\\n]|\\.)*"'
CONVERSION = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t|L)?[diouxXeEfgGcsp]|%%")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b"}


def unescape(text):
    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" and len(m[1]) > 1
                  else ESCAPES.get(m[1], m[1]), text)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*|" + STRING, lambda m: m[0] if m[0][0] == '"' else " ", text, flags=re.S)


def strings(text, macros):
    """The string literals of C, neighbours joined; a macro between them is whatever it stands for, or anything; PRId64 and its
    like end a conversion."""
    joined = re.compile(r"(?:%s|\b(?:WG|PRI)[A-Za-z0-9_]*\b)(?:\s*(?:%s|\b(?:WG|PRI)[A-Za-z0-9_]*\b))*" % (STRING, STRING))
    for m in joined.finditer(text):
        parts = re.findall(STRING + r"|\w+", m[0])
        if any(p[0] == '"' for p in parts):
            yield "".join(unescape(p[1:-1]) if p[0] == '"' else "d" if p.startswith("PRI") else macros.get(p, "%s")
                          for p in parts)


def arguments(text, at):
    """The arguments of the call whose bracket opens at `at`."""
    depth, start, out = 0, at + 1, []
    for m in re.compile(STRING + r"|'(?:[^'\\]|\\.)'|[()\[\]{},]").finditer(text, at):
        c = m[0]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        if (c == "," and depth == 1) or depth == 0:
            out.append(text[start:m.start()])
            start = m.end()
        if depth == 0:
            return out
    return out


def helpers(text):
    """Functions that put the words they are given into a message: where their `why` stands."""
    found = {}
    for m in re.finditer(r"\bwg_status (\w+)\(", text):
        for i, argument in enumerate(arguments(text, m.end() - 1)):
            if re.fullmatch(r"\s*const char \*why\s*", argument):
                found[m[1]] = i
    return found


def macros_of(root):
    found = {}
    for folder, _, files in os.walk(root):
        for file in files:
            if file.endswith(".h") and "/build" not in folder:
                text = open(os.path.join(folder, file), encoding="utf-8").read().replace("\\\n", " ")
                for m in re.finditer(r"#define (WG_\w+)\s+((?:%s\s*)+)$" % STRING, text, re.M):
                    found[m[1]] = "".join(unescape(s[1:-1]) for s in re.findall(STRING, m[2]))
    return found


def messages(root, folder, macros):
    """(file:line, format) of everything that the folder reports."""
    paths = [os.path.join(at, name) for at, _, names in os.walk(os.path.join(root, folder)) for name in names]
    for path in sorted(os.path.relpath(p, root) for p in paths if p.endswith(".c")):
        text = without_comments(open(os.path.join(root, path), encoding="utf-8").read())
        reporters = dict(REPORTERS, **helpers(text))
        for m in re.finditer(r"\b(%s)\(" % "|".join(reporters), text):
            given = arguments(text, m.end() - 1)
            if m[1] == "fprintf" and given[0].strip() != "stderr" or m[1] == "fputs" and given[-1].strip() != "stderr":
                continue
            if len(given) <= reporters[m[1]]:
                continue
            for s in strings(given[reporters[m[1]]], macros):
                yield "%s:%d" % (path, text.count("\n", 0, m.start()) + 1), s


def tokens(text):
    """Characters, and None for what is filled in."""
    out, at = [], 0
    for m in CONVERSION.finditer(text):
        out += text[at:m.start()]
        out += "%" if m[0] == "%%" else [None]
        at = m.end()
    return out + list(text[at:])


def pattern(toks):
    return re.compile("".join("[\\s\\S]{0,400}?" if t is None else re.escape(t) for t in toks))


def head(toks):
    """The first half of a format, without what is filled in before its first word."""
    while toks and (toks[0] is None or not toks[0].isalnum()):
        toks = toks[1:]
    wanted, at = sum(t is not None for t in toks) / 2, 0
    while wanted > 0:
        wanted -= toks[at] is not None
        at += 1
    return toks[:at]


def tail(toks):
    """The last half, likewise; of a short one all of it."""
    half = head(toks[::-1])[::-1]
    return half if sum(t is not None and t.isalnum() for t in half) > 2 * SHORTEST else toks


def tested_texts(root, macros):
    golden, said = [], set()
    bad = os.path.join(root, "tests", "bad")
    for file in sorted(os.listdir(bad)):
        golden += open(os.path.join(bad, file), encoding="utf-8", errors="replace").read().split("\n## ")
    for folder, _, files in os.walk(os.path.join(root, "tests")):
        if "fuzz" in folder:
            continue
        for file in files:
            path = os.path.join(folder, file)
            if file.endswith((".c", ".h")):
                said.update(strings(without_comments(open(path, encoding="utf-8").read()), macros))
            elif file.endswith(".sh") or (file.endswith(".py") and file != "messages.py"):
                said.update(open(path, encoding="utf-8").read().split("\n"))
    return golden, [s for s in said if len(s) >= 10]


def longest(toks):
    return max("".join("\0" if t is None else t for t in toks).split("\0"), key=len)


def found(toks, words, texts):
    whole = pattern(toks)
    return (text for text in texts if words in text and whole.search(text))


def is_tested(form, golden, said):
    toks = tokens(form)
    return any(found(toks, longest(toks), golden)) or \
        any(any(found(half, longest(half), said)) for half in (head(toks), tail(toks)))


def main():
    root = sys.argv[1]
    macros = macros_of(root)
    golden, said = tested_texts(root, macros)
    used, failed = set(), 0
    for folder in list(STRICT) + OTHERS:
        of, untested = 0, []
        for where, form in messages(root, folder, macros):
            if form[0] == "\r" or sum(t is not None and t.isalnum() for t in tokens(form)) < SHORTEST:
                continue  # progress; nothing of its own
            of += 1
            if is_tested(form, golden, said):
                continue
            if folder in STRICT and form in UNREACHABLE:
                used.add(form)
                continue
            untested.append((where, form))
        print("%-12s %4d messages, %d without a test" % (folder, of, len(untested)))
        if folder in STRICT:
            failed += len(untested)
            if of < STRICT[folder]:
                print("only %d messages found in %s: is %s the project?" % (of, folder, root))
                failed += 1
        for where, form in untested if folder in STRICT or "--all" in sys.argv else []:
            print("  %s: no test has: %s" % (where, form.replace("\n", "\\n")))
    for form in sorted(set(UNREACHABLE) - used):
        print("  not needed any more in UNREACHABLE: %s" % form)
        failed += 1
    print("%d exceptions" % len(used))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
