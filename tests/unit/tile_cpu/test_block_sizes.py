"""Blocks that the model chooses miss caches little more than any other blocks would."""

from __future__ import annotations

import pytest

from tile_core.errors import ToolchainError
from tile_cpu.csource import find_compiler
from tools.block_sizes import Blocks, misses, ours, ratio

try:
    find_compiler()
except ToolchainError:
    pytest.skip("the simulator is written in C, and there is no compiler", allow_module_level=True)


def test_the_simulator_counts_what_must_be_fetched() -> None:
    """Three matrices of 64 x 64 floats and two copies are 5 x 256 lines; 64 KiB hold a copy."""
    found = misses("neoverse-v2", Blocks(8, 16, 64, 64), 64)
    assert found == (5 * 256, 5 * 256, 5 * 256, 5 * 4, 5 * 4)


@pytest.mark.parametrize(("depth", "copies"), [(256, 2), (128, 1)])
def test_what_a_level_holds_is_fetched_once(depth: int, copies: int) -> None:
    """32 MiB hold three matrices of 256 KiB and their copies, whole or half; 32 KiB do not."""
    first, second, last, *_ = misses("znver3", Blocks(4, 16, 256, depth), 256)
    assert last == (3 + copies) * 256 * 256 // 16
    assert last < second < first


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("machine", ["znver3", "skylake-avx512", "sapphirerapids"])
def test_no_blocks_are_much_better(machine: str) -> None:
    found, best = ratio(machine, (64, 192, 320), (48, 96, 256))
    assert found <= 1.15, (ours(machine), best)
