"""The functions of the device header that lowered programs may call, and their effects.

A call is ``device("async_copy", 16, address, address, predicate)``. It prints as
``tile::async_copy<16>(dst + i, src + j, predicate)``, or with the name that the machine's header
has for it (`tile_core.machine.SimtMachine.device_names`). The headers that toolchains see define
all of them with one meaning; this table is what passes know.
"""

from __future__ import annotations

from tile_core.errors import InternalError
from tile_core.ir.async_calls import ASYNC_CALLS
from tile_core.ir.counted_calls import COUNTED_CALLS
from tile_core.ir.device_call import DeviceCall
from tile_core.ir.effect import Effect

PREFIX = "device:"

_READS, _WRITES = Effect.READS, Effect.WRITES
_BOTH = _READS | _WRITES


_CALLS = (
    # Vectors of `N` elements between memory and registers, aligned to their size.
    DeviceCall("load", 1),  # <N>(registers, memory)
    DeviceCall("store", 1),  # <N>(memory, registers)
    DeviceCall("atomic_add", 1, effect=_BOTH | Effect.ATOMIC),  # <N>(memory, registers)
    # (memory, shift, bits): four bits of a byte; others may store its other four meanwhile.
    DeviceCall("store_nibble", effect=_BOTH | Effect.ATOMIC),
    # Asynchronous copies of 4, 8 or 16 bytes; zeros where the predicate is false.
    DeviceCall("async_copy", 1, effect=_BOTH | Effect.STATE),  # <BYTES>(shared, global, predicate)
    DeviceCall("async_copy_commit", effect=Effect.STATE),
    DeviceCall("async_copy_wait", 1, effect=_BOTH | Effect.STATE),  # <PENDING>()
    # Barriers.
    DeviceCall("sync", effect=Effect.BLOCK),  # all threads of the block
    DeviceCall("sync_warp", effect=Effect.WARP),
    DeviceCall("bar_sync", effect=Effect.BLOCK),  # (number, threads)
    DeviceCall("bar_arrive", effect=Effect.BLOCK),  # (number, threads)
    # Matrix fragments; `dst` are registers, `src` is the row address this lane gives.
    *(
        DeviceCall(f"load_matrix_x{n}{trans}", effect=_BOTH | Effect.WARP)
        for n in (1, 2, 4)
        for trans in ("", "_trans")
    ),
    # a / b in float32, made for many a to one b.
    DeviceCall("quotient", result="float32", effect=Effect.NONE),
    DeviceCall("dp4a"),  # (d, a, b): *d += four products of int8
    *ASYNC_CALLS,
    *COUNTED_CALLS,
)  # fmt: skip

DEVICE_CALLS: dict[str, DeviceCall] = {call.name: call for call in _CALLS}
"""By name, without matrix instructions: backends name these."""

MMA = "mma_"
"""What the names of matrix instructions begin with: a backend's own shapes follow."""

_MMA_OPERANDS = 3


def device_call(name: str) -> DeviceCall | None:
    """Return what is known of the header's function `name`, None if it has none.

    Of a matrix instruction, such as ``mma_m16n8k16``, the name says the shape. It is overloaded on
    the element types of its last arguments ``(d, a, b)``: d += a @ b, by all lanes of a warp, on
    registers in the backend's order. Constants that say more may stand in front of them.
    """
    if name.startswith(MMA):
        return DeviceCall(name, effect=_BOTH | Effect.WARP, operands=_MMA_OPERANDS)
    return DEVICE_CALLS.get(name)


def device_effect(function: str) -> Effect:
    """Return the effects of calling ``device:name``."""
    row = device_call(function.removeprefix(PREFIX))
    if row is None:
        raise InternalError(f"the device header has no function {function!r}")
    return row.effect
