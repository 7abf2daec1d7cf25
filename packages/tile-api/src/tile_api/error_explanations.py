"""The pages that explain errors, which travel with the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tile_core.errors import ToolchainError

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """What is told of one kind of error."""

    code: str  # ``TL6503``
    name: str  # ``DataRace``
    summary: str  # one sentence
    text: str  # the page, as Markdown


def error_pages() -> Mapping[str, ErrorPage]:
    """Return all pages by code, in the order of codes."""
    folder = _folder()
    pages = [_page(path) for path in sorted(folder.glob("TL*.md"))]
    return {page.code: page for page in pages}


def _folder() -> Path:
    """Return where the pages are: in an installed package, or in a checkout's documentation."""
    packed = _HERE / "error_pages"
    beside = [above / "docs" / "errors" for above in _HERE.parents]
    found = next((place for place in (packed, *beside) if any(place.glob("TL*.md"))), None)
    if found is None:
        raise ToolchainError(
            f"the pages about errors are not in {packed}", hint="install tile-api again"
        )
    return found


def _page(path: Path) -> ErrorPage:
    text = path.read_text(encoding="utf-8")
    heading, _, rest = text.partition("\n")
    summary = " ".join(rest.strip().partition("\n\n")[0].split())
    return ErrorPage(path.stem, heading.partition(": ")[2], summary, text)
