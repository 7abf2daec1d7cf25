"""Hints to the caches: stores that go past them, and loads that are fetched ahead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Expr, Extent, Load, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import For, Kernel, Parallel, Pipelined, Store, While
from tile_core.ops.operator import TileOperator
from tile_cpu.cpu_machine import CpuMachine, Isa
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.lowering import access
from tile_cpu.lowering.buffer_addresses import FlatBuffer
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.types import lanes_of, number, scalar_name
from tile_cpu.passes.row_loops import FETCH_LEVEL
from tile_cpu.tir.build import extern, i32, llvm_effect, with_lanes
from tile_cpu.tir.nodes import BufferLoad, Evaluate, PrimExpr, tirx
from tile_cpu.tir.nodes import Stmt as TirStmt

SMALLEST_PART = 8
"""Tensors smaller than this part of the last-level cache are stored into it as usual: results
that are larger do not stay in a cache until they are read."""

LARGEST_KEPT = 2
"""A tensor that is larger than one part in so many of the last-level cache does not stay there
between two kernels that read it. A smaller one comes as fast as it is added up."""

READ_AHEAD = 4096
"""Bytes between what a long stretch reads and what it fetches: a page, so that addresses are
translated ahead of time as well."""

LONG_STRETCH = 2 * READ_AHEAD
"""Bytes of a stretch that is read ahead: what is fetched beyond its end is the lesser part."""

_READ, _DATA = 0, 1
_INNER_SHAREABLE_STORES = 10  # ``dmb ishst``


def streamed_buffers(kernel: Kernel, machine: CpuMachine) -> frozenset[Buffer]:
    """Return the tensors whose elements are stored past the caches.

    The kernel's tensors together fill the last-level cache; the tensor is written only, each
    element once as far as loops show, and is itself of some size.
    """
    params = [p for p in kernel.params if isinstance(p, Buffer)]
    sizes = {p: p.nbytes for p in params}
    total = sum(size or 0 for size in sizes.values())
    if total < machine.l3_bytes or any(size is None for size in sizes.values()):
        return frozenset()
    modes: dict[Buffer, set[Mode]] = {}
    for one in accesses(kernel.body):
        modes.setdefault(one.buffer.storage, set()).add(one.mode)
        if one.buffer.storage is not one.buffer:
            modes[one.buffer.storage].add(Mode.READ)
    repeated = set(_written_again(kernel.body, ()))
    return frozenset(
        p
        for p in params
        if modes.get(p) == {Mode.WRITE} and p not in repeated and is_large(sizes[p] or 0, machine)
    )


def comes_from_memory(tensor: Buffer, machine: CpuMachine) -> bool:
    """Whether a tensor does not stay in a cache between two kernels that read it."""
    return tensor.nbytes is not None and tensor.nbytes * LARGEST_KEPT >= machine.l3_bytes


def is_large(nbytes: int, machine: CpuMachine) -> bool:
    """Whether a tensor of `nbytes` is more than a small part of the last-level cache."""
    return nbytes * SMALLEST_PART >= machine.l3_bytes


def _written_again(stmt: Node, loops: tuple[Var | None, ...]) -> Iterator[Buffer]:
    """Yield buffers stored to at a place that some loop around does not move."""
    match stmt:
        case For(var=var) | Pipelined(var=var):
            loops = (*loops, var)
        case Parallel():
            loops = (*loops, *stmt.vars)
        case While():
            loops = (*loops, None)
        case Store(buffer=buffer, indices=indices):
            if not _names_all(indices, loops):
                yield buffer.storage
        case TileOperator():
            for region in stmt.writes():
                if not _names_all(region.starts, loops):
                    yield region.buffer.storage
    for child in stmt.children():
        if not isinstance(child, (Expr, Buffer)):
            yield from _written_again(child, loops)


def _names_all(indices: Iterable[Extent], loops: tuple[Var | None, ...]) -> bool:
    named = {var for at in indices if isinstance(at, Expr) for var in free_variables(at)}
    return all(var in named for var in loops)


def streamed(place: FlatBuffer, offset: PrimExpr, stored: PrimExpr, *, ahead: bool) -> TirStmt:
    """Return the store of a vector past the caches, as far as its address is aligned.

    Addresses may be translated `ahead` of time.
    """
    lanes = lanes_of(stored)
    bits = int("".join(c for c in scalar_name(stored) if c.isdigit()))
    kind = with_lanes(f"int{bits}", lanes)
    raw = reinterpret(stored, kind)
    at = tirx.address_of(BufferLoad(place.flat, [offset]))
    return Evaluate(
        extern("int32", f"tile_{'enter' if ahead else 'stream'}_i{bits}x{lanes}", at, raw)
    )


def fence(machine: CpuMachine) -> TirStmt:
    """Return what makes streamed stores visible to other threads."""
    if machine.isa is Isa.AARCH64:
        return llvm_effect("llvm.aarch64.dmb", i32(_INNER_SHAREABLE_STORES))
    return llvm_effect("llvm.x86.sse.sfence")


def prefetch_next_iteration(ctx: Context, expr: Load, place: FlatBuffer) -> None:
    """Fetch the cache line that `expr`, as a scalar here, reads in the next iteration.

    Nothing happens unless the loop asks for it and the load follows that iteration's index. The
    address may lie outside the tensor: a prefetch never faults.
    """
    if ctx.ahead is None or not expr.buffer.scope.is_global:
        return
    index, level = ctx.ahead
    if not any(node is index for at in expr.indices for node in walk(at)):
        return
    now = ctx.vars[index]
    outer_known, ctx.frame.known = ctx.frame.known, {}
    ctx.vars[index] = now + number(1, scalar_name(now))
    offset = access.position(ctx, place, expr.indices)
    ctx.vars[index], ctx.frame.known = now, outer_known
    _fetch(ctx, place, offset, level)


def read_ahead(ctx: Context, expr: Load, place: FlatBuffer, offset: PrimExpr) -> None:
    """Fetch what lies `READ_AHEAD` bytes beyond `offset`, which `expr` reads now.

    Nothing happens unless the loop at hand is long, and either calls functions and stores past the
    caches or reads its rows in order and stores nothing but what they add up to. The former has few
    reads in flight, which hides neither the latency of memory nor the translation of addresses
    behind them; the latter waits wherever a page ends, which the machine does not fetch beyond. A
    loop that merely moves has many reads, and prefetches would get in their way.
    """
    buffer = expr.buffer
    bits = max(8, buffer.dtype.bits)
    if not buffer.scope.is_global or ctx.stretch * bits < LONG_STRETCH * 8:
        return
    size = buffer.storage.nbytes
    part = LARGEST_KEPT if ctx.only_reads else SMALLEST_PART
    if size is not None and size * part >= ctx.machine.l3_bytes:
        ahead = number(READ_AHEAD * 8 // bits, scalar_name(offset))
        _fetch(ctx, place, offset + ahead, FETCH_LEVEL)


def _fetch(ctx: Context, place: FlatBuffer, offset: PrimExpr, level: int) -> None:
    address = tirx.address_of(BufferLoad(place.flat, [offset]))
    # LLVM counts locality the other way round: 3 is the nearest cache.
    locality = i32(4 - level)
    ctx.run(llvm_effect("llvm.prefetch", address, i32(_READ), locality, i32(_DATA)))
