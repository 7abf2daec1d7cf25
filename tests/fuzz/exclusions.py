"""What is known to go wrong: the generator leaves it out, or the findings are not shown again.

The first two tables are empty when everything works: whoever mends a cause takes its entry out.
"""

from __future__ import annotations

import re

EXCLUDED: dict[str, str] = {}
"""The name that the generator asks for, and what goes wrong."""

KNOWN: dict[str, str] = {}
"""A pattern that the detail of a finding has, and what its cause is."""

RIGHT: dict[str, str] = {
    r"needs barriers for parts of its threads, and gfx\w+ has none": "AMD's machines lack them",
}
"""Refusals that are right: what the machine cannot do, and says so."""


def excluded(what: str) -> bool:
    return what in EXCLUDED


def known(detail: str) -> bool:
    return any(re.search(pattern, detail) for pattern in (*KNOWN, *RIGHT))
