"""Every error has a code of its own, a page that explains it, and a test of its text."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from tile_core import errors
from tile_core.errors import TileError
from tile_launch import errors as runtime_errors
from tile_launch.errors import TileRuntimeError

ROOT = Path(__file__).parents[2]


def classes_of(module: ModuleType, root: type) -> list[type]:
    return [
        cls
        for cls in vars(module).values()
        if inspect.isclass(cls) and issubclass(cls, root) and cls is not root
    ]


COMPILER = classes_of(errors, TileError)
RUNTIME = classes_of(runtime_errors, TileRuntimeError)
OWN = [cls for cls in RUNTIME if cls.__name__ not in vars(errors)]
"""What only launches and bundles raise; the others have the code of the compiler's error."""
CLASSES = [*COMPILER, *OWN]
CODES = {cls.code for cls in CLASSES}
PAGES = {path.stem: path for path in (ROOT / "docs" / "errors").glob("TL*.md")}


def test_codes_are_unique_and_well_formed() -> None:
    assert len(CODES) == len(CLASSES)
    assert all(re.fullmatch(r"TL[1-9]\d{3}", code) for code in CODES)
    assert all("code" in vars(cls) for cls in CLASSES)


def test_errors_of_launches_have_the_codes_of_the_compilers() -> None:
    shared = [cls for cls in RUNTIME if cls not in OWN]
    assert {cls.__name__: cls.code for cls in shared} == {
        cls.__name__: vars(errors)[cls.__name__].code for cls in shared
    }
    assert {cls.code[:4] for cls in OWN} == {"TL80"}


def test_codes_are_given_in_one_place() -> None:
    names = {cls.__name__ for cls in (*COMPILER, *RUNTIME, TileError, TileRuntimeError)}
    places = [Path(errors.__file__), Path(runtime_errors.__file__)]
    elsewhere = [
        f"{path.name}: {node.name}"
        for path in (ROOT / "packages").rglob("*.py")
        if path not in places
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and names & {base.id for base in node.bases if isinstance(base, ast.Name)}
    ]
    assert elsewhere == []


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert set(PAGES) == CODES


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.code)
def test_a_page_tells_cause_example_and_fix(cls: type[TileError | TileRuntimeError]) -> None:
    text = PAGES[cls.code].read_text()
    assert text.startswith(f"# {cls.code}: {cls.__name__}\n")
    assert re.findall(r"^## (.*)$", text, re.M) == ["Cause", "Example", "Fix"]


def test_every_code_has_a_test_and_every_test_a_code() -> None:
    files = (ROOT / "tests" / "errors").glob("test_tl*.py")
    assert {path.name[5:11].upper() for path in files} == CODES
