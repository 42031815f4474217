# SPDX-License-Identifier: MIT
"""Builds the wheel (PEP 517): CMake builds libwager and the program, and this file packs them beside the Python package. It
needs CMake, a C compiler, pkg-config, and the headers of jansson, libmd and libdivsufsort; nothing is downloaded.

The wheel has one tag for all Python 3 versions, since cffi's ABI mode compiles nothing: py3-none-manylinux_2_N_ARCH, N being
the newest glibc that its files ask for. Libraries that manylinux does not promise are packed too, and found through $ORIGIN.

Settings (pip install . --config-settings KEY=VALUE): `build-dir`: pack what an existing build folder has instead of building;
`cmake`: more arguments of CMake, such as -DWG_CUDA=ON."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMISED = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so")
METADATA = """\
Metadata-Version: 2.1
Name: wager
Version: {version}
Summary: A laboratory and an engine for speculative decoding
License: MIT
Requires-Python: >=3.9
Requires-Dist: cffi>=1.15
Requires-Dist: numpy>=1.22
Provides-Extra: frames
Requires-Dist: pandas; extra == "frames"
Description-Content-Type: text/markdown

{description}"""


class BuildError(Exception):
    """What is missing, and what to install."""


def version() -> str:
    """The project's, which stands in CMakeLists.txt."""
    found = re.search(r"project\(wager VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    if not found:
        raise BuildError(f"{ROOT / 'CMakeLists.txt'}: no project version")
    return found[1]


def metadata() -> str:
    return METADATA.format(version=version(), description=(ROOT / "docs" / "python.md").read_text(encoding="utf-8"))


# ---- the native files


def _run(command: list[str]) -> None:
    print("+", shlex.join(command), file=sys.stderr, flush=True)
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise BuildError(
            f"wager: '{shlex.join(command)}' failed; its messages are above. Packages on Debian: the list in test.sh"
        )


def _build(settings: dict) -> Path:
    """The folder of a finished build."""
    if "build-dir" in settings:
        return Path(settings["build-dir"]).resolve()
    if not shutil.which("cmake"):
        raise BuildError("wager: no cmake; install CMake 3.20 or newer, a C compiler and the packages that test.sh names")
    build = ROOT / "build" / "wheel"
    more = shlex.split(settings.get("cmake", ""))
    old = "-Wl,--disable-new-dtags"  # DT_RPATH, which the libraries' own needs are looked for in too
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not (build / "Makefile").exists() else []
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "WG_TESTS": "OFF",
        "CMAKE_BUILD_WITH_INSTALL_RPATH": "ON",
        "CMAKE_INSTALL_RPATH": "$ORIGIN",
        "CMAKE_EXE_LINKER_FLAGS": old,
        "CMAKE_SHARED_LINKER_FLAGS": old,
    }
    _run(["cmake", "-S", str(ROOT), "-B", str(build), *generator, *(f"-D{k}={v}" for k, v in options.items()), *more])
    _run(["cmake", "--build", str(build), "--target", "libwager", "wager", "-j", str(os.cpu_count() or 1)])
    return build


def _needed(file: Path) -> dict[str, Path]:
    """The shared libraries that a file loads, by name."""
    said = subprocess.run(["ldd", str(file)], capture_output=True, text=True).stdout
    return {name: Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+)", said, re.M)}


def _stage(build: Path, to: Path, bundle: bool) -> None:
    """Copies library, program and header, stripped, and the libraries that a user's system may lack."""
    to.mkdir(parents=True)
    library = (build / "libwager.so").resolve()
    for source, name in ((library, "libwager.so"), (build / "wager", "wager")):
        if not source.is_file():
            raise BuildError(f"wager: no {source}; build the targets libwager and wager first")
        shutil.copyfile(source, to / name)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", str(to / name)])
    (to / "wager").chmod(0o755)
    shutil.copyfile(ROOT / "include" / "wager.h", to / "wager.h")
    for name, path in _needed(build / "wager").items() if bundle else ():
        if not PROMISED.match(name):
            shutil.copyfile(path, to / name)


def _glibc(files: list[Path]) -> tuple[int, int]:
    """The newest version of glibc whose symbols the files ask for."""
    found = {(2, 17)}
    for file in files:
        data = file.read_bytes()
        found |= {(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=[.\d]*\0)", data)}
    return max(found)


def tag(native: Path) -> str:
    """The wheel's tag."""
    machine = os.uname().machine
    major, minor = _glibc([f for f in native.iterdir() if f.suffix != ".h"])
    return f"py3-none-manylinux_{major}_{minor}_{machine}"


# ---- the wheel


class _Wheel:
    """A zip file with the record of its contents."""

    def __init__(self, path: Path, info: str) -> None:
        self._zip, self._info, self._record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), info, []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes give the same wheel
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}")

    def close(self) -> None:
        record = f"{self._info}/RECORD"
        self.add(record, "\n".join([*self._record, f"{record},,", ""]).encode())
        self._zip.close()


def _package_files() -> list[Path]:
    package = ROOT / "python" / "wager"
    files = (f for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    return sorted(f for f in files if "_native" not in f.relative_to(package).parts)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    settings = config_settings or {}
    build = _build(settings)
    with tempfile.TemporaryDirectory() as scratch:
        native = Path(scratch) / "native"
        _stage(build, native, bundle="build-dir" not in settings)
        info, tags = f"wager-{version()}.dist-info", tag(native)
        name = f"wager-{version()}-{tags}.whl"
        wheel = _Wheel(Path(wheel_directory) / name, info)
        for file in _package_files():
            wheel.add(str(file.relative_to(ROOT / "python")), file.read_bytes())
        for file in sorted(native.iterdir()):
            wheel.add(f"wager/_native/{file.name}", file.read_bytes(), 0o644 if file.suffix == ".h" else 0o755)
        wheel.add(f"{info}/METADATA", metadata().encode())
        wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: wager\nRoot-Is-Purelib: false\nTag: {tags}\n".encode())
        wheel.add(f"{info}/entry_points.txt", b"[console_scripts]\nwager = wager.program:main\n")
        wheel.add(f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())
        wheel.close()
    return name


def build_sdist(sdist_directory, config_settings=None) -> str:
    """The tracked files of the repository; they build the same wheel."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode:
        raise BuildError("wager: a source archive needs the git repository, for the list of files")
    base = f"wager-{version()}"
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as info:
            info.write(metadata())
            info.flush()
            archive.add(info.name, f"{base}/PKG-INFO")
        for name in listed.stdout.decode().split("\0"):
            if name and (ROOT / name).is_file():
                archive.add(ROOT / name, f"{base}/{name}")
    return f"{base}.tar.gz"


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel
