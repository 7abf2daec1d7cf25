"""Which copies hardware can make asynchronously, as far as their tensors tell."""

from __future__ import annotations

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Extent
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import pair

LEAST_BITS = 32
"""What hardware copies asynchronously is at least so many neighbouring bits, aligned."""


def may_be_asynchronous(copy: Copy | None, env: ConstraintSet, bits: int = LEAST_BITS) -> bool:
    """Whether nothing in `copy` is known to need the registers of threads.

    Layouts are not chosen yet: this looks at the tensor alone. So many `bits` of neighbours are
    copied together, aligned to as many.
    """
    if copy is None:
        return False
    source, axes = copy.src, pair(copy.src, copy.dst).src_axes
    width = -(-bits // source.buffer.dtype.bits)
    if width == 1:
        return True
    strides = strides_of(source.buffer)
    moving = [d for d, axis in enumerate(axes) if axis is not None]
    if not moving or static_value(strides[moving[-1]]) != 1:
        return False
    whole_steps = all(divides(width, (strides[d],), env) for d in moving[:-1])
    inside = divides(width, (source.buffer.shape[moving[-1]],), env)
    starts = zip(source.starts, strides, strict=True)
    return whole_steps and inside and all(divides(width, start, env) for start in starts)


def divides(number: int, factors: tuple[Extent, ...], env: ConstraintSet) -> bool:
    """Whether the product of `factors` is known to be a multiple of `number`."""
    product = 1
    for factor in factors:
        product *= env.multiple_of(factor)
    return product % number == 0


def strides_of(buffer: Buffer) -> tuple[Extent, ...]:
    """Return the distance in elements of neighbours in each dimension."""
    if buffer.strides is not None:
        return buffer.strides
    strides: list[Extent] = [1]
    for extent in reversed(buffer.shape[1:]):
        step = strides[-1]
        both_static = isinstance(extent, int) and isinstance(step, int)
        strides.append(step * extent if both_static else as_expr(step) * as_expr(extent))
    return tuple(reversed(strides))
