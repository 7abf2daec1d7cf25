"""The page on backends names abilities as passes ask for them."""

from __future__ import annotations

import re

from docs.test_pages import ROOT
from tile_cuda.machine import machine
from tools.vendor_words import CORE

PAGE = ROOT / "docs" / "how-to" / "write-a-backend.md"


def test_abilities_are_asked_for_and_had() -> None:
    table = PAGE.read_text().partition("| feature |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    text = "".join(path.read_text() for path in CORE.rglob("*.py"))
    asked = {name for name in named if f'"{name}"' in text}
    assert len(named) >= 6
    assert set(named) == asked == asked & machine("sm_90a").features
