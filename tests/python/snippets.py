# SPDX-License-Identifier: MIT
"""snippets.py PAGE DIR: runs the Python snippets of a page, in their order and in one namespace, in DIR, where `models` and
`configs` are the project's. Each must end well; what a snippet says it prints ("# prints: ...") must be what it prints."""

import contextlib
import io
import os
import re
import sys
import time
from pathlib import Path

page, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
root = Path.cwd()
for name in ("models", "configs"):
    os.symlink(root / name, folder / name)
os.chdir(folder)
snippets = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)
space: dict = {"__name__": "snippets"}
for i, snippet in enumerate(snippets, 1):
    start, out = time.monotonic(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(snippet, f"{page.name}, snippet {i}", "exec"), space)
    except ModuleNotFoundError as missing:
        if missing.name not in ("pandas", "torch", "transformers"):
            raise
        print(f"snippet {i} SKIPPED: {missing}")
        continue
    wanted = re.findall(r"# prints: (.*)$", snippet, re.M)
    if wanted and out.getvalue().splitlines() != wanted:
        sys.exit(f"{page.name}, snippet {i} printed\n{out.getvalue()}instead of\n" + "\n".join(wanted))
    print(f"snippet {i}: {time.monotonic() - start:.2f} s")
if len(snippets) < 6:
    sys.exit(f"{page}: only {len(snippets)} snippets found")
