"""Copies, fills, transposes, image patches and tile atomics as scalar loops."""

from __future__ import annotations

from tile_core.ir.arith import all_of, as_expr, call, cast, const, select
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import AddressOf, Expr, Extent, Load, StringConst, Var
from tile_core.ir.stmt import Evaluate, Stmt
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy, Im2col, Transpose
from tile_core.ops.fill import Fill
from tile_core.ops.pairing import pair
from tile_core.ops.serial.loops import element, load, nest, store


def expand_copy(op: Copy) -> Stmt:
    """Return loops over the pairing's iteration space, one converted element at a time."""
    pairing = pair(op.src, op.dst, op.span)

    def body(at: tuple[Var, ...]) -> Stmt:
        return store(op.dst, pairing.dst_axes, at, load(op.src, pairing.src_axes, at))

    return nest(pairing.extents, body)


def expand_fill(op: Fill) -> Stmt:
    """Return loops that store the value to each element of the region."""
    axes = tuple(range(len(op.dst.extents)))
    return nest(op.dst.extents, lambda at: store(op.dst, axes, at, op.value))


def expand_transpose(op: Transpose) -> Stmt:
    """Return loops over the source that store with the last two indices swapped."""
    rank = len(op.src.extents)
    src_axes = tuple(range(rank))
    dst_axes = (*range(rank - 2), rank - 1, rank - 2)
    return nest(op.src.extents, lambda at: store(op.dst, dst_axes, at, load(op.src, src_axes, at)))


def expand_atomic(op: AtomicTile) -> Stmt:
    """Return loops with one scalar atomic per element."""
    pairing = pair(op.src, op.dst, op.span)

    def body(at: tuple[Var, ...]) -> Stmt:
        target = AddressOf(op.dst.buffer, element(op.dst, pairing.dst_axes, at))
        value = cast(load(op.src, pairing.src_axes, at), op.dst.buffer.dtype)
        order = StringConst(op.memory_order)
        return Evaluate(call(f"atomic_{op.kind.value}", target, value, order))

    return nest(pairing.extents, body)


def expand_im2col(op: Im2col) -> Stmt:
    """Return loops over the tile of columns; patches beyond the image give zero."""
    n_images, height, width, channels = (as_expr(e) for e in op.image.shape)
    out_h, out_w = (patch_count(op, op.image.shape[axis]) for axis in (1, 2))
    rows, columns = op.columns.extents[-2:]
    rank = len(op.columns.extents)

    def body(at: tuple[Var, ...]) -> Stmt:
        i, j = at[-2:]
        m = op.nhw_step * as_expr(rows) + i
        k = op.c_step * as_expr(columns) + j
        n = m // (out_h * out_w)
        tap_y, tap_x = k // (channels * op.kernel), k // channels % op.kernel
        y = m % (out_h * out_w) // out_w * op.stride + tap_y * op.dilation - op.pad
        x = m % out_w * op.stride + tap_x * op.dilation - op.pad
        zero = const(0, op.image.dtype)
        inside = all_of([n < n_images, y >= 0, y < height, x >= 0, x < width, tap_y < op.kernel])
        value = select(inside, Load(op.image, (n, y, x, k % channels)), zero)
        return store(op.columns, tuple(range(rank)), at, value)

    return nest(op.columns.extents, body)


def patch_count(op: Im2col, size: Extent) -> Expr:
    """Return how many patches fit along an image dimension of `size` pixels."""
    reach = op.dilation * (op.kernel - 1) + 1
    fixed = static_value(size)
    if fixed is not None:
        return const((fixed + 2 * op.pad - reach) // op.stride + 1)
    return (as_expr(size) + (2 * op.pad - reach)) // op.stride + 1
