"""What the groups of a block have after registers changed hands, for all sizes of blocks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tile_core.passes.warp_specialisation.register_reallocation import (
    FEWEST,
    FILLING,
    GROUP,
    MOST,
    STEP,
    _Block,
    fits,
    registers_at_entry,
    shares,
)
from tile_cuda.machine import machine

REGISTERS = 65536
SIZES = [(groups, blocks) for groups in range(1, 8) for blocks in range(1, 17)]


@pytest.mark.parametrize("fewest", [FEWEST, FILLING])
@pytest.mark.parametrize(("groups", "blocks"), SIZES)
def test_a_block_holds_what_it_began_with(groups: int, blocks: int, fewest: int) -> None:
    """Else consumers wait forever for what nobody gives."""
    made = shares(groups, blocks, REGISTERS, fewest)
    threads = (groups + 1) * GROUP
    share = registers_at_entry(REGISTERS, threads, blocks)
    if made is None:
        assert share < fewest
        return
    assert made.blocks == blocks
    assert made.few + groups * made.many <= (groups + 1) * made.at_entry
    assert made.at_entry == min(share, made.many)
    assert made.at_entry * threads * blocks <= REGISTERS
    assert fewest <= made.few <= made.at_entry <= made.many <= MOST
    assert all(n % STEP == 0 for n in (made.few, made.at_entry, made.many))


@pytest.mark.parametrize("fewest", [FEWEST, FILLING])
@pytest.mark.parametrize(("groups", "blocks"), SIZES)
def test_consumers_have_all_that_is_left(groups: int, blocks: int, fewest: int) -> None:
    made = shares(groups, blocks, REGISTERS, fewest)
    if made is None or made.many == MOST:
        return
    assert fewest + groups * (made.many + STEP) > (groups + 1) * made.at_entry


@pytest.mark.parametrize(
    ("groups", "blocks", "fewest", "few", "many"),
    [
        (2, 1, FEWEST, 24, 240),
        (2, 1, FILLING, 40, 232),
        (3, 1, FEWEST, 32, 160),
        (3, 1, FILLING, 40, 152),
        (1, 2, FEWEST, 24, 232),
        (1, 3, FEWEST, 24, 136),
        (2, 2, FEWEST, 32, 104),
    ],
)
def test_shares_of_usual_blocks(groups: int, blocks: int, fewest: int, few: int, many: int) -> None:
    made = shares(groups, blocks, REGISTERS, fewest)
    assert made is not None
    assert (made.few, made.many) == (few, many)


@pytest.mark.parametrize("groups", range(1, 4))
def test_as_many_blocks_run_as_have_just_enough(groups: int) -> None:
    made = shares(groups, 2, REGISTERS, FEWEST)
    assert made is not None
    just, more = (_Block(groups, FEWEST, made.many + n, made.at_entry) for n in (0, 1))
    assert just.shares(2, REGISTERS) == made
    assert more.shares(2, REGISTERS) == shares(groups, 1, REGISTERS, FEWEST)


@pytest.mark.parametrize(
    ("rows", "arch", "expected"),
    # Four groups and one that copies begin with 96 registers each; those four may have 112.
    [(64, "sm_90a", True), (128, "sm_90a", True), (256, "sm_90a", False), (256, "sm_80", True)],
)
def test_accumulators_of_asynchronous_products_fit(rows: int, arch: str, expected: bool) -> None:
    product = SimpleNamespace(mnk=(rows, 256, 64))  # rows / 2 registers, and 26 beside them
    assert fits(product, 4 * GROUP, machine(arch)) is expected  # type: ignore[arg-type]
