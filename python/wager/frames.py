# SPDX-License-Identifier: MIT
"""pandas, where it is there."""

from __future__ import annotations

from typing import Any


def frame_of(lines: list[dict[str, Any]]) -> Any:
    """A pandas DataFrame of the lines. Raises ImportError with what to do where pandas is not installed."""
    try:
        import pandas
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError("frames need pandas: pip install pandas", name="pandas") from problem
    return pandas.DataFrame(lines)


def flat(values: dict[str, Any], under: str = "") -> dict[str, Any]:
    """Nested objects as one: {"a": {"b": 1}} is {"a.b": 1}. Lists stay."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            out.update(flat(value, f"{under}{key}."))
        else:
            out[under + key] = value
    return out
