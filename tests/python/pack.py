# SPDX-License-Identifier: MIT
"""pack.py BUILD DIR: the wheel of a finished build, as DIR/*.whl and unpacked as DIR/site."""

import sys
import zipfile
from pathlib import Path

sys.path.insert(0, "python")
import build_backend  # noqa: E402

build, folder = sys.argv[1:]
name = build_backend.build_wheel(folder, {"build-dir": build})
with zipfile.ZipFile(Path(folder) / name) as wheel:
    for entry in wheel.infolist():
        path = Path(wheel.extract(entry, Path(folder) / "site"))
        path.chmod(entry.external_attr >> 16 & 0o777)
