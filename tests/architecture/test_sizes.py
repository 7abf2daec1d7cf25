"""Files and functions stay small enough to read. Nothing is exempt."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("packages", "tests", "examples", "benchmarks", "docs")
FILE_LINES, FUNCTION_LINES = 500, 60
KERNEL_LINES = 90  # a kernel is one program: it allocates, loops and stores in one place
TOY_LINES = 120


@cache
def sources() -> dict[str, list[Path]]:
    """The files of each folder that is checked as one: its name, and all below it."""
    folders = [f for name in FOLDERS for f in [ROOT / name, *(ROOT / name).iterdir()] if f.is_dir()]
    found = {
        f.relative_to(ROOT).as_posix(): sorted(
            f.glob("*.py") if f.parent == ROOT else f.rglob("*.py")
        )
        for f in folders
    }
    return {"": [ROOT / "noxfile.py"]} | {name: files for name, files in found.items() if files}


def too_long(text: str) -> list[str]:
    """Name what in a module's text is longer than it may be.

    A kernel inside the factory that makes it is counted as a function of its own.
    """
    complaints = []
    if (lines := len(text.splitlines())) > FILE_LINES:
        complaints.append(f"file: {lines} lines")
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            most = KERNEL_LINES if is_kernel(node) else FUNCTION_LINES
            if (lines := length(node)) > most:
                lines -= sum(length(inner) for inner in statements(node) if is_kernel(inner))
            if lines > most:
                complaints.append(f"{node.name}: {lines} lines")
    return complaints


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements below `node`: no expression has one in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


def is_kernel(node: ast.AST) -> bool:
    """Tell whether `node` defines a kernel: it is decorated with ``T.prim_func``."""
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(d, ast.Attribute) and d.attr == "prim_func" for d in node.decorator_list
    )


def length(node: ast.AST) -> int:
    """Return how many lines a definition spans, without decorators."""
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


@pytest.mark.parametrize("folder", sources())
def test_size(folder: str) -> None:
    found = {path: too_long(path.read_text()) for path in sources()[folder]}
    assert {path.relative_to(ROOT).as_posix(): f for path, f in found.items() if f} == {}


def test_no_file_is_forgotten() -> None:
    checked = [path for files in sources().values() for path in files]
    found = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert len(checked) == len(set(checked))
    assert {*checked} == found | {ROOT / "noxfile.py"}


def code_lines(text: str) -> int:
    """Count the lines that hold code: neither blank, nor comment, nor docstring."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate((line.strip() for line in text.splitlines()), 1)
    return sum(bool(t) and t[0] != "#" and number not in docstrings for number, t in lines)


def test_a_complete_backend_is_small() -> None:
    """Writing a backend must stay easy: the example's code is counted."""
    sources = (ROOT / "tests/plugins/tile-toy/src/tile_toy").glob("*.py")
    assert sum(code_lines(path.read_text()) for path in sources) <= TOY_LINES


def test_the_measure_itself() -> None:
    body = "    x = 1\n" * FUNCTION_LINES
    assert too_long(f"def long():\n{body}") == [f"long: {FUNCTION_LINES + 1} lines"]
    assert too_long("x = 1\n" * (FILE_LINES + 1)) == [f"file: {FILE_LINES + 1} lines"]
    assert (
        code_lines('"""Doc\n\nstring."""\n\n# Why\nx = 1\ndef f():\n    """Doc."""\n    y\n') == 3
    )
    fitting = "    x = 1\n" * (FUNCTION_LINES - 1)
    assert too_long(f"def fits():\n{fitting}") == []
    kernel = "    @T.prim_func\n    def main():\n" + "        x = 1\n" * (KERNEL_LINES - 1)
    assert too_long(f"def factory():\n{kernel}    return main\n") == []
    assert too_long(f"def factory():\n{kernel}        x = 1\n") == [
        f"main: {KERNEL_LINES + 1} lines"
    ]
