# SPDX-License-Identifier: MIT
"""Drawings as SVG, without another package: intervals of cells, and acceptance by position."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

WIDTH, LABEL, RIGHT, LINE, TOP = 760, 300, 130, 24, 10
STYLE = (
    ".wg{font:12px system-ui,sans-serif;fill:currentColor}.wg line{stroke:currentColor}"
    ".wg .grid{stroke-opacity:.15}.wg .one{stroke-dasharray:4 3;stroke-opacity:.6}.wg circle{fill:#1f6feb}"
    ".wg .ci{stroke:#1f6feb;stroke-width:2}"
)


@dataclass(frozen=True)
class Drawing:
    """A drawing; a notebook shows it. svg: its text; title: what it shows."""

    svg: str = field(repr=False)
    title: str = ""

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the drawing as a file; returns its path."""
        to = Path(path)
        to.write_text(self.svg, encoding="utf-8")
        return to


@dataclass(frozen=True)
class Mark:
    """A value with its interval (None: it has none)."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most so many round numbers between low and high."""
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= most)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def intervals(marks: Sequence[Mark], label: str, one: float | None = None) -> Drawing:
    """A row for each mark: its name, its value as a point, its interval as a bar. label: of the axis; one: a value to compare
    with, drawn as a broken line."""
    seen = [v for m in marks for v in (m.value, m.low, m.high) if v is not None] + ([one] if one is not None else [])
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    pad = 0.05 * (high - low) or 0.5
    low, high = low - pad, high + pad
    height = TOP + LINE * len(marks) + 40
    foot = TOP + LINE * len(marks)

    def x(value: float) -> float:
        return LABEL + (value - low) / (high - low) * (WIDTH - LABEL - RIGHT)

    parts = []
    for tick in ticks(low, high):
        parts += [_line(x(tick), TOP, x(tick), foot, "grid"), _text(x(tick), foot + 16, f"{tick:g}", "middle")]
    if one is not None:
        parts.append(_line(x(one), TOP, x(one), foot, "one"))
    for i, mark in enumerate(marks):
        y = TOP + LINE * (i + 0.5)
        words = mark.name if len(mark.name) <= 44 else f"{mark.name[:43]}…"
        said = f"{mark.value:.2f}" if mark.low is None else f"{mark.value:.2f} [{mark.low:.2f}, {mark.high:.2f}]"
        parts.append(_text(LABEL - 10, y + 4, words, "end"))
        if mark.low is not None and mark.high is not None:
            parts.append(_line(x(mark.low), y, x(mark.high), y, "ci"))
        parts.append(f'<circle cx="{x(mark.value):.1f}" cy="{y:.1f}" r="4"><title>{escape(mark.name)}: {said}</title></circle>')
        parts.append(_text(WIDTH - RIGHT + 10, y + 4, said, "start"))
    parts.append(_text((LABEL + WIDTH - RIGHT) / 2, foot + 34, label, "middle"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="wg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">'
    return Drawing(f"{head}<title>{escape(label)}</title><style>{STYLE}</style>{''.join(parts)}</svg>\n", label)
