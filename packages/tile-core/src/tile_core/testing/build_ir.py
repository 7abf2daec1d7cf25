"""Short ways to write tile IR by hand, for tests: buffers, statements, kernels.

Bodies of loops and launches are functions of their indices that return statements:

>>> a, b = tensor("A", (7,)), tensor("B", (7,))
>>> double = kernel([a, b], 1, lambda bx: parallel((7,), lambda i: store(b, i, load(a, i) * 2.0)))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.build_expr import as_expr, cast
from tile_core.ir.expr import AddressOf, Call, Expr, Extent, Load, StringConst, Var
from tile_core.ir.stmt import (
    Alloc,
    Evaluate,
    For,
    If,
    Kernel,
    Launch,
    Let,
    LoopKind,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.gemm import Gemm, GemmWarpPolicy
from tile_core.ops.reduce import Reduce, ReduceKind

Shape: TypeAlias = "tuple[Extent, ...]"
Operand: TypeAlias = "Buffer | Region"
Body: TypeAlias = "Callable[..., Any]"

INT32 = dtype_of("int32")


def tensor(
    name: str, shape: Shape, dtype: str = "float32", *, strides: Shape | None = None
) -> Buffer:
    """Return a global tensor."""
    return Buffer(name, shape, dtype_of(dtype), Scope.GLOBAL, strides)


def shared(name: str, shape: Shape, dtype: str = "float32") -> Buffer:
    """Return a tile of shared memory; `alloc` it in the body."""
    return Buffer(name, shape, dtype_of(dtype), Scope.SHARED)


def fragment(name: str, shape: Shape, dtype: str = "float32") -> Buffer:
    """Return a register tile; `alloc` it in the body."""
    return Buffer(name, shape, dtype_of(dtype), Scope.FRAGMENT)


def local(name: str, shape: Shape, dtype: str = "float32") -> Buffer:
    """Return a thread-private array; `alloc` it in the body."""
    return Buffer(name, shape, dtype_of(dtype), Scope.LOCAL)


def variable(name: str, dtype: str = "float32") -> Buffer:
    """Return a thread-private mutable scalar; `alloc` it in the body."""
    return Buffer(name, (1,), dtype_of(dtype), Scope.VAR)


def view(buffer: Buffer, shape: Shape, dtype: str | None = None) -> Buffer:
    """Return the bits of `buffer` under another shape or element type."""
    name = f"{buffer.name}_view"
    return Buffer(name, shape, dtype_of(dtype or buffer.dtype), buffer.scope, origin=buffer)


def symbol(name: str, dtype: str = "int32") -> Var:
    """Return a symbolic dimension, or a scalar parameter."""
    return Var(name, dtype_of(dtype))


def value(number: int | float, dtype: str = "int32") -> Expr:
    """Return a constant of `dtype`."""
    return cast(as_expr(number, dtype_of(dtype)), dtype_of(dtype))


def region(buffer: Buffer, starts: Sequence[Any], extents: Sequence[Any]) -> Region:
    """Return the box of `extents` at `starts`."""
    return Region(buffer, tuple(starts), tuple(extents))


def operand(thing: Operand) -> Region:
    """Return a region; a buffer means all of it."""
    return whole(thing) if isinstance(thing, Buffer) else thing


def load(buffer: Buffer, *indices: Any) -> Load:
    """Return ``buffer[indices]``."""
    return Load(buffer, tuple(as_expr(i) for i in indices))


def call_atomic(
    name: str, buffer: Buffer, indices: Sequence[Any], *values: Any, order: str = "relaxed"
) -> Call:
    """Return ``atomic_<name>(&buffer[indices], values…)``."""
    address = AddressOf(buffer, tuple(as_expr(i) for i in indices))
    args = tuple(cast(as_expr(v, buffer.dtype), buffer.dtype) for v in values)
    return Call(f"atomic_{name}", (address, *args, StringConst(order)), buffer.dtype)


# Statements ----------------------------------------------------------------------------------


def seq(*items: Any) -> Stmt:
    """Return statements in order; nested lists are flattened, None is dropped."""
    flat = tuple(_flatten(items))
    return flat[0] if len(flat) == 1 else Seq(flat)


def _flatten(items: Iterable[Any]) -> Iterable[Stmt]:
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from _flatten(item)
        elif item is not None:
            yield item


def alloc(*buffers: Buffer) -> list[Stmt]:
    """Return the allocations of `buffers`."""
    return [Alloc(b) for b in buffers]


def store(buffer: Buffer, indices: Any, what: Any) -> Store:
    """Return ``buffer[indices] = what``, converted to the buffer's dtype."""
    places = indices if isinstance(indices, tuple) else (indices,)
    where = tuple(as_expr(i) for i in places)
    lanes = where[-1].dtype.lanes if where else 1
    dtype = buffer.dtype.with_lanes(lanes)
    return Store(buffer, where, cast(as_expr(what, buffer.dtype), dtype))


