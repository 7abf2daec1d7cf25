"""Mutants of Python: which there are, which of them tests notice, and which tests are asked."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.import_graph import ImportGraph
from tools.mutants import chosen, mutants_of, nearest_tests

TEXT = '''\
"""Docs."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os


def size(n: int, m: int = 3) -> int:
    """Return 1."""
    total = "é" and n - m
    if n < 2 or not m:
        total += 1
        log(n)
        raise ValueError(n + 1)
    return total
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(TEXT)
    return path


def test_every_kind(module: Path) -> None:
    raw = module.read_bytes()
    found = {(m.line, m.kind, raw[m.start : m.end].decode(), m.after) for m in mutants_of(module)}
    assert found == {
        (10, "and/or", '"é" and n - m', "('é' or n - m)"),
        (10, "operands", "n - m", "(m - n)"),
        (11, "and/or", "n < 2 or not m", "(n < 2 and (not m))"),
        (11, "comparison", "n < 2", "(n <= 2)"),
        (11, "off by one", "2", "(3)"),
        (11, "not", "not m", "(m)"),
        (12, "statement", "total += 1", "pass"),
        (12, "off by one", "1", "(2)"),
        (13, "statement", "log(n)", "pass"),
    }


def test_each_changes_the_program_and_nothing_else(module: Path) -> None:
    raw = module.read_bytes()
    texts = {mutant.applied(raw) for mutant in mutants_of(module)}
    assert len({ast.dump(ast.parse(text)) for text in (*texts, raw)}) == len(mutants_of(module)) + 1
    assert module.read_bytes() == raw


def test_a_seed_chooses_the_same_ones(module: Path) -> None:
    assert chosen([module], 4, 1) == chosen([module], 4, 1) != chosen([module], 4, 2)
    assert len({*chosen([module], 100, 1)}) == len(mutants_of(module))


def test_the_nearest_tests_come_first(tmp_path: Path) -> None:
    texts = {
        "tile_core.pairs": "",
        "tile_core.upper": "import tile_core.pairs",
        "unit.tile_core.test_far": "import tile_core.upper",
        "unit.tile_core.test_near": "import tile_core.pairs",
        "unit.tile_core.test_pairs": "import tile_core.upper",
        "unit.tile_core.test_other": "",
        "language.test_words": "import tile_core.pairs",
    }
    files = {}
    for name, text in texts.items():
        files[name] = tmp_path / f"{name.replace('.', '/')}.py"
        files[name].parent.mkdir(parents=True, exist_ok=True)
        files[name].write_text(text)
    found = nearest_tests(files["tile_core.pairs"], ImportGraph(files))
    assert [path.stem for path in found] == ["test_pairs", "test_near", "test_far", "test_words"]
