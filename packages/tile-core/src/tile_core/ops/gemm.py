"""Matrix multiplication of tiles."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from tile_core.errors import (
    AliasedOperands,
    DtypeMismatch,
    GemmShapeMismatch,
    InternalError,
    Note,
    ShapeMismatch,
)
from tile_core.ir.buffer import Region
from tile_core.ir.build_expr import cast, const, select
from tile_core.ir.expr import Const, Expr, Var
from tile_core.ir.stmt import Alloc, Stmt
from tile_core.ops.loop_builders import (
    accumulator,
    count,
    load,
    matrix_axes,
    nest,
    read,
    seq,
    store,
    write,
)
from tile_core.ops.operator import ControlOperator, Execution, TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.ops.region_pairing import describe, surely_overlap
from tile_core.records import dataclass


class GemmWarpPolicy(IntEnum):
    """How warps divide the tile of C; no effect on results."""

    Square = 0
    FullRow = 1
    FullCol = 2

    def is_square(self) -> bool:
        """Tell whether warps are along both M and N."""
        return self is GemmWarpPolicy.Square

    def is_full_row(self) -> bool:
        """Tell whether all warps are along M."""
        return self is GemmWarpPolicy.FullRow

    def is_full_col(self) -> bool:
        """Tell whether all warps are along N."""
        return self is GemmWarpPolicy.FullCol

    @classmethod
    def from_warp_partition(cls, m_warp: int, n_warp: int) -> GemmWarpPolicy:
        """Return the policy that puts `m_warp` warps along M and `n_warp` along N."""
        if n_warp == 1 and m_warp > 1:
            return cls.FullRow
        return cls.FullCol if m_warp == 1 and n_warp > 1 else cls.Square


@dataclass(frozen=True, slots=True, eq=False)
class Gemm(TileOperator):
    """``c += op(a) @ op(b)``, or ``c = op(a) @ op(b)`` where `clear` holds.

    Parameters
    ----------
    a : Region[..., M, K], or [..., K, M] if `transpose_a`
    b : Region[..., K, N], or [..., N, K] if `transpose_b`
    c : Region[..., M, N]
        The accumulator; its dtype is the one that products of elements are added up in. Leading
        extents of all three are 1; M, N and K are compile-time integers.
    clear : Expr, bool
        Whether previous contents of `c` are dropped; may depend on a loop index.
    wg_wait : int
        Where the MMA is asynchronous: how many MMAs issued later may still be
        in flight when it is left, ``-1`` for any number: `WaitProducts` waits then. Elsewhere,
        and for results, of no effect.
    instruction : str, optional
        The only kind of instruction allowed where the machine has it: ``"async_mma"``. Else the
        target's own choice.
    nibbles : bool
        The operands' bytes are two 4-bit integers each, the first in the low half, with the sign
        of their element type: K counts bytes. Compilers say so, for machines that multiply
        them; operands have K along their rows. With scales they are two ``float4_e2m1fn``.
    scale_a : Region[..., M, groups], optional
    scale_b : Region[..., N, groups], optional
        Both, or none: scales of groups along K, a row for each row of op(a) and column of op(b).
        Element `k` of a row is multiplied by the one of group ``(first_k + k) // group_a``, or
        ``group_b``: exactly, in float32.
    group_a, group_b : int
        Elements along K that share a scale.
    first_k : Expr, optional
        Where along K the operands begin, in elements.
    is_first : Expr, optional
        Compilers say so of pairs of blocks, neighbours in a cluster: each has its own `a` and `c`,
        and half of the columns of op(b). The block for which it holds starts the products of both.

    Raises
    ------
    GemmShapeMismatch
        If M, N or K disagree between operands.
    DtypeMismatch
        If integers meet floats, or floats are accumulated in integers.
    AliasedOperands
        If `c` is one of the operands, or has elements of one: they are read while it is written.

    Notes
    -----
    Products of integers are exact (modulo the accumulator's width). Products of floats are
    exact in float32 for inputs of 16 bits and fewer; the order of addition is free.
    """

    mnemonic: ClassVar[str] = "gemm"
    spellings: ClassVar[tuple[str, ...]] = ("gemm", "gemm_blockscaled")
    execution: ClassVar[Execution] = Execution.COLLECTIVE
    a: Region
    b: Region
    c: Region
    transpose_a: bool
    transpose_b: bool
    clear: Expr
    policy: GemmWarpPolicy = GemmWarpPolicy.Square
    k_pack: int = 1
    wg_wait: int = 0
    instruction: str | None = None
    nibbles: bool = False
    scale_a: Region | None = None
    scale_b: Region | None = None
    group_a: int = 0
    group_b: int = 0
    first_k: Expr | None = None
    is_first: Expr | None = None

    @property
    def scales(self) -> tuple[Region, ...]:
        """The scales of both operands; nothing if these have none."""
        return tuple(s for s in (self.scale_a, self.scale_b) if s is not None)

    def reads(self) -> tuple[Region, ...]:
        """Return both operands, their scales, and the accumulator unless it is always cleared."""
        if isinstance(self.clear, Const) and self.clear.value:
            return (self.a, self.b, *self.scales)
        return (self.a, self.b, *self.scales, self.c)

    def writes(self) -> tuple[Region, ...]:
        """Return the accumulator."""
        return (self.c,)

    def work(self) -> OperatorWork:
        """Return the product; bytes of pairs of 4-bit operands are two of them."""
        m, n, k = self.mnk
        wider = max(self.a.buffer.dtype, self.b.buffer.dtype, key=lambda dtype: dtype.bits)
        name = wider.base
        if self.nibbles:
            name = "float4_e2m1fn" if self.scales else f"{name[:-1]}4"
        return OperatorWork(product=(m, n, 2 * k if self.nibbles else k), operands=name)

    @property
    def mnk(self) -> tuple[int, int, int]:
        """The extents M, N, K; valid once `verify` has passed."""
        c, a = self.c.static_extents, self.a.static_extents
        if a is None or c is None:
            raise InternalError("T.gemm extents were not verified", span=self.span)
        return c[-2], c[-1], a[-2] if self.transpose_a else a[-1]

    def serial_form(self) -> Stmt:
        """Return the triple loop: one accumulator per element of C, K innermost."""
        m, n, k_extent = self.mnk

        def body(at: tuple[Var, ...]) -> Stmt:
            i, j = at
            k = Var("k", i.dtype)
            total = accumulator("total", self.c.buffer.dtype)
            a_at = (k, i) if self.transpose_a else (i, k)
            b_at = (j, k) if self.transpose_b else (k, j)
            a = cast(load(self.a, matrix_axes(self.a), a_at), total.dtype)
            b = cast(load(self.b, matrix_axes(self.b), b_at), total.dtype)
            if self.scale_a is not None and self.scale_b is not None:
                a = a * cast(self.scale_of(self.scale_a, self.group_a, i, k), total.dtype)
                b = b * cast(self.scale_of(self.scale_b, self.group_b, j, k), total.dtype)
            before = cast(load(self.c, matrix_axes(self.c), at), total.dtype)
            return seq(
                Alloc(total),
                write(total, select(self.clear, const(0, total.dtype), before)),
                count(k, k_extent, write(total, read(total) + a * b)),
                store(self.c, matrix_axes(self.c), at, read(total)),
            )

        return nest((m, n), body)

    def scale_of(self, scales: Region, group: int, row: Expr, k: Expr) -> Expr:
        """Return the scale of element `k` of a row."""
        first = const(0, k.dtype) if self.first_k is None else self.first_k
        return load(scales, matrix_axes(scales), (row, (first + k) // group))

    def verify(self) -> None:
        """Check ranks, static extents, M, N, K and element types."""
        a, b, c = (self._matrix_extents(region) for region in (self.a, self.b, self.c))
        m, k = (a[-1], a[-2]) if self.transpose_a else (a[-2], a[-1])
        k_b, n = (b[-1], b[-2]) if self.transpose_b else (b[-2], b[-1])
        for name, left, right in (("M", m, c[-2]), ("K", k, k_b), ("N", n, c[-1])):
            if left != right:
                raise GemmShapeMismatch(
                    f"T.gemm {name} shape check failed: {left} against {right} in "
                    f"{describe(self.a)}{' transposed' * self.transpose_a} @ "
                    f"{describe(self.b)}{' transposed' * self.transpose_b} -> {describe(self.c)}",
                    notes=self._declarations(),
                    hint="set transpose_A or transpose_B, or change the shape of a tile",
                )
        self._verify_dtypes()
        self._verify_apart()

    def _matrix_extents(self, region: Region) -> tuple[int, ...]:
        extents = region.static_extents
        if extents is None or len(extents) < 2 or any(e != 1 for e in extents[:-2]):
            raise ShapeMismatch(
                f"T.gemm needs a matrix of compile-time extents, got {describe(region)}",
                notes=(Note(f"{region.buffer.name} is declared here", region.buffer.span),),
                hint="slice leading dimensions to one element, as in A[k, :, :]",
            )
        return extents

    def _verify_dtypes(self) -> None:
        a, b, c = (r.buffer.dtype for r in (self.a, self.b, self.c))
        if any(dtype.is_bool or dtype.is_handle for dtype in (a, b, c)):
            raise DtypeMismatch(
                f"T.gemm multiplies numbers, got {a} x {b} in {c}",
                notes=self._declarations(),
                hint="copy the truth values into int8 tiles first",
            )
        if a.is_float != b.is_float or (a.is_float and not c.is_float):
            raise DtypeMismatch(
                f"T.gemm cannot accumulate {a} x {b} in {c}",
                notes=self._declarations(),
                hint="copy one operand into a tile of the other's element type first"
                if a.is_float != b.is_float
                else "accumulate floats in a float32 tile",
            )

    def _verify_apart(self) -> None:
        for name, operand in (("A", self.a), ("B", self.b)):
            if surely_overlap(operand, self.c):
                raise AliasedOperands(
                    f"T.gemm adds to {describe(self.c)}, which is its operand {name} too",
                    notes=self._declarations(),
                    hint="add up in a tile of its own: T.alloc_fragment",
                )

    def _declarations(self) -> tuple[Note, ...]:
        return tuple(
            Note(f"{buffer.name} is declared here", buffer.span)
            for buffer in dict.fromkeys(r.buffer for r in (self.a, self.b, self.c))
            if buffer.span is not None
        )


@dataclass(frozen=True, slots=True, eq=False)
class WaitProducts(ControlOperator):
    """Wait until at most `pending` products that were left in flight still are.

    Products end in the order in which they began. Their sums, and what they read, may be
    touched after it; see `Gemm.wg_wait`. Where products run as they are met there is nothing
    to wait for.
    """

    mnemonic: ClassVar[str] = "wait_products"
    spellings: ClassVar[tuple[str, ...]] = ("wait_wgmma", "warpgroup_wait")
    pending: int = 0

    def serial_form(self) -> Stmt:
        """Return nothing: products are complete when they are met."""
        return seq()
