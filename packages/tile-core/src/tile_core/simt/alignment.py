"""What launches rely on beyond element types: addresses of tensors that vectors start at."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.ir.buffer import Buffer
from tile_core.ir.device_calls import COUNTED_LOAD, PREFIX
from tile_core.ir.expr import AddressOf, Call, Const, Expr, Load
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import Store
from tile_core.simt.program import DeviceFunction, DeviceProgram

_VECTORS = frozenset(PREFIX + name for name in ("load", "store", "atomic_add"))
_BULK_COPIES = frozenset(PREFIX + name for name in ("bulk_load", "bulk_store", "bulk_reduce_add"))
_ASYNC_COPIES = (PREFIX + "async_copy", PREFIX + COUNTED_LOAD)

_BULK_BYTES = 16
"""What places and sizes of bulk copies are multiples of."""


def required_alignment(function: DeviceFunction) -> dict[Buffer, int]:
    """Return the bytes that the address of each flat tensor must be a multiple of.

    Vectors lie at offsets that are proven to be multiples of their size, so it is the first
    element alone that decides whether they are aligned. Tensors whose own elements ask for as
    much are left out: an address between elements is refused for every target. The time is
    linear in the size of the function.

    Before   load<4>(a, A + tid*4);  x = A_as_int64[tid]     # A: float32
    After    {A: 16}
    """
    tensors = {p for p in function.params if isinstance(p, Buffer)}
    found: dict[Buffer, int] = {}
    for node in walk(function.launch.body):
        for buffer, size in _accesses(node):
            flat = buffer.storage
            if flat in tensors and size > max(flat.dtype.bits // 8, found.get(flat, 1)):
                found[flat] = size
    return found


def _accesses(node: Node) -> Iterator[tuple[Buffer, int]]:
    """Yield what `node` accesses, and what the access' address must be a multiple of."""
    match node:
        case Load(buffer=buffer) | Store(buffer=buffer) | AddressOf(buffer=buffer):
            yield buffer, buffer.dtype.bits // 8
        case Call(function=name, args=(Const(value=count), *operands)) if name in _VECTORS:
            for buffer in _addressed(operands):
                size = int(count) * buffer.dtype.bits // 8
                yield buffer, size & -size  # the largest power of two that divides it
        case Call(function=name, args=operands) if name in _BULK_COPIES:
            for buffer in _addressed(list(operands)):
                yield buffer, _BULK_BYTES
        case Call(function=name, args=(Const(value=size), *operands)) if name in _ASYNC_COPIES:
            for buffer in _addressed(operands):
                yield buffer, int(size)


def _addressed(operands: list[Expr]) -> Iterator[Buffer]:
    return (o.buffer for o in operands if isinstance(o, AddressOf))


def alignments(program: DeviceProgram) -> dict[Buffer, int]:
    """Return the bytes that the address of each parameter of the kernel must be a multiple of.

    Parameters of which nothing is asked beyond their element type are left out, and so are
    workspaces: those who allocate them align them for every type.
    """
    found: dict[Buffer, int] = {}
    for function in program.functions:
        required = required_alignment(function)
        for flat, owner in zip(function.params, function.arguments, strict=True):
            if isinstance(flat, Buffer) and isinstance(owner, Buffer) and flat in required:
                found[owner] = max(required[flat], found.get(owner, 1))
    return {p: found[p] for p in program.kernel.params if isinstance(p, Buffer) and p in found}
