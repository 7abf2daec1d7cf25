"""What is known to go wrong: the generator leaves it out, or the findings are not shown again.

Both tables are empty when everything works: whoever mends a cause takes its entry out.
"""

from __future__ import annotations

import re

EXCLUDED: dict[str, str] = {}
"""The name that the generator asks for, and what goes wrong."""

KNOWN: dict[str, str] = {}
"""A pattern that the detail of a finding has, and what its cause is."""


def excluded(what: str) -> bool:
    return what in EXCLUDED


def known(detail: str) -> bool:
    return any(re.search(pattern, detail) for pattern in KNOWN)
