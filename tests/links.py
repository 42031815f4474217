#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that links between pages lead somewhere: each relative link of a tracked Markdown file names a file of the repository,
and behind "#" a heading of it, by the anchors that GitHub makes; each "docs/NAME.md" of a source file is a page.

    links.py [ROOT]"""
import os
import re
import subprocess
import sys

SOURCES = (".c", ".h", ".cu", ".cuh", ".py", ".sh", ".cmake", ".txt", ".json")
LEAST = 200  # links; fewer: the pattern does not find them


def prose(text):
    """Without blocks and spans of code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda m: m[0] if "](" not in m[0] else "", text)


def anchors(text):
    found, seen = set(), {}
    for heading in re.findall(r"^#+ +(.*?) *$", prose(text), re.M):
        name = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
        found.add(name + ("-%d" % seen[name] if name in seen else ""))
        seen[name] = seen.get(name, 0) + 1
    return found


def main(root):
    os.chdir(root)
    files = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True).stdout.split("\0")[:-1]
    if not files:
        print("SKIPPED: needs the git repository, for the list of files")
        return 77
    files = [f for f in files if os.path.isfile(f)]
    text = {}
    for f in files:
        if f.endswith(".md") or f.endswith(SOURCES):
            with open(f, encoding="utf-8", errors="replace") as s:
                text[f] = s.read()
    links, wrong = 0, []
    for f in text:
        if not f.endswith(".md"):
            cited = sorted(set(re.findall(r"\bdocs/[a-z-]+\.md\b", text[f])))
            wrong += ["%s: there is no page %s" % (f, page) for page in cited if page not in text]
            continue
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(text[f])):
            if re.match(r"[a-z]+:", link):
                continue
            links += 1
            path, _, anchor = link.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(f), path)) if path else f
            if not os.path.exists(to):
                wrong.append("%s: the link %s leads to no file" % (f, link))
            elif anchor and to in text and anchor not in anchors(text[to]):
                wrong.append("%s: the link %s leads to no heading of %s" % (f, link, to))
    print("\n".join(wrong + ["%d links, %d wrong" % (links, len(wrong))]))
    return 1 if wrong or links < LEAST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
