"""Whether the warpgroups of a block can share a matrix product, and how."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.layout import Fragment, Layout, OperandTile, boxed_operand, operand_tile
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm, GemmWarpPolicy
from tile_core.simt.context import SimtContext
from tile_core.simt.packing import storage_dtype
from tile_core.simt.warps import WarpTiling, permuted
from tile_cuda.atoms_wgmma import ROWS, THREADS, WarpgroupProduct, product_for

LayoutOf: TypeAlias = Callable[[Buffer], "Layout | Fragment | None"]
"""The layout already fixed for a buffer, if any."""


@dataclass(frozen=True, slots=True)
class SharedFactor:
    """A factor that instructions read from shared memory.

    Parameters
    ----------
    region
        Where it is; the origin of its last two dimensions is known at compile time.
    tile
        How descriptors see the buffer.
    is_k_last
        Whether neighbours along K are neighbours in the buffer's last dimension (K-major).
    """

    region: Region
    tile: OperandTile
    is_k_last: bool

    @property
    def origin(self) -> tuple[int, int]:
        """Where the region begins: first `x` (row of A, column of B), first `k`."""
        first, second = (static_value(s) or 0 for s in self.region.starts[-2:])
        return (first, second) if self.is_k_last else (second, first)

    def misfit(self, x: int, k: int) -> str | None:
        """Return why instructions cannot begin at all multiples of `x` and `k` in the region."""
        first_x, first_k = self.origin
        for dx, dk in ((0, 0), (x, k)):
            why = self.tile.misfit(first_x + dx, first_k + dk, is_k_last=self.is_k_last)
            if why is not None:
                return why
        return None


@dataclass(frozen=True, slots=True)
class WarpgroupPlan:
    """A product as the warpgroups of a block share it.

    Parameters
    ----------
    tiling
        The instruction, and the grid of warpgroups in place of warps.
    a
        The first factor, None if it is in registers.
    b
        The second factor.
    """

    tiling: WarpTiling
    a: SharedFactor | None
    b: SharedFactor


def refusal(op: Gemm, machine: SimtMachine) -> str | None:
    """Return why no warpgroups of `machine` can compute `op`, None if it depends on the block."""
    a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
    product = product_for(machine, a, b, c)
    if product is None:
        return f"{machine.name} has no product of warpgroups of {a} by {b} into {c}"
    m, n, k = op.mnk
    if m % ROWS:
        return f"M is {m}, no multiple of {ROWS}, the rows of a warpgroup's product"
    if product.columns(n) is None:
        return f"N is {n}, no multiple of 8"
    if k % product.k:
        return f"K is {k}, no multiple of {product.k}, one step of {a}"
    if op.b.buffer.scope is not Scope.SHARED:
        return f"B, {op.b.buffer.name!r}, is not in shared memory, where warpgroups read it"
    if op.a.buffer.scope not in (Scope.SHARED, Scope.FRAGMENT):
        return f"A, {op.a.buffer.name!r}, is neither in shared memory nor a fragment"
    return _sums_refusal(op.c) or _turn_refusal(op, product) or _place_refusal(op)


def _sums_refusal(region: Region) -> str | None:
    shape, extents = region.buffer.static_shape, region.static_extents
    if region.buffer.scope is not Scope.FRAGMENT:
        return f"C, {region.buffer.name!r}, is no fragment"
    if shape is None or extents is None or shape[-2:] != extents[-2:]:
        return f"C is only a part of {region.buffer.name!r}"
    return None


def _turn_refusal(op: Gemm, product: WarpgroupProduct) -> str | None:
    """Return which factor's rows are steps of K although the instructions cannot turn them."""
    if product.turns:
        return None
    for name, region, turned in (("A", op.a, op.transpose_a), ("B", op.b, not op.transpose_b)):
        if turned and region.buffer.scope is Scope.SHARED:
            dtype = region.buffer.dtype
            return (
                f"rows of {name}, {region.buffer.name!r}, are not along K, and warpgroups turn "
                f"only elements of 16 bits, not {dtype}"
            )
    return None


def _place_refusal(op: Gemm) -> str | None:
    for name, region in (("A", op.a), ("B", op.b)):
        if region.buffer.scope is not Scope.SHARED:
            shape, extents = region.buffer.static_shape, region.static_extents
            if shape is None or extents is None or shape[-2:] != extents[-2:]:
                return f"{name} is only a part of the fragment {region.buffer.name!r}"
        elif any(static_value(s) is None for s in region.starts[-2:]):
            return f"the place of {name} in {region.buffer.name!r} varies at run time"
    return None