def evaluate(what: Expr) -> Evaluate:
    """Return the statement that evaluates `what` for its effect."""
    return Evaluate(what)


def let(name: str, what: Any, body: Body) -> Stmt:
    """Return ``name = what`` followed by ``body(name)``."""
    expr = as_expr(what)
    var = Var(name, expr.dtype)
    return seq(Let(var, expr), body(var))


def parallel(extents: Sequence[Any], body: Body) -> Parallel:
    """Return a data-parallel loop; `body` takes one index per extent."""
    names = ("i", "j", "k", "l", "m", "n")
    loop_vars = tuple(Var(n, INT32) for n in names[: len(extents)])
    return Parallel(loop_vars, tuple(as_expr(e) for e in extents), seq(body(*loop_vars)))


def serial(stop: Any, body: Body, start: Any = 0, step: Any = 1, name: str = "s") -> For:
    """Return a sequential loop; `body` takes its index."""
    var = Var(name, INT32)
    first, last, by = (as_expr(x) for x in (start, stop, step))
    return For(var, first, last, by, seq(body(var)), LoopKind.SERIAL)


def pipelined(stop: Any, body: Body, stages: int = 2, start: Any = 0) -> Pipelined:
    """Return a pipelined loop; `body` takes its index."""
    var = Var("ko", INT32)
    return Pipelined(var, as_expr(start), as_expr(stop), seq(body(var)), stages)


def loop_while(cond: Expr, *body: Any) -> While:
    """Return ``while cond: body``."""
    return While(cond, seq(*body))


def when(cond: Expr, then: Any, otherwise: Any = None) -> If:
    """Return ``if cond: then else: otherwise``."""
    return If(cond, seq(then), None if otherwise is None else seq(otherwise))


def copy(src: Operand, dst: Operand) -> Copy:
    """Return ``T.copy(src, dst)``."""
    return Copy(operand(src), operand(dst))


def fill(dst: Operand, what: int | float | Expr) -> Fill:
    """Return ``T.fill(dst, what)``."""
    where = operand(dst)
    return Fill(where, cast(as_expr(what, where.buffer.dtype), where.buffer.dtype))


def gemm(
    a: Operand,
    b: Operand,
    c: Operand,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    clear: bool | Expr = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    k_pack: int = 1,
) -> Gemm:
    """Return ``T.gemm(a, b, c, …)``."""
    condition = as_expr(clear)
    return Gemm(
        operand(a), operand(b), operand(c), transpose_a, transpose_b, condition, policy, k_pack
    )


def reduce(
    kind: str,
    src: Operand,
    dst: Operand,
    dim: int,
    *,
    clear: bool = True,
    nan_propagate: bool = False,
) -> Reduce:
    """Return ``T.reduce_<kind>(src, dst, dim, clear)``."""
    return Reduce(ReduceKind(kind), operand(src), operand(dst), dim, clear, nan_propagate)


# Kernels -------------------------------------------------------------------------------------


def launch(
    grid: Any, body: Body, *, threads: int | tuple[int, ...] = 1, thread_indices: bool = False
) -> Launch:
    """Return a grid of blocks; `body` takes block indices, then x, y, z if `thread_indices`."""
    extents = grid if isinstance(grid, tuple) else (grid,)
    block_vars = tuple(Var(n, INT32) for n in ("bx", "by", "bz")[: len(extents)])
    thread_vars = (Var("tx", INT32), Var("ty", INT32), Var("tz", INT32))
    counts = (threads,) if isinstance(threads, int) else threads
    padded = (*counts, 1, 1, 1)
    inside = body(*block_vars, *thread_vars) if thread_indices else body(*block_vars)
    return Launch(
        block_vars,
        tuple(as_expr(e) for e in extents),
        thread_vars,
        (padded[0], padded[1], padded[2]),
        seq(inside),
    )


def kernel(
    params: Sequence[Buffer | Var],
    grid: Any,
    body: Body,
    *,
    threads: int | tuple[int, ...] = 1,
    thread_indices: bool = False,
    outputs: tuple[int, ...] = (),
    name: str = "main",
) -> Kernel:
    """Return a kernel of one launch; see `launch`."""
    one = launch(grid, body, threads=threads, thread_indices=thread_indices)
    return Kernel(name, tuple(params), one, outputs=outputs)


def dtype(name: str) -> DType:
    """Return the element type spelt `name`."""
    return dtype_of(name)
