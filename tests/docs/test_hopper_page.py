"""The reasons that the page on Hopper quotes are reasons that the compiler gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from docs.test_pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "hopper.md"
PASSES = ROOT / "packages" / "tile-core" / "src" / "tile_core" / "passes"
SECTION = "## What decides, and why not"


def quoted() -> list[str]:
    """Return the sentences in the list of reasons, without those parts that are code."""
    section = PAGE.read_text().split(SECTION)[1].split("\n## ")[0]
    items = re.findall(r"^- (.*?)(?=^- |\n\n)", section, re.MULTILINE | re.DOTALL)
    said = [" ".join(words.split()) for item in items for words in re.findall(r"`([^`]+)`", item)]
    return [words for words in said if " " in words and not words.startswith("T.")]


def reasons() -> Iterator[re.Pattern[str]]:
    """Yield what the passes say, with anything in the place of names and numbers."""
    for path in [PASSES / "specialise_warps.py", *(PASSES / "warp_specialisation").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".+"
                    for p in node.values
                ]
                yield re.compile("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.compile(re.escape(node.value))


def test_quoted_reasons_are_given() -> None:
    known = [pattern for pattern in reasons() if len(pattern.pattern) > 12]
    sentences = quoted()
    assert len(sentences) >= 15
    missing = [
        words for words in sentences
        if not any(words in p.pattern.replace("\\", "") or p.fullmatch(words) for p in known)
    ]  # fmt: skip
    assert missing == []
