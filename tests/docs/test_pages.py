"""Every Python block of the documentation runs, in order, page by page."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tile_core.errors import TileError

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        p
        for where in ("*.md", "docs/**/*.md", "packages/*/*.md", "*/README.md")
        for p in ROOT.glob(where)
    ],
    key=str,
)
ERROR_PAGES = [page for page in PAGES if page.parent.name == "errors"]
SLOW = {
    "docs/how-to/measure-a-kernel.md": 4,
    "docs/how-to/multiply-scaled-formats.md": 4,
    "docs/how-to/use-as-a-torch-compile-backend.md": 4,
    "docs/reference/guarantees.md": 4,
    "docs/tutorials/array-functions.md": 8,
    "docs/tutorials/tuned-and-shipped.md": 3,
    "packages/tile-nn/README.md": 4,
}
"""Pages that take more than 3 s of a processor, and every how many commits they are due."""
LANGUAGES = {"python", "text", "bash", "console", "toml", "c"}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the heading it stands under, and its place."""

    language: str
    heading: str
    text: str
    name: str


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a Markdown page."""
    found, heading, fence, lines = [], "", None, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if fence is None and line.startswith("#"):
            heading = line.lstrip("# ")
        elif fence is None and (match := re.match(r" *```(\S*)$", line)):
            fence, lines, first = match[1], [], number
        elif fence is not None and line.strip() == "```":
            text = "\n".join(lines) + "\n"
            found.append(Block(fence, heading, text, f"{page.name}:{first}"))
            fence = None
        elif fence is not None:
            lines.append(line)
    assert fence is None, f"{page} ends inside a block"
    return found


def run(block: Block, namespace: dict[str, Any]) -> None:
    """Execute a block; its source can be found by whoever asks for it, as in a notebook."""
    lines = block.text.splitlines(keepends=True)
    linecache.cache[block.name] = (len(block.text), None, lines, block.name)
    exec(compile(block.text, block.name, "exec", dont_inherit=True), namespace)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_say_what_they_are(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES


def in_turn(page: Path) -> Any:
    """Return a row for the page."""
    share = SLOW.get(name_of(page), 1)
    marks = [pytest.mark.in_turn(share)] if share > 1 else []
    return pytest.param(page, id=name_of(page), marks=marks)


def test_every_slow_page_exists() -> None:
    assert set(SLOW) <= set(map(name_of, PAGES))


@pytest.mark.parametrize("page", [in_turn(p) for p in PAGES if p not in ERROR_PAGES])
def test_page(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.language == "python":
            run(block, namespace)


SHOWN = {"Tiles": "developer", "Threads": "expert", "C++": "cuda"}
"""What the page on the tiers shows below a heading, by its name in the page's program."""


def test_what_is_shown_of_the_tiers_is_printed() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    page = blocks(ROOT / "docs" / "tutorials" / "down-the-tiers.md")
    for block in page:
        if block.language == "python":
            run(block, names)
    shown = {block.heading: block.text for block in page if block.language == "text"}
    assert set(shown) == set(SHOWN)
    for heading, name in SHOWN.items():
        at = 0
        for line in shown[heading].splitlines():
            assert line in names[name][at:], f"{heading}: {line}"
            at = names[name].index(line, at)


@pytest.mark.parametrize("page", ERROR_PAGES, ids=name_of)
def test_error_page(page: Path) -> None:
    """The example raises the page's error and the mended program does not."""
    namespace: dict[str, Any] = {"__name__": "page"}
    python = [block for block in blocks(page) if block.language == "python"]
    examples = [block for block in python if block.heading == "Example"]
    for block in examples:
        with pytest.raises(TileError) as caught:
            run(block, namespace)
        assert caught.value.code == page.stem, str(caught.value)
    for block in python:
        if block.heading == "Fix":
            run(block, namespace)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
