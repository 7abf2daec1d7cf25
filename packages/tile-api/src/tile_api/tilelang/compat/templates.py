"""`tilelang.carver.template`: tile sizes for common operators, the most promising first.

The model is a small one. A block's tile costs the larger of its arithmetic and its traffic with
global memory, blocks run in waves over the multiprocessors, and what does not fit into shared
memory or registers is left out. `tile_api.cost` knows more about a kernel that exists.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_api.tilelang.compat.archs import Device, auto_infer_current_arch
from tile_api.tilelang.unsupported import Unsupported
from tile_core.dtypes import dtype_of, normalise_dtype

FLOPS_PER_BYTE = 100.0
"""Arithmetic that a multiprocessor does while a byte comes from global memory."""


class NoRasterization:
    """Blocks run in the order of the grid."""


class Rasterization2DRow:
    """Blocks run in panels of rows."""

    def __init__(self, panel_width: int = 4) -> None:
        self.panel_width_ = panel_width


class Rasterization2DColumn(Rasterization2DRow):
    """Blocks run in panels of columns."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Sizes of a kernel."""

    block: list[int]  # elements of the result per block
    warp: list[int]  # the same per warp
    rstep: list[int]  # elements per step of the loop over what is summed
    thread: list[int]  # along each axis of the block, where warps share no instructions
    pipeline_stage: int = 1  # steps in flight; 1 means none ahead
    use_tc: bool = False
    use_async: bool = False
    rasterization_plan: Any = NoRasterization
    vectorize: dict[str, int] = field(default_factory=dict)
    cost: float = 0.0  # what the model thinks, in units of its own


