# SPDX-License-Identifier: MIT
"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(head: Sequence[str], lines: Sequence[Sequence[str]], caption: str = "") -> str:
    """An HTML table; all texts are escaped. The first column is text, the others are numbers."""

    def row(tag: str, values: Sequence[str]) -> str:
        align = ["left"] + ["right"] * (len(values) - 1)
        cells = (f'<{tag} style="text-align:{a}">{escape(v)}</{tag}>' for a, v in zip(align, values))
        return f"<tr>{''.join(cells)}</tr>"

    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(row("td", line) for line in lines)
    return f"<table>{title}<thead>{row('th', head)}</thead><tbody>{body}</tbody></table>"
