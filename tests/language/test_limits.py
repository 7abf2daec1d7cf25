"""Each limit of the language: the last number on either side is accepted, the next one refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_api.language as T
from support.trace import trace
from tile_core.errors import TileError

Use = Callable[[int], Any]

IN_KERNELS: dict[str, tuple[Use, int | None, int | None]] = {
    "registers of a thread": (lambda n: T.set_max_nreg(n, 1), 24, 240),
    "registers that producers keep": (T.dec_max_nreg, 24, 240),
    "blocks at a time": (T.annotate_min_blocks_per_sm, 1, None),
    "the number of a barrier": (lambda n: T.sync_threads(n, 128), 0, 15),
    "the number of a barrier to arrive at": (lambda n: T.named_barrier_arrive(n, 128), 0, 15),
    "the bytes of a phase": (
        lambda n: T.mbarrier_expect_tx(T.alloc_barrier(1)[0], n), 0, (1 << 20) - 1
    ),
    "the arrivals of a barrier": (T.alloc_barrier, 1, (1 << 20) - 1),
    "stages of a loop": (lambda n: list(T.Pipelined(4, num_stages=n)), 0, 64),
    "an extent of a parallel loop": (lambda n: list(T.Parallel(n)), 0, None),
    "a factor of unrolling": (lambda n: list(T.unroll(4, unroll_factor=n)), 1, None),
    "an extent of a tile": (lambda n: T.alloc_shared((n, 4), "float32"), 1, None),
    "a panel of blocks": (T.use_swizzle, 1, None),
    "the width of a shuffle": (lambda n: T.shfl_xor(T.int32(1), 1, n), 1, 64),
}  # fmt: skip
"""With the least and the greatest number that may be passed; None: there is no such limit."""
STEPS = {"registers of a thread": 8, "registers that producers keep": 8,
         "the width of a shuffle": 64}  # fmt: skip


def is_accepted(use: Use, number: int) -> bool:
    """Whether a kernel may use a number."""
    try:
        trace(lambda: use(number))
    except TileError:
        return False
    return True


@pytest.mark.parametrize("what", IN_KERNELS)
def test_in_kernels(what: str) -> None:
    use, least, most = IN_KERNELS[what]
    step = STEPS.get(what, 1)
    if least is not None:
        assert is_accepted(use, least)
        assert not is_accepted(use, least - step if least >= step else least - 1)
    if most is not None:
        assert is_accepted(use, most)
        assert not is_accepted(use, most + step)


@pytest.mark.parametrize("use", [IN_KERNELS["registers of a thread"][0]])
def test_registers_come_by_eight(use: Use) -> None:
    assert [n for n in range(200, 233) if is_accepted(use, n)] == [200, 208, 216, 224, 232]


def test_widths_of_shuffles_are_powers_of_two() -> None:
    use = IN_KERNELS["the width of a shuffle"][0]
    assert [n for n in range(1, 130) if is_accepted(use, n)] == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize(("threads", "whole"), [(128, [32, 64, 96, 128]), (32, [32])])
def test_whole_warps_meet(threads: int, whole: list[int]) -> None:
    def meet(count: int) -> bool:
        try:
            trace(lambda: T.sync_threads(1, count), threads=threads)
        except TileError:
            return False
        return True

    assert [n for n in range(1, 162) if meet(n)] == whole


@pytest.mark.parametrize(
    ("dtype", "most"),
    [("int8", 127), ("uint8", 255), ("int32", 2**31 - 1), ("uint32", 2**32 - 1),
     ("int64", 2**63 - 1)],
)  # fmt: skip
@pytest.mark.parametrize("keyword", ["min", "max"])
def test_dimensions_fit_their_types(dtype: str, most: int, keyword: str) -> None:
    assert T.dynamic("n", dtype, **{keyword: most}).contract is not None
    with pytest.raises(TileError, match=f"ends at {most}"):
        T.dynamic("n", dtype, **{keyword: most + 1})


@pytest.mark.parametrize(
    ("accepted", "refused"),
    [
        ({"multiple_of": 2}, {"multiple_of": 0}),
        ({"min": 1}, {"min": -1}),
        ({"min": 5, "max": 5}, {"min": 5, "max": 4}),
        ({"min": 5, "max": 8, "multiple_of": 8}, {"min": 5, "max": 7, "multiple_of": 8}),
    ],
)
def test_contracts_of_dimensions(accepted: dict[str, int], refused: dict[str, int]) -> None:
    assert T.dynamic("n", **accepted).contract is not None
    with pytest.raises(TileError):
        T.dynamic("n", **refused)


@pytest.mark.parametrize("ratio", [0, 0.5, 1, 1.0, -0.001, 1.001])
def test_ratios(ratio: float) -> None:
    def ask(A: Any) -> None:
        T.annotate_l2_hit_ratio({A: ratio})

    if 0 <= ratio <= 1:
        trace(ask, A="float32[4]")
        return
    with pytest.raises(TileError, match="lies between 0 and 1"):
        trace(ask, A="float32[4]")


@pytest.mark.parametrize("dim", range(-4, 4))
def test_dimensions_of_reductions(dim: int) -> None:
    def reduce(A: Any) -> None:
        tile = T.alloc_fragment((4, 8), "float32")
        T.copy(A, tile)
        T.reduce_sum(tile, T.alloc_fragment((8,) if dim in (0, -2) else (4,), "float32"), dim=dim)

    if -2 <= dim < 2:
        trace(reduce, A="float32[4, 8]")
        return
    with pytest.raises(TileError, match=f"dim {dim} is outside"):
        trace(reduce, A="float32[4, 8]")
