#!/usr/bin/env python3
"""Counts code that stands more than once: runs of N or more equal lines in two places of the tracked sources.

usage: tools/repeats.py [-n LINES] [-l] [ROOT]      LINES: shortest run, 6; -l: list the runs, longest first

Generated tables (GENERATED) are left out. Blank lines, comments, lone braces and include lines are passed over; white space is folded. A run that overlaps a longer one is
part of it. Prints the number of runs and of the lines that would go if each stood once."""
import arguments
import re
import subprocess

GENERATED = {"core/text/unicode_table.c"}
SOURCES = ("*.c", "*.h", "*.cu", "*.cpp", "*.py", "*.sh", "*.cmake", "CMakeLists.txt")


def code_lines(path):
    """(line number, folded text) of the lines of a file that count."""
    comment, out = False, []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = " ".join(line.split())
            if comment:
                comment = "*/" not in text
                continue
            if text.startswith("/*") and "*/" not in text:
                comment = True
                continue
            if not re.search(r"\w", text) or re.match(r"/\*|//|#(?! *(define|if|el|endif))", text):
                continue
            out.append((number, text))
    return out


def find(files, shortest):
    """Runs as (length, (file, line), (file, line)), none inside a longer one; the longest first."""
    windows, lines = {}, {name: code_lines(name) for name in files}
    for name, own in lines.items():
        for i in range(len(own) - shortest + 1):
            windows.setdefault(tuple(text for _, text in own[i : i + shortest]), []).append((name, i))
    covered, runs = set(), []
    for places in windows.values():
        first = places[0]
        for other in places[1:]:
            a, b, n = first, other, 0
            while a[1] > 0 and b[1] > 0 and lines[a[0]][a[1] - 1][1] == lines[b[0]][b[1] - 1][1]:
                a, b = (a[0], a[1] - 1), (b[0], b[1] - 1)
            while (a[1] + n < len(lines[a[0]]) and b[1] + n < len(lines[b[0]])
                   and lines[a[0]][a[1] + n][1] == lines[b[0]][b[1] + n][1] and (a[0] != b[0] or a[1] + n < b[1])):
                n += 1
            if n >= shortest and b not in covered:
                covered.add(b)
                runs.append((n, (a[0], lines[a[0]][a[1]][0]), (b[0], lines[b[0]][b[1]][0])))
    return sorted(runs, reverse=True)


def main():
    parser = arguments.Parser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=6)
    parser.add_argument("-l", action="store_true")
    parser.add_argument("root", nargs="?", default=".")
    args = parser.parse_args()
    listed = subprocess.run(["git", "-C", args.root, "ls-files", "--", *SOURCES], capture_output=True, text=True, check=True)
    runs = find([args.root + "/" + name for name in listed.stdout.split("\n") if name and name not in GENERATED], args.n)
    for n, (a, at), (b, also) in runs if args.l else ():
        print(f"{n:4} lines  {a[len(args.root) + 1:]}:{at}  {b[len(args.root) + 1:]}:{also}")
    print(f"{len(runs)} runs of {args.n} or more equal lines, {sum(n for n, _, _ in runs)} lines")


if __name__ == "__main__":
    main()
