"""The page on adding an operator, followed to the letter in a copy of the tree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.test_pages import blocks
from tools.operator_files import CHANGELOG, OPERATOR, REFERENCE, TABLE, TOUCHED

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "add-an-operator.md"
TARGETS = ("interpreter", "cpu", "toy", "cuda:sm_80@sim", "hip:gfx942@sim")
"""Where the cases run; for the generations of `LOWERED` their text is made."""
LOWERED = ("cuda:sm_70", "cuda:sm_75", "cuda:sm_89", "cuda:sm_90a", "hip:gfx90a", "hip:gfx950")

CONTRACT = """
import sys
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins
from tile_core.testing.conformance.catalogue import all_cases
from tile_core.testing.oracle import runner

cases = [case for case in all_cases() if case.name.startswith("operator/scaled_add/")]
assert len(cases) == 6, cases
emulated = [case for case in cases if "float32" in case.name and "fragment" in case.name]
for target in sys.argv[1].split():
    for case in emulated if target.endswith("@sim") else cases:
        case.check(runner(target, installed_plugins()))
for target in sys.argv[2].split():
    for case in cases:
        lower(case.build(), target, installed_plugins())
"""

PROGRAM = """
import numpy as np
import tile_api as tile
import tile_api.language as T

@T.prim_func
def kernel(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(2, threads=32) as bx:
        a = T.alloc_fragment((24,), "float32")
        T.copy(A[bx * 24], a)
        T.scaled_add(a, a, factor=2.0)
        T.copy(a, B[bx * 24])

a, b = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
tile.compile(kernel, target="cpu")(a, b)
assert (b == 3 * a).all()
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with the operator of the page, and nothing else changed."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("packages", "docs"):
        shutil.copytree(ROOT / name, copy / name)  # with bytecode, which stays valid
    (copy / "tests" / "docs").mkdir(parents=True)
    for name in ("tests/docs/test_operators_page.py", CHANGELOG):
        shutil.copy(ROOT / name, copy / name)
    said = blocks(PAGE)
    (copy / OPERATOR).write_text(next(b.text for b in said if "class ScaledAdd" in b.text))
    for block in said:
        if re.search(r"^\+", block.text, re.MULTILINE):
            insert(copy / TABLE, block.text)
    with (copy / CHANGELOG).open("a") as log:
        log.write("- `T.scaled_add` adds a multiple of one tile to another.\n")
    command = "import test_operators_page as page; page.PAGE.write_text(page.render())"
    run(copy, command, folder=copy / "tests" / "docs")
    return copy


def insert(file: Path, change: str) -> None:
    """Insert the marked lines of `change` below the line above them, which occurs once."""
    lines, above = file.read_text().splitlines(), ""
    for line in change.splitlines():
        if line.startswith("+"):
            assert lines.count(above) == 1, above
            lines.insert(lines.index(above) + 1, line[1:])
        above = line[1:]
    file.write_text("\n".join(lines) + "\n")


def run(tree: Path, program: str, *arguments: str, folder: Path = ROOT) -> None:
    """Run a Python program with the packages of `tree` before all others."""
    packages = [*(tree / "packages").glob("*/src"), ROOT / "tests/plugins/tile-toy/src"]
    paths = [str(path) for path in (*packages, ROOT / "tests", folder)]
    head = f"import sys; sys.path[:0] = {paths!r}; sys.argv[1:] = {list(arguments)!r}\n"
    command = [sys.executable, "-c", head + program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_at_most_four_files_are_touched(tree: Path) -> None:
    """Those that the page names."""
    changed = set()
    for folder in ("packages", "docs"):
        for file in (tree / folder).rglob("*"):
            name = file.relative_to(tree)
            if file.is_file() and "__pycache__" not in file.parts:
                old = ROOT / name
                if not old.exists() or old.read_bytes() != file.read_bytes():
                    changed.add(str(name))
    changed.add(CHANGELOG)
    assert changed == set(TOUCHED)
    assert len(changed) <= 4
    assert all(name in PAGE.read_text() for name in changed)


def test_nothing_is_missing(tree: Path) -> None:
    """The test of completeness passes, and fails if a part is left out."""
    test = "tests/unit/tile_core/test_operators_are_complete.py"
    command = f"""
import sys, pytest, unit.tile_core.test_operators_are_complete as complete
from pathlib import Path
complete.PAGE = Path({str(tree / REFERENCE)!r})
from tile_core.ops.operator_table import OPERATORS
cls = OPERATORS["scaled_add"]
checks = [f for name, f in vars(complete).items()
          if name.startswith("test_") and "operator" in f.__code__.co_varnames[:1]]
assert len(checks) == 8, checks
for check in checks:
    check(cls)
"""
    assert (ROOT / test).exists()
    run(tree, command)


def test_it_runs_everywhere(tree: Path) -> None:
    run(tree, CONTRACT, " ".join(TARGETS), " ".join(LOWERED))


def test_programs_can_say_it(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    run(tree, f"import runpy; runpy.run_path({str(file)!r})")
