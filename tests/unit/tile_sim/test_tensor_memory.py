"""Products with sums in tensor memory, and with a factor there: right, and broken in one place."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from support.emulated import Program, line_of, poison, whole
from tile_core.errors import BarrierMisuse, DataRace, Deadlock, MissingFence, MissingWait, TileError
from tile_sim import checking
from tile_sim.tensor_maps import Boxes

FILE = "tensor_gemm.cu"


def program(broken: int) -> Program:
    def arguments() -> dict[str, Any]:
        return {
            "A": Boxes(whole(128, 320, dtype="float16"), (64, 128), 128),
            "B": Boxes(whole(64, 320, dtype="float16", seed=1), (64, 64), 128),
            "C": poison(128, 64),
            "K": 320,
            "broken": broken,
        }

    return Program(
        FILE, "tensor_gemm", (1,), 160, 49200, arguments, "C",
        lambda A, B, K, broken: A.astype("float32") @ B.astype("float32").T,
    )  # fmt: skip


ORDER = (DataRace, MissingWait)
MISTAKES: dict[int, tuple[str, type[TileError] | tuple[type[TileError], ...], str, str]] = {
    1: ("fewer columns than are used", BarrierMisuse, "clear", "columns 0 to 63 of the 32"),
    2: ("columns taken by one lane", BarrierMisuse, "clear", "1 lanes of a warp took"),
    3: ("columns taken again", BarrierMisuse, "take twice", "gave up the right"),
    4: ("no fence before threads meet", BarrierMisuse, "taken", "without tcgen05_before"),
    5: ("no fence behind", BarrierMisuse, "clear", "without tcgen05_after"),
    6: ("slot filled while it is read", (*ORDER, BarrierMisuse), "expect", ""),
    7: ("sums not cleared", BarrierMisuse, "multiply", "nothing has written it"),
    8: ("stores not fenced", BarrierMisuse, "cleared", "without tcgen05_before"),
    9: ("stores not ordered before products", BarrierMisuse, "multiply", "may still write it"),
    10: ("full not waited for", ORDER, "multiply", ""),
    11: ("no fence behind the wait for tiles", BarrierMisuse, "multiply", "without tcgen05_after"),
    12: ("product beside its columns", BarrierMisuse, "multiply out of place", "columns 32 to 95"),
    13: ("released before the product", ORDER, "multiply late", ""),
    14: ("slot never released", Deadlock, "wait for empty", ""),
    15: ("no arrival for the sums", Deadlock, "wait for all", ""),
    16: ("sums read too early", BarrierMisuse, "read sums", "still adding to"),
    17: ("no fence behind the wait for sums", BarrierMisuse, "read sums", "without tcgen05_after"),
    18: ("sums read beside the columns", BarrierMisuse, "read too far", "columns 32 to 95"),
    19: ("freed while others read", BarrierMisuse, "free or read sums", ""),
    20: ("never freed", BarrierMisuse, "take", "has not freed 64 columns"),
    21: ("fewer columns freed", BarrierMisuse, "free too few", "has not taken"),
    22: ("freed again", BarrierMisuse, "free again", "a second time"),
    23: ("freed by another warp", BarrierMisuse, "free elsewhere", "this warp has not taken"),
    24: ("other columns while sums are added to", BarrierMisuse, "multiply half", "another shape"),
    25: ("started by all lanes", BarrierMisuse, "multiply", "only those of one"),
    26: ("fewer bytes expected", (*ORDER, BarrierMisuse, Deadlock), "copy A or copy B", ""),
    27: ("wait for another phase", BarrierMisuse, "read sums", "still adding to"),
}
"""By number: what is wrong, what finds it, at which line, and words of the message."""


FACTOR_FILE = "tensor_factor.cu"


def of_factor(broken: int) -> Program:
    def arguments() -> dict[str, Any]:
        return {
            "A": whole(128, 128, dtype="float16"),
            "B": whole(32, 128, dtype="float16", seed=1),
            "C": poison(128, 32),
            "broken": broken,
        }

    return Program(
        FACTOR_FILE, "tensor_factor", (1,), 128, 4112, arguments, "C",
        lambda A, B, broken: A.astype("float32") @ B.astype("float32").T,
    )  # fmt: skip


OF_FACTORS: dict[int, tuple[str, type[TileError] | tuple[type[TileError], ...], str, str]] = {
    1: ("B not fenced", MissingFence, "fill or set", ""),
    2: ("A not stored", BarrierMisuse, "set", "reads column 32"),
    3: ("a part of A not stored", BarrierMisuse, "set", "reads column 56"),
    4: ("A stored beside the columns", BarrierMisuse, "keep beside", "columns 48 to 79"),
    5: ("no fence before threads meet", BarrierMisuse, "kept", "without tcgen05_before"),
    6: ("product before all have stored", (*ORDER, BarrierMisuse), "set", ""),
    7: ("no fence behind", BarrierMisuse, "set", "without tcgen05_after"),
    8: ("sums are the factor too", BarrierMisuse, "multiply sums", ""),
    9: ("A stored while it is read", (*ORDER, BarrierMisuse), "keep or fill or set", ""),
    10: ("A stored again before it was read", BarrierMisuse, "keep again", "may still read it"),
}
"""As `MISTAKES`, where the first factor is in tensor memory."""

SCALED_FILE = "tensor_scaled.cu"


def of_scales(broken: int) -> Program:
    def arguments() -> dict[str, Any]:
        rng = np.random.default_rng(7)
        a, b = ((rng.integers(-4, 5, (128, 256)) / 2).astype(ml_dtypes.float8_e4m3fn) for _ in "AB")
        p, q = (
            rng.choice([0.25, 0.5, 1, 2, 4], (128, 8)).astype(ml_dtypes.float8_e8m0fnu)
            for _ in "PQ"
        )
        return {"A": a, "B": b, "P": p, "Q": q, "C": poison(128, 128), "broken": broken}

    def expected(A: Any, B: Any, P: Any, Q: Any, broken: int) -> np.ndarray:
        left, right = (
            x.astype("float64") * s.astype("float64").repeat(32, axis=1)
            for x, s in ((A, P), (B, Q))
        )
        return (left @ right.T).astype("float32")

    return Program(
        SCALED_FILE, "tensor_scaled", (1,), 128, 33808, arguments, "C", expected
    )  # fmt: skip


WRONG_SCALES = {1: "rows one after the other", 8: "the next groups", 9: "A's for B"}
"""By number: what only the results tell of."""

OF_SCALES: dict[int, tuple[str, type[TileError] | tuple[type[TileError], ...], str, str]] = {
    2: ("scales not fenced", MissingFence, "copy A or copy B or set", ""),
    3: ("B's copied by another thread", BarrierMisuse, "set or copy elsewhere", ""),
    4: ("A's not copied", BarrierMisuse, "set", "reads scales in column 128"),
    5: ("B's not copied", BarrierMisuse, "set", "reads scales in column 132"),
    6: ("copied beside the columns", BarrierMisuse, "copy beside", "columns 254 to 257"),
    7: ("copied to sums", BarrierMisuse, "set or copy to sums", "of another shape"),
    10: ("no arrival", (*ORDER, BarrierMisuse), "fill or read sums", ""),
    11: ("copied behind the arrival", (*ORDER, BarrierMisuse), "fill or copy late", ""),
    12: ("filled while they are copied", (*ORDER, BarrierMisuse), "fill again", ""),
}
"""As `MISTAKES`, with scales of groups along K in tensor memory."""

PAIRS_FILE = "tensor_pairs.cu"


def of_pairs(broken: int) -> Program:
    def arguments() -> dict[str, Any]:
        rng = np.random.default_rng(8)
        a, b = (rng.integers(0, 256, (128, 64)).astype(np.uint8) for _ in "AB")
        p, q = (
            rng.choice([0.25, 0.75, 1, 1.5, 3.5], (128, 8)).astype(ml_dtypes.float8_e4m3fn)
            for _ in "PQ"
        )
        if broken == 8:
            p[3, 2] = -p[3, 2]
        return {"A": a, "B": b, "P": p, "Q": q, "C": poison(128, 128), "broken": broken}

    def expected(A: Any, B: Any, P: Any, Q: Any, broken: int) -> np.ndarray:
        left, right = (
            np.stack([x & 15, x >> 4], axis=2).reshape(128, 128).view(ml_dtypes.float4_e2m1fn)
            .astype("float64") * s.astype("float64").repeat(16, axis=1)
            for x, s in ((A, P), (B, Q))
        )  # fmt: skip
        return (left @ right.T).astype("float32")

    return Program(PAIRS_FILE, "tensor_pairs", (1,), 128, 18448, arguments, "C", expected)


WRONG_PAIRS = {3: "B's for A", 5: "the groups before", 7: "powers of two"}
"""By number: what only the results tell of."""

OF_PAIRS: dict[int, tuple[str, type[TileError] | tuple[type[TileError], ...], str, str]] = {
    1: ("scales of pairs not fenced", MissingFence, "copy A or copy B or set", ""),
    4: ("not copied for the second step", BarrierMisuse, "add", "reads scales in column 140"),
    6: ("four groups from the third on", TileError, "set", "the first or last two, or with all"),
    8: ("a negative scale", TileError, "copy A", "a scale is negative"),
    9: ("other columns of pairs", BarrierMisuse, "add half", "another shape"),
}
"""As `MISTAKES`, with pairs of 4-bit floats."""

ALL = [(program, FILE, number, *row) for number, row in MISTAKES.items()]
ALL += [(of_scales, SCALED_FILE, number, *row) for number, row in OF_SCALES.items()]
ALL += [(of_pairs, PAIRS_FILE, number, *row) for number, row in OF_PAIRS.items()]
ALL += [(of_factor, FACTOR_FILE, number, *row) for number, row in OF_FACTORS.items()]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("made", [program, of_factor, of_scales, of_pairs, lambda _: of_pairs(2)])
@pytest.mark.parametrize("async_mode", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:1"])
def test_the_right_kernel_is_found_right(schedule: str, async_mode: str, made: Any) -> None:
    with checking("all", schedule=schedule, async_mode=async_mode):
        assert made(0).run().findings == ()


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", ["forward", "random:1"])
@pytest.mark.parametrize("mistake", ALL, ids=lambda m: m[3])
def test_a_mistake_is_found(mistake: tuple[Any, ...], schedule: str) -> None:
    made, file, number, _, kind, marker, words = mistake
    with checking("all", schedule=schedule, threads=1), pytest.raises(TileError) as caught:
        made(number).run()
    error = caught.value
    assert isinstance(error, kind), str(error)
    lines = {error.span.line, *(note.span.line for note in error.notes if note.span is not None)}
    assert {line_of(file, one) for one in marker.split(" or ")} & lines, str(error)
    assert words in str(error)


WRONG = [(of_scales, number) for number in WRONG_SCALES]
WRONG += [(of_pairs, number) for number in WRONG_PAIRS]


@pytest.mark.parametrize(("made", "number"), WRONG)
def test_other_scales_give_other_sums(made: Any, number: int) -> None:
    with checking("all"), pytest.raises(AssertionError, match="Arrays are not equal"):
        made(number).run()
