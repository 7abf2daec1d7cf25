"""What a change can break: by imports, by names of targets, by what lies beside tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import changed
from tools.import_graph import ImportGraph

FILES = {
    "packages/tile-core/src/tile_core/__init__.py": "",
    "packages/tile-core/src/tile_core/base.py": "",
    "packages/tile-core/src/tile_core/upper.py": "from tile_core.base import x",
    "packages/tile-core/src/tile_core/lazy.py": "def f():\n    import tile_core.upper",
    "packages/tile-core/src/tile_core/round.py": "from tile_core import trip",
    "packages/tile-core/src/tile_core/trip.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tile_core.round import y"
    ),
    "packages/tile-cuda/src/tile_cuda/machine.py": "from tile_core.upper import x",
    "tests/support/helper.py": "import tile_core.lazy",
    "tests/unit/test_base.py": "from tile_core import base",
    "tests/unit/test_helped.py": "from support.helper import f",
    "tests/unit/test_round.py": "import tile_core.round",
    "tests/language/conftest.py": "TARGETS = ['cuda:sm_80@sim']",
    "tests/language/test_rows.py": "",
    "tests/golden/test_texts.py": "",
    "tests/golden/expected/texts/one.txt": "",
    "tests/examples/test_examples.py": "EXAMPLES = 'examples'",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "broken"),
    [
        ("packages/tile-core/src/tile_core/base.py", ["language/rows", "unit/base", "unit/helped"]),
        ("packages/tile-core/src/tile_core/lazy.py", ["unit/helped"]),
        ("packages/tile-core/src/tile_core/trip.py", ["unit/round"]),
        ("packages/tile-cuda/src/tile_cuda/machine.py", ["language/rows"]),
        ("packages/tile-cuda/src/tile_cuda/include/tile.h", ["language/rows"]),
        ("tests/support/helper.py", ["unit/helped"]),
        ("tests/language/conftest.py", ["language/rows"]),
        ("tests/golden/expected/texts/one.txt", ["golden/texts"]),
        ("examples/gemm/batched.py", ["examples/examples"]),
        ("CHANGELOG.md", []),
    ],
)
def test_what_can_break(tree: Path, file: str, broken: list[str]) -> None:
    found = changed.files_that_can_break([file], tree)
    parts = (name.removeprefix("tests/").removesuffix(".py") for name in found)
    assert [part.replace("test_", "") for part in parts] == broken


@pytest.mark.parametrize(
    "file", ["pyproject.toml", "packages/tile-core/pyproject.toml", "tests/conftest.py"]
)
def test_what_can_break_everything(tree: Path, file: str) -> None:
    assert changed.files_that_can_break([file], tree) == [changed.ALL]


def test_circles(tree: Path) -> None:
    folder = tree / "packages/tile-core/src"
    files = {f"tile_core.{p.stem}": p for p in (folder / "tile_core").glob("[!_]*.py")}
    graph = ImportGraph(files)
    assert graph.circles(types=False) == []
    assert graph.circles(types=True) == [{"tile_core.round", "tile_core.trip"}]
