# SPDX-License-Identifier: MIT
"""check_wheel.py DIR: the record of the wheel in DIR, its tag, what it needs, and that it is what Python imports from
DIR/site."""

import base64
import csv
import hashlib
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

folder = Path(sys.argv[1])
(path,) = folder.glob("*.whl")
wheel = zipfile.ZipFile(path)
names = set(wheel.namelist())


def need(is_so, what):
    if not is_so:
        sys.exit(f"{path.name}: {what}")


need(re.fullmatch(r"wager-[\d.]+-py3-none-manylinux_\d+_\d+_\w+\.whl", path.name), "its name is no wheel's")
(info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
recorded = {}
for name, digest, size in csv.reader(io.StringIO(wheel.read(f"{info}/RECORD").decode())):
    recorded[name] = digest
    if digest:
        data = wheel.read(name)
        want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        need(digest == f"sha256={want}" and int(size) == len(data), f"the record of {name} is not that of its bytes")
need(set(recorded) == names, f"record and contents differ: {set(recorded) ^ names}")
need(f"Tag: {path.stem.split('-', 2)[2]}" in wheel.read(f"{info}/WHEEL").decode(), "its tag is not that of its name")
metadata = wheel.read(f"{info}/METADATA").decode()
need("torch" not in metadata.split("\n\n")[0], "it depends on torch")
header = wheel.read("wager/_native/wager.h")
need(header == Path("include/wager.h").read_bytes(), "its header is not include/wager.h")
text = "".join(wheel.read(n).decode() for n in names if n.endswith(".py"))
functions = set(re.findall(r"\b(wg_\w+)\(", re.sub(r"/\*.*?\*/", "", header.decode(), flags=re.S)))
used = set(re.findall(r"\blib\.(wg_\w+)", text))
need(used <= functions and len(used) > 15, f"functions that the header does not declare: {used - functions}")

import wager  # noqa: E402

need(Path(wager.__file__).parent == folder / "site" / "wager", f"Python imports {wager.__file__}")
said = subprocess.run([sys.executable, "-m", "wager", "--version"], capture_output=True, text=True)
need(said.returncode == 0 and wager.__version__ in said.stdout, f"python -m wager --version: {said.stdout}{said.stderr}")
print(f"{path.name}: {len(names)} files, {path.stat().st_size / 1e6:.1f} MB, {len(used)} of {len(functions)} functions")
