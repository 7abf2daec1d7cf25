"""Every name of the language has an example in the reference, and all of them run."""

from __future__ import annotations

import importlib
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.language.gpu_only import GPU_NAMES
from tile_core.errors import UnsupportedOnTarget

SITE = Path(__file__).parents[2] / "docs" / "site"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(SITE))
    reference = importlib.import_module("reference")
    shown_examples = importlib.import_module("shown_examples")

EXAMPLES = {f"{each.file}-{each.name}": each for each in shown_examples.examples()}
HEADS = ("dtypes-dtypes",)
"""Examples that stand at the head of a section."""

LEFT = Path(__file__).parents[1] / "data" / "names_without_examples.txt"
"""Names of the language that have no example, a line each: no target has what they name."""


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Callable[[str, str], None]:
    """Run the code of an example on a target as a page shows it, and as readers paste it."""
    for variable in ("TILELANG_DEFAULT_TARGET", "TILE_INTERPRET"):
        monkeypatch.delenv(variable, raising=False)

    def run_one(name: str, target: str) -> None:
        monkeypatch.setenv("TILE_TARGET", target)
        path = tmp_path / "example.py"
        path.write_text(f"{shown_examples.PREAMBLE}\n{EXAMPLES[name].code}\n")
        runpy.run_path(str(path))
        assert EXAMPLES[name].prints in (capfd.readouterr().out or "\n").splitlines()

    return run_one


HOSTS = ("interpret", "cpu")
GENERATIONS = (
    ("cuda:sm_70", "hip:gfx90a"), ("cuda:sm_75", "hip:gfx942"), ("cuda:sm_80", "hip:gfx950"),
    ("cuda:sm_89", "hip:gfx942"), ("cuda:sm_90a", "hip:gfx90a"), ("cuda:sm_100a", "hip:gfx950"),
    ("cuda:sm_120a", "hip:gfx942"),
)  # fmt: skip
"""What runs on every target is run on two GPUs, each example on others."""

ROWS = [
    (name, target)
    for at, (name, each) in enumerate(EXAMPLES.items())
    for target in each.targets or (*HOSTS, *GENERATIONS[at % len(GENERATIONS)])
]
ON_HOSTS = [row for row in ROWS if row[1] in HOSTS]
ON_GPUS = [row for row in ROWS if row[1] not in HOSTS]


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(("name", "target"), ON_HOSTS)
def test_examples_run(name: str, target: str, run: Callable[[str, str], None]) -> None:
    run(name, target)


@pytest.mark.in_turn(16)
@pytest.mark.parametrize(("name", "target"), ON_GPUS)
def test_examples_run_on_gpus(name: str, target: str, run: Callable[[str, str], None]) -> None:
    run(name, f"{target}@sim")


def test_every_name_has_an_example() -> None:
    wanted = reference.wanted_examples() | {*GPU_NAMES}
    assert sorted(wanted - {*shown_examples.example_of()}) == LEFT.read_text().split()


@pytest.mark.parametrize("name", LEFT.read_text().split())
def test_names_without_an_example_run_nowhere(name: str) -> None:
    for target in ("cpu", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a", "hip:gfx950"):

        @T.prim_func
        def main(A: T.Tensor((1,), "int32")):
            with T.Kernel(1, threads=128):
                T.evaluate(getattr(T, name)())

        with pytest.raises(UnsupportedOnTarget):
            tile.lower(main, target=target)


def test_every_example_is_shown() -> None:
    shown = {f"{each.file}-{each.name}" for each in shown_examples.example_of().values()}
    assert shown == EXAMPLES.keys() - {*HEADS}


def test_examples_use_what_they_are_about() -> None:
    """What their docstrings name, and nothing that the language has not."""
    for name, each in EXAMPLES.items():
        assert each.subjects - {each.name} <= each.used, name
        assert each.used <= {*dir(T), *T.__all__}, name


def test_pages_show_examples_and_where_they_run(tmp_path: Path) -> None:
    reference.write_reference(tmp_path / "api")
    page = (tmp_path / "api" / "copies.rst").read_text()
    entry = page.partition(".. py:function:: T.fill(")[2].partition(".. py:function::")[0]
    assert "   **Example.** `T.fill` and `T.clear` set all elements of a tile" in entry
    assert "   Runs on: every target.\n" in entry
    assert "\n      assert (framed() == expected).all()\n" in entry
    assert page.count("import tile_api.language as T") == 1
    engines = (tmp_path / "api" / "warp_groups.rst").read_text()
    assert "   Runs on: ``interpret``, ``cpu``, ``cuda:sm_90a``, ``cuda:sm_100a``.\n" in engines
    types = (tmp_path / "api" / "tables.rst").read_text()
    assert types.index("T.float32x2(") < types.index(".. py:data:: T.bfloat16")
