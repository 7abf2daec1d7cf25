"""What pages show under a block of Python is what the block prints."""

from __future__ import annotations

from typing import Any

import pytest

from docs.test_pages import ROOT, Block, blocks, run

PAGE = ROOT / "docs" / "explanation" / "layouts.md"


def shown_after() -> list[tuple[Block, str]]:
    """Return the Python blocks of the page, each with the text that stands under it."""
    found = blocks(PAGE)
    return [
        (block, after.text if after is not None and after.language == "text" else "")
        for block, after in zip(found, [*found[1:], None], strict=True)
        if block.language == "python"
    ]


def test_pictures_of_layouts(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "page"}
    pairs = shown_after()
    for block, text in pairs:
        run(block, namespace)
        assert capsys.readouterr().out == text, block.name
    assert sum(bool(text) for _, text in pairs) >= 12
