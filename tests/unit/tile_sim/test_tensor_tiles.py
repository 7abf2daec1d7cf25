"""Two sums in turn: who multiplies, and who reads meanwhile; right, and broken in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.emulated import Program, line_of, poison, whole
from tile_core.errors import BarrierMisuse, DataRace, Deadlock, MissingWait, TileError
from tile_sim import checking
from tile_sim.tensor_maps import Boxes

FILE = "tensor_tiles.cu"
SCHEDULES = ("forward", "reverse", "random:1", "random:2")


def program(broken: int) -> Program:
    def arguments() -> dict[str, Any]:
        return {
            "A": Boxes(whole(512, 128, dtype="float16"), (64, 128), 128),
            "B": Boxes(whole(64, 128, dtype="float16", seed=1), (64, 64), 128),
            "C": poison(512, 64),
            "broken": broken,
        }

    def expected(A: Any, B: Any, broken: int) -> np.ndarray:
        return A.astype("float32") @ B.astype("float32").T

    return Program(FILE, "tensor_tiles", (1,), 192, 49224, arguments, "C", expected)


ORDER = (DataRace, MissingWait, BarrierMisuse)
Kinds = type[TileError] | tuple[type[TileError], ...]
MISTAKES: dict[int, tuple[str, Kinds, str, str]] = {
    1: ("columns that are no power of two", TileError, "take some", "a power of two"),
    2: ("sums not waited for", BarrierMisuse, "multiply first", "may still read it"),
    3: ("no fence before sums are freed", BarrierMisuse, "free sums", "without tcgen05_before"),
    4: ("freed before they are read", (*ORDER, Deadlock), "multiply first or wait for sums", ""),
    5: ("not freed by one warp", Deadlock, "wait for sums", ""),
    6: (
        "freed once for each warp",
        (*ORDER, Deadlock),
        "wait for sums or multiply first or free sums",
        "",
    ),
    7: ("slot freed twice", (*ORDER, Deadlock), "expect or copy A or wait for full", ""),
    8: ("products never told of", Deadlock, "wait for sums", ""),
    9: ("told of before the last product", BarrierMisuse, "read sums", ""),
    10: ("the other sums are read", BarrierMisuse, "read others", ""),
    11: ("no fence behind the wait", BarrierMisuse, "read sums", "without tcgen05_after"),
    12: ("freed while products are under way", BarrierMisuse, "free", ""),
    13: ("the first product adds", BarrierMisuse, "multiply", "nothing has written it"),
    14: ("products of another phase", BarrierMisuse, "read sums", ""),
    15: ("sums of another phase", (*ORDER, Deadlock), "wait for sums or multiply first", ""),
    16: ("slot freed by another lane", (*ORDER, Deadlock), "expect or copy A or copy B", ""),
    17: ("told of by another lane", BarrierMisuse, "read sums", ""),
}
"""By number: what is wrong, what finds it, at which line, and words of the message."""


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("async_mode", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_right_kernel_is_found_right(schedule: str, async_mode: str) -> None:
    with checking("all", schedule=schedule, async_mode=async_mode):
        assert program(0).run().findings == ()


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("number", MISTAKES, ids=lambda n: MISTAKES[n][0])
def test_a_mistake_is_found(number: int, schedule: str) -> None:
    _, kind, marker, words = MISTAKES[number]
    with checking("all", schedule=schedule, threads=1), pytest.raises(TileError) as caught:
        program(number).run()
    error = caught.value
    assert isinstance(error, kind), str(error)
    lines = {error.span.line, *(note.span.line for note in error.notes if note.span is not None)}
    assert {line_of(FILE, one) for one in marker.split(" or ")} & lines, str(error)
    assert words in str(error)


def test_lanes_that_are_late_miss_a_phase() -> None:
    """The elected lane may go on, and the ring around, while others of its warp still wait."""
    with (
        checking("all", schedule="random:1", async_mode="early", threads=1),
        pytest.raises(Deadlock) as caught,
    ):
        program(19).run()
    notes = {note.span.line for note in caught.value.notes if note.span is not None}
    assert line_of(FILE, "wait for full") in notes


def test_rows_of_another_warp_are_other_rows() -> None:
    with checking("all"), pytest.raises(AssertionError, match="Arrays are not equal"):
        program(18).run()
