"""Kernels with producers on the emulator, all checks on, threads in several orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kept_kernels import run
from support.ring_kernels import Case, dequantised, guarded, irregular, scaled, two_loops
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins


def check(case: Case, seed: int = 0) -> None:
    """Run a kernel, and compare what it computes exactly."""
    arguments = case.arguments(np.random.default_rng(seed))
    run(case.function.kernel, "cuda:sm_90a@sim", arguments)
    np.testing.assert_array_equal(arguments[-1], case.expected(*arguments[:-1]))


def text(case: Case) -> str:
    return lower(case.function.kernel, "cuda:sm_90a", installed_plugins()).text("source")


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
def test_weights_made_in_registers(schedule: str, rounds: int) -> None:
    check(dequantised(rounds))


def test_weights_of_two_groups(schedule: str) -> None:
    check(dequantised(5, stages=3, threads=256, rows=128))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("threads", [128, 256])
def test_weights_made_in_shared_memory(schedule: str, rounds: int, threads: int) -> None:
    """A product reads them itself: they must not change while it does."""
    check(dequantised(rounds, scope="shared", threads=threads, rows=threads // 2))


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("begun", ["set", "before", "behind"])
@pytest.mark.parametrize("rounds", [1, 2, 4, 5])
def test_steps_that_are_scaled(schedule: str, rounds: int, begun: str) -> None:
    check(scaled(rounds, begun=begun))


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("rounds", [0, 1, 2, 4])
@pytest.mark.parametrize("kernel", [dequantised, scaled])
def test_rounds_that_are_counted_at_run_time(schedule: str, kernel: Any, rounds: int) -> None:
    check(kernel(rounds, at_run_time=True))


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("form", ["for", "while"])
def test_rings_go_on_from_tile_to_tile(schedule: str, form: str, stages: int) -> None:
    """Tiles have other numbers of rounds, or are skipped, and turns of rings go on."""
    check(irregular([3, 1, -1, 0, 2, 5], stages=stages, form=form))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("wanted", [[1, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0], [0, 1]])
def test_rounds_that_are_left_out(schedule: str, wanted: list[int]) -> None:
    """Some tiles are filled in every round, others only where they are needed."""
    check(guarded(wanted))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("rounds", [(3, 4), (0, 1), (5, 0), (1, 2)])
def test_two_loops_with_rings_of_their_own(schedule: str, rounds: tuple[int, int]) -> None:
    check(two_loops(*rounds))


def test_two_versions_take_turns() -> None:
    """Each product goes on until the next one has begun."""
    found = text(dequantised(8))
    assert found.count("wgmma_rs<64, 0, 4>(sums, W_f, ") == 1
    assert found.count("wgmma_rs<64, 0, 4>(sums, W_f_2, ") == 1
    assert found.count("wgmma_wait<1>") == 2
    assert found.count("wgmma_wait<0>") == 1
