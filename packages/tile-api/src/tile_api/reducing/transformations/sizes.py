"""Transformations on the sizes and element types of tensors and tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tile_api.reducing.kernel_edits import PLAIN, own_nodes, statements
from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Cast, Const, Expr, Extent, Load
from tile_core.ir.node import Node, rewrite, substitute, walk
from tile_core.ir.stmt import Kernel, Store
from tile_core.ops.copy import Fill
from tile_core.ops.reducer import ReducerUpdate


def smaller_sizes(kernel: Kernel) -> Iterator[Kernel]:
    """Put a smaller number in the place of a size, wherever it stands.

    Sizes of a tile stand in its shape, in regions, loops and indices, so they change together.

    Before::

        alloc a: shared float32[128, 32]
        copy(src=A[bx * 128:128, 0:32], dst=a[0:128, 0:32])

    After, 16 for 128::

        alloc a: shared float32[16, 32]
        copy(src=A[bx * 16:16, 0:32], dst=a[0:16, 0:32])
    """
    numbers = sorted(_sizes(kernel), reverse=True)
    for old in numbers:
        for new in _smaller(old):
            yield _resized(kernel, lambda n, old=old, new=new: new if n == old else n)  # type: ignore[misc]


def halved_sizes(kernel: Kernel) -> Iterator[Kernel]:
    """Halve all sizes at once, but those below a limit.

    Before::

        alloc a: shared float32[128, 32]

    After::

        alloc a: shared float32[64, 16]
    """
    for limit in (1, 8, 16, 32):
        yield _resized(kernel, lambda n, limit=limit: n // 2 if n > limit else n)  # type: ignore[misc]


def smaller_tensors(kernel: Kernel) -> Iterator[Kernel]:
    """Make one dimension of one tensor smaller: accesses outside of it are guarded.

    Before::

        kernel main(A: global float32[1024, 1024]):

    After::

        kernel main(A: global float32[16, 1024]):
    """
    for param in kernel.params:
        if not isinstance(param, Buffer) or param.strides is not None:
            continue
        for axis, extent in enumerate(param.shape):
            if isinstance(extent, int):
                for new in _smaller(extent):
                    shape = (*param.shape[:axis], new, *param.shape[axis + 1 :])
                    yield substitute(kernel, {param: replace(param, shape=shape)})


def _smaller(number: int) -> list[int]:
    return sorted(n for n in {1, 2, 4, 8, 16, 32, number // 2} if 0 < n < number)


def _sizes(kernel: Kernel) -> set[int]:
    """Return the extents of tensors, tiles, regions and loops that are greater than one."""
    found: set[int] = set()
    for node in walk(kernel):
        if isinstance(node, Buffer):
            found |= _known(node.shape)
        elif isinstance(node, Region):
            found |= _known(node.extents)
    for stmt in statements(kernel):
        found |= {int(n.value) for n in own_nodes(stmt) if isinstance(n, Const) and n.dtype.is_int}
    return {size for size in found if size > 1}


def _known(extents: tuple[Extent, ...]) -> set[int]:
    return {extent for extent in extents if isinstance(extent, int)}


def _resized(kernel: Kernel, size: Callable[[int], int]) -> Kernel:
    def of(extents: tuple[Extent, ...]) -> tuple[Extent, ...]:
        new = tuple(size(e) if isinstance(e, int) else e for e in extents)
        return extents if all(a is b for a, b in zip(extents, new, strict=True)) else new

    def rule(node: Node) -> Node:
        match node:
            case Buffer(shape=shape, strides=strides):
                smaller = of(shape)
                apart = None if strides is None else of(strides)
                if smaller is not shape or apart is not strides:
                    return replace(node, shape=smaller, strides=apart)
            case Region(starts=starts, extents=extents):
                first, smaller = of(starts), of(extents)
                if first is not starts or smaller is not extents:
                    return replace(node, starts=first, extents=smaller)
            case Const(value=value, dtype=dtype) if dtype.is_int and size(int(value)) != value:
                return replace(node, value=size(int(value)))
        return node

    return rewrite(kernel, rule)


def plain_dtypes(kernel: Kernel) -> Iterator[Kernel]:
    """Give tensors and tiles the element types float32 and int32: all of one type, then each.

    Before::

        alloc a: shared bfloat16[64]
        B[i] = a[i] * bfloat16(2.0)

    After::

        alloc a: shared float32[64]
        B[i] = cast[bfloat16](a[i]) * bfloat16(2.0)
    """
    buffers = dict.fromkeys(n for n in walk(kernel) if isinstance(n, Buffer) and n.origin is None)
    odd = [b for b in buffers if b.dtype.base not in PLAIN and (b.dtype.is_float or b.dtype.is_int)]
    for dtype in sorted({str(b.dtype) for b in odd}):
        together = {b for b in odd if b.dtype == dtype}
        if len(together) > 1:
            yield _retyped(kernel, together)
    for buffer in odd:
        yield _retyped(kernel, {buffer})


def _retyped(kernel: Kernel, chosen: set[Buffer]) -> Kernel:
    """Return `kernel` with the plain type for some buffers; values are converted around them."""
    new: dict[Node, Buffer] = {
        b: replace(b, dtype=dtype_of("float32" if b.dtype.is_float else "int32")) for b in chosen
    }
    made = {buffer: old.dtype for old, buffer in new.items() if isinstance(old, Buffer)}

    def rule(node: Node) -> Node:
        if node in new:
            return new[node]
        match node:
            case Load(buffer=buffer) if buffer in made:
                return Cast(made[buffer].with_lanes(node.dtype.lanes), node)
            case Store(buffer=buffer, value=value) | ReducerUpdate(reducer=buffer, value=value):
                if buffer in made:
                    return replace(node, value=_as(value, buffer.dtype))
            case Fill(dst=dst, value=value) if dst.buffer in made:
                return replace(node, value=_as(value, dst.buffer.dtype))
        return node

    return rewrite(kernel, rule)


def _as(value: Expr, dtype: DType) -> Expr:
    wanted = dtype.with_lanes(value.dtype.lanes)
    if isinstance(value, Cast) and value.value.dtype == wanted:
        return value.value
    return Cast(wanted, value)
