"""Mutants of Python: which there are, which of them tests notice, and which tests are asked."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.import_graph import ImportGraph
from tools.mutant_runs import Journal
from tools.mutant_sites import Mutant, in_order, runners_of_sites, switched, write_switch
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
    match n:
        case 3 if m:
            return 4
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
        (17, "off by one", "4", "(5)"),
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


def mutant(start: int, end: int, after: str, kind: str = "off by one") -> Mutant:
    return Mutant(Path("module.py"), 1, kind, start, end, after)


def test_each_mutant_of_a_module_can_be_switched_on() -> None:
    text = b"def f(n):\n    n += 1\n    return g(n) if n < 2 else n - 1\n"
    mutants = {
        0: mutant(14, 20, "pass", "statement"),
        1: mutant(40, 45, "n >= 2"),
        2: mutant(51, 56, "1 - n"),
        3: mutant(55, 56, "(2)"),
    }
    names: dict[str, Any] = {"g": lambda n: -n}
    exec(switched(text, mutants), names)

    def found(n: int, active: int | None) -> int:
        names["_mutant"] = lambda number: number == active
        value: int = names["f"](n)
        return value

    assert [found(0, active) for active in (None, 0, 1, 2, 3)] == [-1, 0, 0, -1, -1]
    assert [found(5, active) for active in (None, 0, 1, 2, 3)] == [5, 4, -6, -5, 4]


def test_who_comes_by_is_told_once(tmp_path: Path) -> None:
    write_switch(tmp_path)
    log = tmp_path / "log"
    told = {"PYTHONPATH": str(tmp_path), "MUTANT": "5", "MUTANT_LOG": str(log)}
    for test in ("a.py::b[1 (x)] (call)", "a.py::b[1 (x)] (setup)", ""):
        command = [sys.executable, "-c", "print(_mutant(4), _mutant(4), _mutant(5))"]
        environment = told | {"PYTEST_CURRENT_TEST": test}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        assert done.stdout == "False False True\n"
    assert runners_of_sites(log.read_text()) == {n: ["a.py::b[1 (x)]", ""] for n in (4, 5)}


def test_quick_tests_run_first_and_what_uses_their_caches_last() -> None:
    seconds = {"a.py::1": 0.1, "a.py::2": 9.0, "b.py::1": 0.1, "b.py::2": 0.1, "b.py::3": 0.1}
    came = ("a.py::2", "a.py::1", "b.py::2", "b.py::fails")
    wanted = ["a.py::1", "b.py::2", "a.py::2", "b.py::3"]
    assert in_order(came, seconds) == wanted


MODULE = """
TABLE = [{0}]

def once(n, found={{}}):
    return found.setdefault(n, n + {1})

def many(n):
    while n > 0:
        n -= {2}
    return n

def size(n):
    return n + 0 * {3}
"""
TESTS = """
import warnings
import pytest
from module import TABLE, many, once, size

def test_size():
    assert (once(4) > 0, size(2)) == (True, 2)

def test_once():
    assert once(4) == 5

def test_table():
    assert TABLE == [1]

def test_many():
    assert many(3) == 0

@pytest.mark.filterwarnings("ignore")
def test_warns():
    warnings.warn("of a number")
    assert size(2) == 2

def test_fails():
    assert size(2) == 3
"""


def test_mutants_are_judged_by_those_who_come_by(tmp_path: Path) -> None:
    """One of an import has a process of its own; a cache hides nobody; what is known is kept."""
    tree = tmp_path / "tree"
    tree.mkdir()
    write_switch(tmp_path)
    sites = [f"(2 if _mutant({number}) else 1)" for number in range(4)]
    (tree / "module.py").write_text(MODULE.format(*sites))
    (tree / "test_module.py").write_text(TESTS)
    near = {number: ["test_module.py"] for number in range(5)}
    plan = {"near": near, "seconds": 1000, "jobs": 2}
    (tmp_path / "plan").write_text(json.dumps(plan))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(tree), str(Path(__file__).parents[2])]),
        "MUTANT_PLAN": str(tmp_path / "plan"),
        "MUTANT_LOG": str(tmp_path / "log"),
        "PYTEST_CURRENT_TEST": "",  # not this one
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # half the time of each process is plugins
    }
    command = [sys.executable, "-m", "pytest", "-p", "tools.mutant_runs", "-W", "error", "."]

    def judged() -> Journal:
        subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
        return Journal(tmp_path / "journal")

    def tests_of(line: dict[str, Any]) -> list[str]:
        return [test.split("::test_")[1] for tests, _ in line["asked"] for test in tests]

    (first,) = judged().lines
    assert first["killed"] == [0, 1, 2]
    assert {*first["passed"]} == {"3"}
    names = ["size", "once", "table", "many", "warns", "fails"]
    assert tests_of(first) == names
    assert judged().lines == [first]
    (tree / "test_more.py").write_text(
        "from module import size\n\ndef test_3(): assert size(3) == 3"
    )
    assert [tests_of(line) for line in judged().lines] == [names, ["3"]]
    (tree / "test_module.py").write_text(TESTS + "\n")
    assert [tests_of(line) for line in judged().lines] == [names, ["3"], names]
    assert [numbers for line in judged().lines for _, numbers in line["asked"]] == [
        [0, 1, 2, 3, 4], [3, 4], [3, 4]
    ]  # fmt: skip
    more = plan | {"near": near | {5: ["test_module.py"]}}
    (tmp_path / "plan").write_text(json.dumps(more))
    again = judged().lines[3:]
    assert again
    assert [{*numbers} for line in again for _, numbers in line["asked"]] == [{3, 4, 5}] * len(
        again
    )
    assert [test for line in again for test in line["met"]] == [], (
        "none runs twice without a mutant"
    )
