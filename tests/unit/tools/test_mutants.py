"""Mutants of Python: which there are, which of them tests notice, and which tests are asked."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools.import_graph import ImportGraph
from tools.mutant_sites import (
    failed_tests,
    one_of_each_file_in_turn,
    probed,
    runners_of_sites,
    write_probe,
)
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


def test_probes_change_nothing_but_tell(module: Path) -> None:
    text = b"def f(n):\n    n += 1\n    return g(n) if n < 2 else n - 1\n"
    sites = {0: (14, 20, True), 1: (40, 45, False), 2: (51, 56, False), 3: (55, 56, False)}
    told: list[int] = []
    names: dict[str, object] = {"_mutant_site": told.append, "g": lambda n: -n}
    exec(probed(text, sites), names)
    assert names["f"](0) == -1  # type: ignore[operator]
    assert told == [0, 1]
    assert names["f"](5) == 5  # type: ignore[operator]
    assert told == [0, 1, 0, 1, 2, 3]


def test_patterns_have_no_probe() -> None:
    text = b"match n:\n    case 3:\n        pass\n"
    assert probed(text, {0: (18, 19, False)}) == text


def test_probes_are_told_by_test(tmp_path: Path) -> None:
    log = tmp_path / "sites.log"
    write_probe(tmp_path, log)
    for test in ("tests/test_a.py::test_b[1 (x)] (call)", "tests/test_a.py::test_b[1 (x)] (setup)"):
        environment = {"PYTHONPATH": str(tmp_path), "PYTEST_CURRENT_TEST": test}
        command = [sys.executable, "-c", "_mutant_site(4); _mutant_site(4); _mutant_site(5)"]
        subprocess.run(command, env=environment, check=True)
    test = "tests/test_a.py::test_b[1 (x)]"
    assert runners_of_sites(log.read_text()) == {4: [test, test], 5: [test, test]}


def test_what_fails_unchanged_is_read_off_the_summary() -> None:
    output = "FAILED tests/a.py::b[x - y] - assert 1\nERROR tests/c.py::d\n1 failed in 2 s\n"
    assert failed_tests(output) == {"tests/a.py::b[x - y]", "tests/c.py::d"}


def test_files_take_turns() -> None:
    tests = ("b.py::1", "a.py::1", "b.py::2", "c.py::1", "a.py::2")
    wanted = ["a.py::1", "b.py::1", "c.py::1", "a.py::2", "b.py::2"]
    assert one_of_each_file_in_turn(tests, ["x.py", "a.py"]) == wanted
