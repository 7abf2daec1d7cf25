"""The tables in the pages of packages name modules and folders that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.test_pages import ROOT

PACKAGES = sorted(path.parent for path in (ROOT / "packages").glob("*/README.md"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_modules_of_a_package(package: Path) -> None:
    source = package / "src" / package.name.replace("-", "_")
    page = (package / "README.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| (?:module|folder|where) \|.*\n((?:\|.*\n)*)", page, re.MULTILINE)
    cells = [row.split("|")[1] for table in tables for row in table.splitlines()]
    named = {name.strip("/") for cell in cells for name in re.findall(r"`(.*?)`", cell)}
    modules = {path.stem for path in source.glob("*.py")} | {p.name for p in source.iterdir()}
    assert named - modules == set()
