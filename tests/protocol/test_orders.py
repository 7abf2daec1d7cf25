"""No order of threads, engines and blocks loses a tile, or lets anybody wait forever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol.kernels import (
    attention,
    copied_by_all,
    doubled,
    doubled_beside,
    gemm,
    in_clusters,
    lowered,
    persistent,
)
from support.example_files import load
from support.ring_kernels import dequantised, guarded, irregular, scaled, two_loops
from tile_core.testing.protocol.model_checker import explore
from tile_core.testing.protocol.order_independence import prove
from tile_core.testing.protocol.program import iterations_of
from tile_core.testing.protocol.scenarios import scenarios_of
from tile_core.testing.protocol.values import Value

GROUP = 128

KERNELS: dict[str, Callable[[], Any]] = {
    **{f"gemm-{n}": (lambda n=n: gemm(n)) for n in (1, 2, 4, 5, 9)},
    "gemm-2-stages": lambda: gemm(5, stages=2),
    "gemm-128-threads": lambda: gemm(6, threads=128),
    **{f"attention-{n}": (lambda n=n: attention(n)) for n in (1, 2, 3)},
    "attention-3-stages": lambda: attention(4, stages=3),
    "weights": lambda: dequantised(5).function,
    "weights-in-shared-memory": lambda: dequantised(5, scope="shared").function,
    "weights-3-stages": lambda: dequantised(5, stages=3, threads=256, rows=128).function,
    "scaled": lambda: scaled(4).function,
    "scaled-2-stages": lambda: scaled(6, stages=2, threads=256, columns=128).function,
    "persistent": lambda: persistent(3, 4),
    "persistent-short": lambda: persistent(4, 1),
    "pairs": lambda: in_clusters(3, (2, 1, 1)),
    "squares": lambda: in_clusters(2, (2, 2, 1)),
    "in-place": lambda: doubled(3),
    "in-place-in-two-versions": lambda: doubled_beside(3),
    "copied-by-all": lambda: copied_by_all(4),
}
AT_RUN_TIME: dict[str, tuple[Callable[[], Any], list[dict[str, Value]]]] = {
    "weights": (
        lambda: dequantised(6, stages=2, at_run_time=True).function,
        [{"steps": n} for n in range(6)],
    ),
    "scaled": (
        lambda: scaled(6, stages=2, at_run_time=True).function,
        [{"steps": n} for n in range(6)],
    ),
    "for": (
        lambda: irregular([3, 1, -1, 0, 4], stages=2).function,
        [{"steps": [3, 1, -1, 0, 4]}, {"steps": [0, 0, 5, -1, 1]}],
    ),
    "while": (
        lambda: irregular([3, -1, 1], stages=3, form="while").function,
        [{"steps": [3, -1, 1]}, {"steps": [7, 0, 4]}],
    ),
    "guarded": (
        lambda: guarded([1] * 7, stages=2).function,
        [{"mask": mask} for mask in ([1, 0, 1, 1, 0, 0, 1], [0] * 7, [0, 1] * 4, [1] * 7)],
    ),
    "two loops": (
        lambda: two_loops(3, 4, stages=(2, 2)).function,
        [{"steps": rounds} for rounds in ([3, 4], [0, 1], [4, 0], [1, 2])],
    ),
    "squares": (
        lambda: in_clusters(1, (2, 2, 1), at_run_time=True),
        [{"k": 64 * n} for n in (0, 1, 2, 3, 5)],
    ),
}
"""By name: a kernel, and what it reads at run time."""


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", KERNELS)
def test_no_order_goes_wrong(name: str) -> None:
    """One order proves it for all."""
    proved = prove(lowered(KERNELS[name]()).program())
    assert proved.violation is None, str(proved.violation)
    assert proved.unordered is None
    assert proved.events > 50


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", AT_RUN_TIME)
def test_no_order_goes_wrong_whatever_the_tensors_hold(name: str) -> None:
    kernel, choices = AT_RUN_TIME[name]
    made = lowered(kernel())
    for values in choices:
        violation = made.violation(**values)
        assert violation is None, f"{values}: {violation}"


SMALL = ("gemm-2", "gemm-4", "attention-2", "weights", "weights-in-shared-memory", "persistent")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", SMALL)
def test_every_order_is_what_one_of_them_proved(name: str) -> None:
    """All orders of groups of 128 threads are followed, with fills that end at any time."""
    explored = explore(lowered(KERNELS[name]()).program(unit=GROUP))
    assert explored.violation is None, str(explored.violation)
    assert explored.states > 100


def test_every_order_of_a_pair_of_blocks() -> None:
    explored = explore(lowered(in_clusters(2, (2, 1, 1))).program(unit=GROUP))
    assert explored.violation is None, str(explored.violation)
    assert explored.states > 1000


@pytest.mark.parametrize(
    "kernel",
    [
        lambda: dequantised(6, stages=3, at_run_time=True).function,
        lambda: irregular([1, 1], stages=3, form="while").function,
        lambda: in_clusters(1, (2, 1, 1), stages=3, at_run_time=True),
    ],
    ids=["tensor", "while", "symbol"],
)
def test_which_numbers_of_rounds_are_followed(kernel: Callable[[], Any]) -> None:
    before = lowered(kernel()).before
    rounds = {n for chosen in scenarios_of(before) for n in iterations_of(before, chosen)}
    assert {0, 1, 2, 3, 4, 7} <= rounds


def test_branches_are_taken_in_some_rounds_and_not_in_others() -> None:
    scenarios = scenarios_of(lowered(guarded([1] * 7, stages=2).function).before)
    taken = [[s.element("mask", (k,)) != 0 for k in range(7)] for s in scenarios]
    assert any(all(rounds) for rounds in taken)
    assert not all(any(rounds) for rounds in taken)
    assert any(0 < sum(rounds) < 7 for rounds in taken)


def test_arrivals_that_change_places_are_followed_in_every_order() -> None:
    """A block may release a tile of its neighbour twice before that one has done so once.

    Whoever releases tiles of two blocks tells one first. Its next arrival there waits for the
    copies of that block alone, so it may come before the last one of somebody who is late at the
    other. Phases complete by the number of arrivals: no single order proves anything.
    """
    made = load("hopper/cluster_multicast").matmul.get_tir(256, 128, 256, stages=2)
    program = lowered(made).program()
    proved = prove(program)
    assert proved.violation is None
    assert proved.unordered is not None
    assert "nothing tells that phase 0 is over" in proved.unordered.what
    assert lowered(made).violation() is None
