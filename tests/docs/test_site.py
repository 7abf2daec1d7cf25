"""The site's sources: every public name has an entry, and local links lead to pages."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path

import pytest

import tile_api.language as T
from tile_api.frontend.dtypes import DTYPES
from tile_api.language.unavailable import UNAVAILABLE

SITE = Path(__file__).parents[2] / "docs" / "site"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SITE))
        out = tmp_path_factory.mktemp("site") / "source"
        importlib.import_module("assemble").main(out)
    return out


def test_every_public_name_has_one_entry(source: Path) -> None:
    pages = [path.read_text() for path in (source / "api").glob("*.rst")]
    entries = re.findall(r"(?m)^\.\. py:\w+:: ([\w.]+)", "\n".join(pages))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SITE))
        wanted = importlib.import_module("reference").public_names()
    assert set(entries) == wanted
    assert len(entries) == len(wanted), "a name has two entries"


def test_names_of_the_language_are_in_it(source: Path) -> None:
    pages = [path.read_text() for path in (source / "api").glob("*.rst")]
    entries = re.findall(r"(?m)^\.\. py:\w+:: T\.(\w+)", "\n".join(pages))
    assert {*entries} == {*T.__all__} - {"Any"}


def test_every_entry_says_what_it_is(source: Path) -> None:
    pages = [path.read_text() for path in (source / "api").glob("*.rst")]
    parts = re.split(r"(?m)^\.\. py:\w+:: ", "\n".join(pages))[1:]
    silent = [
        part.split("(")[0].split()[0] for part in parts if not part.partition("\n")[2].strip()
    ]
    from_tables = {f"T.{name}" for name in (*DTYPES, *UNAVAILABLE, "boolean", "void")}
    assert {*silent} - from_tables == set()


def test_links_lead_to_pages(source: Path) -> None:
    pages = sorted(source.rglob("*.md"))
    assert len(pages) > 100
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", page.read_text()):
            assert Path(os.path.normpath(page.parent / target)).exists(), f"{page.name}: {target}"


def test_pages_are_short_enough_to_load(source: Path) -> None:
    long = [str(path) for path in source.rglob("*.[mr][ds]*") if path.stat().st_size > 90_000]
    assert long == []


def test_every_page_is_in_a_table_of_contents(source: Path) -> None:
    listed = {source / "index"}
    for page in source.rglob("*.md"):
        for tree in re.findall(r"```{toctree}\n(.*?)```", page.read_text(), re.S):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {page.parent / name for name in names}
    pages = {path.with_suffix("") for path in (*source.rglob("*.md"), *source.rglob("*.rst"))}
    assert pages == listed
