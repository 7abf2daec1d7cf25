"""Every error has a code of its own, a page that explains it, and a test of its text."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from tile_core import errors, finding_errors
from tile_core.errors import TileError
from tile_launch import errors as launch_errors

ROOT = Path(__file__).parents[2]


def classes_of(module: ModuleType, root: type) -> list[type]:
    return [
        cls
        for cls in vars(module).values()
        if inspect.isclass(cls) and issubclass(cls, root) and cls is not root
    ]


COMPILER = classes_of(errors, TileError)
LAUNCH = classes_of(launch_errors, TileError)
CLASSES = [*dict.fromkeys([*COMPILER, *LAUNCH])]
CODES = {cls.code for cls in CLASSES}
PAGES = {path.stem: path for path in (ROOT / "docs" / "errors").glob("TL*.md")}


def test_codes_are_unique_and_well_formed() -> None:
    assert len(CODES) == len(CLASSES)
    assert all(re.fullmatch(r"TL[1-9]\d{3}", code) for code in CODES)
    assert all("code" in vars(cls) for cls in CLASSES)


def test_only_bundles_have_errors_that_the_compiler_does_not_know() -> None:
    assert {cls.code[:4] for cls in LAUNCH if cls not in COMPILER} == {"TL80"}


def test_codes_are_given_in_few_places() -> None:
    names = {cls.__name__ for cls in (*CLASSES, TileError)}
    places = [Path(module.__file__) for module in (errors, finding_errors, launch_errors)]
    classes = re.compile(r"^ *class (\w+)\(([^)]*)\)", re.M)
    elsewhere = [
        f"{path.name}: {name}"
        for path in (ROOT / "packages").rglob("*.py")
        for name, bases in classes.findall(path.read_text())
        if path not in places and names & {*re.findall(r"\w+", bases)}
    ]
    assert elsewhere == []


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert set(PAGES) == CODES


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.code)
def test_a_page_tells_cause_example_and_fix(cls: type[TileError]) -> None:
    text = PAGES[cls.code].read_text()
    assert text.startswith(f"# {cls.code}: {cls.__name__}\n")
    assert re.findall(r"^## (.*)$", text, re.M) == ["Cause", "Example", "Fix"]


def test_every_code_has_a_test_and_every_test_a_code() -> None:
    files = (ROOT / "tests" / "errors").glob("test_tl*.py")
    assert {path.name[5:11].upper() for path in files} == CODES
