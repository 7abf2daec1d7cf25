"""Products of pairs of blocks, with sums in the tensor memory of both: right, and broken."""

from __future__ import annotations

from typing import Any

import pytest

from support.emulated import Program, line_of, poison, whole
from tile_core.errors import BarrierMisuse, DataRace, Deadlock, MissingWait, TileError
from tile_sim import checking
from tile_sim.tensor_maps import Boxes

FILE = "tensor_blocks.cu"


def program(broken: int) -> Program:
    def arguments() -> dict[str, Any]:
        return {
            "A": Boxes(whole(256, 320, dtype="float16"), (64, 128), 128),
            "B": Boxes(whole(128, 320, dtype="float16", seed=1), (64, 64), 128),
            "C": poison(256, 128),
            "K": 320,
            "broken": broken,
        }

    return Program(
        FILE, "tensor_blocks", (2,), 160, 49208, arguments, "C",
        lambda A, B, K, broken: A.astype("float32") @ B.astype("float32").T,
    )  # fmt: skip


ORDER = (DataRace, MissingWait)
MISTAKES: dict[int, tuple[str, type[TileError] | tuple[type[TileError], ...], str, str]] = {
    1: ("no barrier before columns are taken", BarrierMisuse, "take", "need not have started"),
    2: ("columns of one block", BarrierMisuse, "multiply", "for one"),
    3: ("no fence before blocks meet", BarrierMisuse, "taken", "without tcgen05_before"),
    4: ("no barrier behind", BarrierMisuse, "multiply", "may not have taken its columns"),
    5: ("no fence behind", BarrierMisuse, "clear", "without tcgen05_after"),
    6: ("slot of the second filled while it is read", ORDER, "copy A", ""),
    7: ("bytes of the second not expected", (*ORDER, BarrierMisuse), "copy A or copy B", ""),
    8: ("the second tells itself", Deadlock, "wait for full", ""),
    10: ("sums of the second not cleared", BarrierMisuse, "multiply", "nothing has written it"),
    11: ("stores of the second not fenced", BarrierMisuse, "cleared", "without tcgen05_before"),
    12: ("a warp of the second does not tell", BarrierMisuse, "multiply", "may still write it"),
    13: ("the second multiplies too", BarrierMisuse, "multiply", "the first one does"),
    14: ("the second not waited for", BarrierMisuse, "multiply", "may still write it"),
    15: ("full not waited for", ORDER, "multiply", ""),
    16: ("no fence behind the wait", BarrierMisuse, "multiply", "without tcgen05_after"),
    17: ("products of one block", BarrierMisuse, "multiply alone", "for a pair"),
    18: ("slots of the second never freed", Deadlock, "wait for empty", ""),
    19: ("the second not told of sums", Deadlock, "wait for all", ""),
    20: ("sums of the second read too early", BarrierMisuse, "read sums", ""),
    21: ("no fence behind the wait for sums", BarrierMisuse, "read sums", "without tcgen05_after"),
    22: ("blocks do not meet at the end", (*ORDER, BarrierMisuse), "all are told", ""),
    23: ("fewer columns of the second", BarrierMisuse, "clear", "of the 64 columns"),
    24: ("freed by one block", BarrierMisuse, "free alone", "for a pair"),
    25: ("tiles of the second elsewhere", ORDER, "multiply", ""),
}
"""By number: what is wrong, what finds it, at which line, and words of the message."""


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("async_mode", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:1", "random:2"])
def test_the_right_kernel_is_found_right(schedule: str, async_mode: str) -> None:
    with checking("all", schedule=schedule, async_mode=async_mode):
        assert program(0).run().findings == ()


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", ["forward", "random:1"])
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


def test_the_other_half_gives_other_sums() -> None:
    with checking("all"), pytest.raises(AssertionError, match="Arrays are not equal"):
        program(9).run()
