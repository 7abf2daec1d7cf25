"""Every example, printed as a program of tiles and as that of one thread, is the same kernel."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from support.covering import covering
from support.example_files import HOPPER, NAMES, load
from support.expert_programs import lowered_again
from support.hopper_examples import CASES, program
from support.recording import record
from tile_api.tiers.developer import is_same
from tile_api.tiers.tile_text import kernel_lines
from tile_core.codegen import function_symbols
from tile_core.compilation.results import Lowered
from tile_core.driver import lower
from tile_core.errors import TileError
from tile_core.ir.effects import storages_written
from tile_core.ir.structural_equality import structurally_equal
from tile_core.plugins.host import installed_plugins
from tile_core.simt.manifest import manifest_of
from tile_core.testing.conformance.catalogue import all_cases
from tile_launch.manifest import Manifest, Tensor

NO_TILES = (
    "threads/dp4a_gemv", "hopper/cluster_multicast", "hopper/producer_consumer",
    "hopper/attention", "hopper/cluster_norm",
)  # fmt: skip
"""Examples with operators of one machine: barriers by hand, clusters, dot products of bytes."""
TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")

pytestmark = [
    pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of NumPy, about what nobody computed
]


def told_to_launchers(lowered: Lowered) -> Manifest:
    """Return what a bundle says of a kernel: parameters, grids, maps of tensors, checks.

    Which parameters are written is left out: of single threads that is known better than of tiles.
    """
    program = lowered.module
    told = manifest_of(program, function_symbols(program), lowered.planned)
    parameters = [
        replace(p, is_written=True) if isinstance(p, Tensor) else p for p in told.parameters
    ]
    return replace(told, parameters=tuple(parameters))


def written_by(lowered: Lowered) -> set[str]:
    written = storages_written(lowered.planned.body)
    return {param.name for param in lowered.planned.params if param in written}


def assert_the_same(lowered: Lowered, folder: Path, name: str) -> None:
    again = lowered_again(lowered, folder, name)
    assert again.text("lowered") == lowered.text("lowered")
    assert again.text("source") == lowered.text("source")
    assert told_to_launchers(again) == told_to_launchers(lowered)
    assert written_by(again) <= written_by(lowered)
    assert written_by(again)
    for mine, its in zip(lowered.module.functions, again.module.functions, strict=True):
        assert structurally_equal(mine.launch, its.launch)
        assert (mine.shared_bytes, mine.resident) == (its.shared_bytes, its.resident)


@pytest.mark.in_turn(12)
@pytest.mark.parametrize(
    ("name", "target"),
    [
        *zip(NAMES, itertools.cycle(TARGETS), strict=False),
        *((name, "cuda:sm_90a") for name in HOPPER),
    ],
)
def test_an_example(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TILE_TARGET", target)
    found = record(monkeypatch)
    module = load(name)
    try:
        module.check(*module.SIZES[0])
    except AssertionError:  # of its own: nothing was computed
        pass
    assert found
    for number, lowered in enumerate(found):
        assert_the_same(lowered, tmp_path, f"program_{number}")
        if name not in NO_TILES:
            assert is_same("\n".join(kernel_lines(lowered.kernel)), lowered.kernel)


@pytest.mark.in_turn(10)
@pytest.mark.parametrize("name", CASES)
def test_an_example_with_large_tiles(name: str, tmp_path: Path) -> None:
    assert_the_same(program(name), tmp_path, "program")


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("target", "turn"), [("cuda:sm_80", 0), ("hip:gfx942", 1)])
def test_cases_of_the_contract(target: str, turn: int, tmp_path: Path) -> None:
    """One of each operator and of each type, on one of the targets that has it."""
    host, compared = installed_plugins(), 0
    for number, case in enumerate(covering(all_cases(), len(all_cases()), 0)[turn::2]):
        try:
            lowered = lower(case.build(), target, host)
        except TileError:
            continue
        again = lowered_again(lowered, tmp_path, f"program_{number}")
        assert again.text("lowered") == lowered.text("lowered"), case.name
        assert again.text("source") == lowered.text("source"), case.name
        compared += 1
    assert compared > 60
