"""Where tensors must begin, because threads access several of their elements at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tile_core.errors import ArgumentLayoutError, Note
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import AddressOf, Call, Const
from tile_core.ir.node import walk
from tile_core.simt.program import DeviceFunction, DeviceProgram

_VECTORS = frozenset({"load", "store", "atomic_add"})


def alignments(program: DeviceProgram) -> Mapping[Buffer, int]:
    """Return the bytes of which the address of a parameter must be a multiple.

    Parameters whose elements are accessed one by one are left out: any address that suits the
    element type will do.
    """
    found: dict[Buffer, int] = {}
    for function in program.functions:
        owners = dict(zip(function.params, function.arguments, strict=True))
        for buffer, size in _wide_accesses(function):
            owner = owners.get(buffer.storage)
            if isinstance(owner, Buffer) and owner in program.kernel.params:
                found[owner] = max(found.get(owner, 1), size)
    return found


def _wide_accesses(function: DeviceFunction) -> Iterator[tuple[Buffer, int]]:
    """Yield the global buffers that vectors are moved from or to, and bytes of the vectors."""
    for node in walk(function.launch.body):
        if not isinstance(node, Call) or not node.function.startswith(PREFIX) or not node.args:
            continue
        name, width = node.function.removeprefix(PREFIX), node.args[0]
        if not isinstance(width, Const) or name not in (*_VECTORS, "cp_async"):
            continue
        for address in node.args[1:]:
            if isinstance(address, AddressOf) and address.buffer.scope is Scope.GLOBAL:
                bits = 8 if name == "cp_async" else address.buffer.dtype.bits
                yield address.buffer, int(width.value) * bits // 8


def misaligned(kernel: str, param: Buffer, address: int, multiple: int) -> ArgumentLayoutError:
    """Return the error that the elements of `param` begin where vectors must not."""
    return ArgumentLayoutError(
        f"{kernel}.{param.name}.data: expected an address that is a multiple of {multiple} "
        f"bytes, got one that lies {address % multiple} behind",
        notes=() if param.span is None else (Note("the parameter is declared here", param.span),),
        hint="pass x.clone() or numpy.copy(x): views may begin anywhere, tensors of their own "
        "are aligned",
    )
