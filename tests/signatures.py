#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No function takes more than eight parameters, and no initialiser of one struct gives more than four fields by position: fields
are named where there are more. Of all C, C++ and CUDA files of the project.

usage: tests/signatures.py [ROOT]      prints file:line of what breaks a rule; exit status 1 if anything does

Not counted: the `...` of a variadic function; rows of a table, an array of structs, which is read by column; macros that write
such rows; arrays. The text is read by tokens, without a compiler: a list in parentheses is a list of parameters when
each of its items is a type and a name."""
import os
import re
import subprocess
import sys

PARAMETERS, FIELDS = 8, 4
FOLDERS = ("core", "draft", "verify", "kernels", "experiments", "serve", "tests", "tools", "examples")
ENDINGS = (".c", ".h", ".cpp", ".cu", ".cuh")
SKIPPED = {"core/text/unicode_table.c",  # generated
           "draft/train/blas.c", "kernels/cuda/cublas.h", "tests/simt/cublas.cpp"}  # the functions of BLAS
TOKEN = re.compile(r"[A-Za-z_]\w*|[.]{3}|[\d.]\w+|\S")
COMMENT_OR_TEXT = re.compile(r"""/\*.*?\*/|//[^\n]*|^[ ]*\#(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S | re.M)
PARAMETER = re.compile(r"(?:(?:const|struct|unsigned|enum) )*[A-Za-z_]\w*(?: const)?(?: \*(?: const| restrict)*)* (?:[A-Za-z_]\w*|\(\))")


def tokens(text):
    """(token, line) of a C text; comments and preprocessor lines are gone, a string or character is the token `"`."""
    blank = lambda m: ('"' if m[0][0] in "\"'" else "") + "\n" * m[0].count("\n")
    text = COMMENT_OR_TEXT.sub(blank, text)
    line, at, out = 1, 0, []
    for m in TOKEN.finditer(text):
        line += text.count("\n", at, m.start())
        at = m.start()
        out.append((m[0], line))
    return out


def lists(toks):
    """(index of the opening bracket, items) of each bracketed list; an item is the text of its tokens."""
    stack = []
    for i, (t, _) in enumerate(toks):
        if t in "([{":
            stack.append((i, [[]]))
            continue
        if t in ")]}" and stack:
            at, items = stack.pop()
            yield at, [" ".join(item) for item in items if item]
            if stack:
                stack[-1][1][-1].append(t if t == "]" else "{}" if t == "}" else "()")
            continue
        if stack and t == ",":
            stack[-1][1].append([])
        elif stack:
            stack[-1][1][-1].append(t)


def parameters(toks, at, items):
    """The number of parameters when the list is one, else 0."""
    named = [item for item in items if item != "..."]
    before = toks[at - 1][0] if at else ""
    return len(named) if re.match(r"\w|\)", before) and all(PARAMETER.match(item) for item in named) else 0


def is_struct(toks, at):
    """Whether the braces at `at` initialise one struct: `(type){` or `name = {`, neither of an array."""
    before = toks[at - 1][0] if at else ""
    if before == "=":
        return re.match(r"[A-Za-z_]", toks[at - 2][0]) is not None
    depth, i = 1, at - 2
    if before != ")":
        return False
    while i > 0 and (depth := depth + (toks[i][0] == ")") - (toks[i][0] == "(")):
        i -= 1
    inside = [t for t, _ in toks[i + 1 : at - 1]]
    follows = toks[i - 1][0] if i else ""
    cast = follows in ("=", "return", "(", ",", "&", "?", ":", "{", "*")
    return cast and all(re.match(r"[A-Za-z_]", t) for t in inside)


def check(name, text):
    toks = tokens(text)
    for at, items in lists(toks):
        line = toks[at][1]
        if toks[at][0] == "(" and (n := parameters(toks, at, items)) > PARAMETERS:
            yield f"{name}:{line}: {n} parameters of {toks[at - 1][0]}"
        by_position = sum(item[0] not in ".[" for item in items)
        if toks[at][0] == "{" and by_position > FIELDS and is_struct(toks, at):
            yield f"{name}:{line}: {by_position} fields by position"


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")
    files = [f"{d}/{n}" for top in FOLDERS for d, _, names in os.walk(top) for n in names if n.endswith(ENDINGS)]
    found = []
    for name in sorted(set(files) - SKIPPED):
        with open(name, encoding="utf-8") as file:
            found += check(name, file.read())
    print("\n".join(found + [f"{len(files)} files, {len(found)} lists too long to give by position"]))
    return len(files) < 200 or found != []


sys.exit(main())