def warpgroup_plan(
    op: Gemm,
    machine: SimtMachine,
    threads: int,
    layout_of: LayoutOf,
    block_threads: int | None = None,
) -> WarpgroupPlan | str:
    """Return how `threads` threads share `op`, or why they cannot, in words.

    Parameters
    ----------
    block_threads
        Those of the block, if there are others: all of them have equally many registers when the
        block starts, and the assembler holds instructions to that number.
    layout_of
        What is known of the tiles in shared memory; those of which nothing is get the layout
        of `boxed_operand`.
    """
    why = refusal(op, machine)
    product = product_for(machine, *(str(r.buffer.dtype) for r in (op.a, op.b, op.c)))
    if why is not None or product is None:
        return why or "there is no such instruction"
    if threads % THREADS:
        return f"{threads} threads are no whole warpgroups of {THREADS}"
    b = _factor(op.b, op.transpose_b, layout_of)
    a = None
    if op.a.buffer.scope is Scope.SHARED:
        a = _factor(op.a, not op.transpose_a, layout_of)
    for found in (a, b):
        if isinstance(found, str):
            return found
    if isinstance(a, str) or isinstance(b, str):
        return "a factor has no descriptor"
    registers = _registers(machine, block_threads or threads)
    return _shared_out(op, product, threads // THREADS, registers, a, b)


def sums_fragment(op: Gemm, plan: WarpgroupPlan) -> Fragment:
    """Return how the sums of a product lie in registers."""
    lead = (op.c.buffer.static_shape or ())[:-2]
    return permuted(plan.tiling.c_fragment(), (0, 1), lead)


def is_spread(held: Fragment, wanted: Fragment) -> bool:
    """Whether a tile lies in registers as it is wanted."""
    return held == wanted or held.same_function(wanted)


def is_shared_out(op: Gemm, ctx: SimtContext) -> bool:
    """Whether warpgroups compute a product, now that layouts are known."""
    plan = warpgroup_plan(
        op, ctx.machine, ctx.threads, ctx.layout_of, math.prod(ctx.launch.threads)
    )
    if isinstance(plan, str):
        return False
    return is_spread(ctx.fragment_of(op.c.buffer), sums_fragment(op, plan))


def _registers(machine: SimtMachine, threads: int) -> int:
    """Return how many registers each of `threads` threads can have."""
    shared = machine.multiprocessor
    return min(machine.registers, shared.registers // threads if shared else machine.registers)


def _factor(region: Region, is_k_last: bool, layout_of: LayoutOf) -> SharedFactor | str:
    buffer = region.buffer
    bits = storage_dtype(buffer.dtype, buffer.scope).bits
    known = layout_of(buffer)
    try:
        layout = (
            known if isinstance(known, Layout) else boxed_operand(buffer.static_shape or (), bits)
        )
        return SharedFactor(region, operand_tile(layout, bits), is_k_last)
    except LayoutError as why:
        return f"no descriptor describes {buffer.name!r}: {why.message}"


def _shared_out(
    op: Gemm,
    product: WarpgroupProduct,
    groups: int,
    registers: int,
    a: SharedFactor | None,
    b: SharedFactor,
) -> WarpgroupPlan | str:
    m, n, k = op.mnk
    why: str | None = None
    for m_groups, n_groups in _grids(m // ROWS, n, groups, op.policy):
        own = n // n_groups
        columns = product.columns(own, 8 if b.is_k_last else b.tile.span_elements, registers)
        if columns is None:
            continue
        apart = own if n_groups > 1 else columns if own > columns else 0
        why = b.misfit(apart, product.k)
        if why is None and a is not None:
            why = a.misfit(ROWS, product.k)
        if why is not None:
            continue
        atom = product.atom(columns)
        tiling = WarpTiling(
            atom, m_groups, n_groups, m // ROWS // m_groups, own // columns, k // product.k
        )
        return WarpgroupPlan(tiling, a, b)
    return why or (
        f"{groups} warpgroups cannot share {m} x {n} sums: each would need the same number of "
        f"blocks of {ROWS} rows, and columns in a multiple of 8"
    )


def _grids(
    rows: int, columns: int, groups: int, policy: GemmWarpPolicy
) -> Iterator[tuple[int, int]]:
    """Yield warpgroups along M and along N, the preferred grid first.

    Along M each factor is read fewest times: B by every group, in one wide instruction.
    """
    found = [
        (m, groups // m)
        for m in range(1, groups + 1)
        if groups % m == 0 and rows % m == 0 and columns % (groups // m) == 0
    ]
    yield from found if policy is GemmWarpPolicy.FullCol else reversed(found)