@dataclass(slots=True)
class BaseTemplate(ABC):
    """An operator whose tile sizes are wanted; `with_arch` says for which machine."""

    _arch: Device | None = field(default=None, init=False)

    def with_arch(self, arch: Device) -> Any:
        """Set the machine and return the template."""
        self._arch = arch
        return self

    @property
    def arch(self) -> Device:
        """The machine: the one that programs are told of, unless one was set."""
        return self._arch or auto_infer_current_arch()

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """Return the `topk` most promising sizes, the best first."""
        return sorted(self._candidates(), key=lambda hint: hint.cost)[:topk]

    def get_hardware_aware_configs(self, arch: Device | None = None, topk: int = 10) -> list[Hint]:
        """Return the `topk` most promising sizes for a machine, the best first."""
        if arch is not None:
            self._arch = arch
        return self.recommend_hints(topk)

    def has_arch(self) -> bool:
        """Tell whether a machine was set."""
        return self._arch is not None

    def equivalent_function(self) -> Any:
        """Return a name for the operator: there is no other form of it, and using it raises."""
        return Unsupported(f"{type(self).__name__}.equivalent_function()", "roller")

    @abstractmethod
    def _candidates(self) -> Iterator[Hint]:
        """Yield sizes that fit the machine, with what each is expected to cost."""

    def _products(self, m: int, n: int, k: int, bits: int) -> Iterator[Hint]:
        """Yield tiles of a matrix product of factors of `bits` bits."""
        arch = self.arch
        sizes = (16, 32, 64, 128, 256)
        for bm, bn, bk in itertools.product(sizes, sizes, (16, 32, 64, 128)):
            if (bm > 16 and bm >= 2 * m) or (bn > 16 and bn >= 2 * n) or (bk > 16 and bk >= 2 * k):
                continue
            rows, columns = _warps(bm, bn)
            stages = min(4, max(1, arch.smem_cap * 8 // ((bm + bn) * bk * bits)))
            fits = (bm + bn) * bk * bits <= arch.smem_cap * 8
            if not fits or bm * bn > 255 * 128 * rows * columns // 2:
                continue
            steps = math.ceil(k / bk)
            waves = math.ceil(math.ceil(m / bm) * math.ceil(n / bn) / arch.compute_max_core)
            traffic = (bm + bn) * bk * bits / 8 * FLOPS_PER_BYTE
            work = 2.0 * bm * bn * bk
            overlap = max(traffic, work) if stages > 1 else traffic + work
            yield Hint(
                [bm, bn],
                [bm // rows, bn // columns],
                [bk],
                [rows, columns],
                stages,
                use_tc=True,
                use_async=stages > 1,
                cost=waves * (steps * (overlap + _STEP) + bm * bn * 4),
            )

    def _rows(self, outputs: int, summed: int, bits: int) -> Iterator[Hint]:
        """Yield tiles of an operator that reads each number once."""
        arch = self.arch
        for block, step in itertools.product((32, 64, 128, 256, 512, 1024), (1, 16, 64, 256)):
            if step > summed or block >= 2 * outputs > 64:
                continue
            threads = min(256, max(32, block))
            waves = math.ceil(math.ceil(outputs / block) / arch.compute_max_core)
            traffic = block * summed * bits / 8 * FLOPS_PER_BYTE
            cost = waves * (traffic + math.ceil(summed / step) * _STEP)
            wide = max(1, min(block // threads, 128 // bits))
            yield Hint(
                [block],
                [block * 32 // threads],
                [step],
                [threads],
                vectorize={"A": wide},
                cost=cost,
            )


_STEP = 20_000.0
"""What a step of a loop costs beside its arithmetic."""


def _warps(bm: int, bn: int) -> tuple[int, int]:
    """Return how four warps, or fewer where a tile is small, share a tile."""
    rows = 2 if bm >= 32 else 1
    columns = 2 if bn >= 32 else 1
    return (rows * 2, columns) if bm * bn >= 128 * 256 else (rows, columns)


def _bits(dtype: Any) -> int:
    return dtype_of(normalise_dtype(dtype)).bits


@dataclass(slots=True)
class MatmulTemplate(BaseTemplate):
    """C (M, N) = A (M, K) times B (K, N), either of them transposed."""

    M: int = 0
    N: int = 0
    K: int = 0
    trans_A: bool = False
    trans_B: bool = True
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"
    with_bias: bool = False

    def _candidates(self) -> Iterator[Hint]:
        return self._products(self.M, self.N, self.K, _bits(self.in_dtype))


@dataclass(slots=True)
class GEMVTemplate(BaseTemplate):
    """A row of N sums over K."""

    N: int = 0
    K: int = 0
    trans_B: bool = True
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"
    with_bias: bool = False

    def _candidates(self) -> Iterator[Hint]:
        return self._rows(self.N, self.K, _bits(self.in_dtype))


@dataclass(slots=True)
class ElementwiseTemplate(BaseTemplate):
    """A function of each element."""

    shape: Sequence[int] = ()
    dtype: Any = "float16"

    def _candidates(self) -> Iterator[Hint]:
        return self._rows(math.prod(self.shape), 1, _bits(self.dtype))


@dataclass(slots=True)
class GeneralReductionTemplate(BaseTemplate):
    """Sums over some axes: ``structure`` has an S for an axis that stays, an R for a sum."""

    structure: str = "SR"
    shape: Sequence[int] = ()
    dtype: Any = "float16"

    def _candidates(self) -> Iterator[Hint]:
        axes = list(zip(self.structure, self.shape, strict=False))
        stays = math.prod(extent for kind, extent in axes if kind == "S")
        summed = math.prod(extent for kind, extent in axes if kind == "R")
        return self._rows(stays, summed, _bits(self.dtype))


@dataclass(slots=True)
class FlashAttentionTemplate(BaseTemplate):
    """Attention: tiles of queries and keys."""

    batch_size: int = 1
    num_heads: int = 1
    head_dim: int = 1
    seq_length: int = 1
    seq_kv_length: int = 1
    is_causal: bool = False
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"

    def _candidates(self) -> Iterator[Hint]:
        queries = self.batch_size * self.num_heads * self.seq_length
        return self._products(queries, self.seq_kv_length, self.head_dim, _bits(self.in_dtype))


@dataclass(slots=True)
class ConvTemplate(BaseTemplate):
    """A convolution of images (N, H, W, C) with F filters, as a matrix product."""

    N: int = 1
    C: int = 1
    H: int = 1
    W: int = 1
    F: int = 1
    K: int = 1
    S: int = 1
    D: int = 1
    P: int = 0
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"
    with_bias: bool = False

    def _candidates(self) -> Iterator[Hint]:
        height, width = (
            (extent + 2 * self.P - self.D * (self.K - 1) - 1) // self.S + 1
            for extent in (self.H, self.W)
        )
        summed = self.K * self.K * self.C
        return self._products(self.N * height * width, self.F, summed, _bits(self.in_dtype))
