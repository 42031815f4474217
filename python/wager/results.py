# SPDX-License-Identifier: MIT
"""Results of an experiment as dataclasses, frames, tables and drawings. `wager list columns` defines the numbers."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import program
from .frames import flat, frame_of
from .html import table
from .plot import Drawing, Mark, intervals


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval over prompts; low and high are None where there is none (fewer than five prompts)."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __float__(self) -> float:
        return float("nan") if self.value is None else self.value

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        return f"{self.value:.2f}" if self.low is None else f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Cell:
    """One point of the sweep, beside its baseline.

    settings: the swept options; drafter, rule: names; tau: tokens per target pass; speedup: over plain decoding of the same
    engine; alpha: mean of sum min(p, q) over the nodes reached; acceptance_rate: accepted / drafted; by_position: of the steps
    whose draft was that deep, the share that accepted so far; lossless: the law of the output is the target's; same_text: every
    output is the baseline's (None where only the law must be equal); fields: everything that summary.json has of it."""

    settings: dict[str, Any]
    drafter: str
    rule: str
    tau: Interval
    speedup: Interval
    alpha: float | None
    acceptance_rate: float | None
    by_position: list[float]
    lossless: bool
    same_text: bool | None
    fields: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """Its swept options: "draft.length=4, verify.rule=block"."""
        return ", ".join(f"{key}={_short(value)}" for key, value in self.settings.items()) or self.drafter

    @classmethod
    def of(cls, o: dict[str, Any]) -> Cell:
        """From an object of summary.json."""

        def interval(key: str) -> Interval:
            return Interval(o.get(key), *(o.get(f"{key}_ci") or (None, None)))

        return cls(
            o["cell"],
            o["drafter"],
            o["rule"],
            interval("tau"),
            interval("speedup"),
            o.get("alpha"),
            o.get("acceptance_rate"),
            o.get("acceptance_by_position") or [],
            bool(o["lossless"]),
            o.get("equals_baseline"),
            o,
        )


def _short(value: Any) -> str:
    return Path(value).name if isinstance(value, str) and "/" in value else str(value)


class Figures(list):
    """Drawings; a notebook shows them one below the other."""

    def _repr_html_(self) -> str:
        return "".join(f"<figure>{drawing.svg}</figure>" for drawing in self)


@dataclass(frozen=True)
class Result:
    """A run: `cells` (list of `Cell`), its folder, question, config and machine. A notebook shows its table."""

    folder: Path
    name: str
    question: str
    cells: list[Cell]
    config: dict[str, Any] = field(repr=False)
    machine: dict[str, Any] = field(repr=False)
    summary: dict[str, Any] = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> Result:
        """From a folder of `wager run`. Raises FileNotFoundError: it has no summary.json."""
        summary, config = (_json(folder / name) for name in ("summary.json", "config.json"))
        machine = _json(folder / "machine.json") if (folder / "machine.json").exists() else {}
        cells = [Cell.of(o) for o in summary["cells"]]
        return cls(folder, summary.get("name") or "", summary.get("question") or "", cells, config, machine, summary)

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, i: int) -> Cell:
        return self.cells[i]

    def requests(self) -> Iterator[dict[str, Any]]:
        """The lines of requests.jsonl, a dictionary per request and arm, text and times among its members."""
        with open(self.folder / "requests.jsonl", encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines)

    def frame(self) -> Any:
        """A pandas DataFrame with a line for each cell and all fields of summary.json, nested ones as "a.b"."""
        return frame_of([flat(cell.fields) for cell in self.cells])

    def request_frame(self) -> Any:
        """A pandas DataFrame with a line for each request and arm."""
        return frame_of([flat(line) for line in self.requests()])

    def report(self, path: str | None = None) -> Path:
        """Writes the run as a self-contained HTML page, by default `report.html` in its folder; returns its path."""
        to = Path(path) if path else self.folder / "report.html"
        program.call(["report", str(self.folder), "--out", str(to)])
        return to

    def table(self, columns: str | None = None) -> str:
        """The table that the run ended with. columns: those of `wager report --columns`."""
        return program.call(["report", str(self.folder), "--table", *(["--columns", columns] if columns else [])])

    def numbers(self, columns: str | None = None) -> list[dict[str, str]]:
        """All numbers of all cells as text (`wager report --csv`)."""
        out = program.call(["report", str(self.folder), "--csv", *(["--columns", columns] if columns else [])])
        return list(csv.DictReader(io.StringIO(out)))

    def figures(self) -> Figures:
        """The drawings of the run's page. They need gnuplot, as the page does: Error without it."""
        with tempfile.TemporaryDirectory(prefix="wager-") as folder:
            program.call(["report", str(self.folder), "--figures", folder])
            files = sorted(Path(folder).glob("*.svg"))
            return Figures(Drawing(file.read_text(encoding="utf-8"), file.stem) for file in files)

    def plot(self, what: str = "speedup") -> Drawing:
        """ "speedup" or "tau" of each cell, with its interval, as a drawing. Needs nothing but this package."""
        label, one = {"speedup": ("speed-up over plain decoding", 1.0), "tau": ("tokens per target pass", 1.0)}[what]
        marks = []
        for cell in self.cells:
            number: Interval = getattr(cell, what)
            if number.value is not None:
                marks.append(Mark(cell.name, number.value, number.low, number.high))
        return intervals(marks, label, one)

    def _repr_html_(self) -> str:
        lines = [
            [
                cell.name,
                str(cell.tau),
                str(cell.speedup),
                "-" if cell.acceptance_rate is None else f"{cell.acceptance_rate:.1%}",
                "-" if cell.alpha is None else f"{cell.alpha:.3f}",
                "yes" if cell.same_text else "law" if cell.lossless else "lossy",
            ]
            for cell in self.cells
        ]
        head = ["cell", "tau", "speed-up", "accepted", "alpha", "same text"]
        return table(head, lines, self.question or self.name) + self.plot().svg


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
