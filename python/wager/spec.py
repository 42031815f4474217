# SPDX-License-Identifier: MIT
"""Drafters and rules as on the command line, "NAME:key=value,...", and as a section of a config."""

from __future__ import annotations

import json
from typing import Any


def read_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Its name and options: ("typical", {"epsilon": 0.3})."""

    def value_of(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    name, _, rest = spec.partition(":")
    return name, {key: value_of(value) for key, _, value in (pair.partition("=") for pair in rest.split(",") if pair)}


def said(name: str, value: Any) -> str:
    """An argument as messages name it, where `//from` of a config says that a value came from it."""
    return f"{name}={value!r}"[:120]


def rule_section(spec: str) -> dict[str, Any]:
    """A rule as the section `verify`: {"rule": "typical", "epsilon": 0.3}."""
    name, options = read_spec(spec)
    return {"rule": name, **options}


def rule_spec(section: dict[str, Any]) -> str:
    """The section `verify` as `wager.verify` takes a rule."""
    options = [f"{key}={json.dumps(v) if not isinstance(v, str) else v}" for key, v in section.items() if key != "rule"]
    return f"{section['rule']}:{','.join(options)}" if options else section["rule"]
