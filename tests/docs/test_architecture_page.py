"""The page of the architecture names every layer and folder there is, and no other."""

from __future__ import annotations

import re

from docs.test_pages import ROOT

PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = ROOT / "packages"


def table(heading: str) -> str:
    return PAGE.split(f"## {heading}")[1].split("\n## ")[0]


def folders(package: str) -> set[str]:
    source = PACKAGES / package.replace("_", "-") / "src" / package
    return {p.name for p in source.iterdir() if p.is_dir() and p.name != "__pycache__"}


def test_layers_of_the_core() -> None:
    source = PACKAGES / "tile-core" / "src" / "tile_core"
    modules = {p.stem for p in source.glob("*.py") if p.stem != "__init__"}
    cells = re.findall(r"^\| (`.*?) \|", table("Layers of tile_core"), re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert named == modules | folders("tile_core")


def test_folders_of_the_other_packages() -> None:
    named: dict[str, set[str]] = {}
    package = ""
    rows = re.findall(r"^\|(.*?)\| (`.*?) \|", table("Folders of the other"), re.MULTILINE)
    for first, second in rows:
        package = first.strip(" `") or package
        named.setdefault(package, set()).update(re.findall(r"`(\w+)`", second))
    sources = {p.name.replace("-", "_") for p in PACKAGES.iterdir()} - {"tile_core"}
    assert named == {package: folders(package) for package in sources}
