# SPDX-License-Identifier: MIT
"""Traces: rounds of any engine, with their trees, rows of p and q, and decisions (docs/traces.md). `wager replay FILE` verifies
them again, by the recorded rule or by another one."""

from .reader import Reader, Request, Round
from .writer import RequestWriter, Writer

__all__ = ["Reader", "Request", "RequestWriter", "Round", "Writer"]
