"""What is known to go wrong: the generator leaves it out, or the findings are not shown again.

Both tables are empty when everything works: whoever mends a cause takes its entry out.
"""

from __future__ import annotations

import re

EXCLUDED: dict[str, str] = {
    "ragged products": "factors that hang over their tensors leave garbage in results on the CPU",
    "reductions of short types": "reductions over tiles of 4 bits add codes instead of values",
}
"""The name that the generator asks for, and what goes wrong."""

KNOWN: dict[str, str] = {
    r"Buffer row is used before its definition": "what the CPU hoists out of a branch",
}
"""A pattern that the detail of a finding has, and what its cause is."""


def excluded(what: str) -> bool:
    return what in EXCLUDED


def known(detail: str) -> bool:
    return any(re.search(pattern, detail) for pattern in KNOWN)
