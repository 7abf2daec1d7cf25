"""The functions of the device header that lowered programs may call, and their effects.

A call is ``device("cp_async", 16, address, address, predicate)``; it prints as
``tile::cp_async<16>(dst + i, src + j, predicate)``. The header that each toolchain sees
(CUDA, HIP, the emulator) defines all of them with one meaning; this table is what passes know.
"""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError
from tile_core.ir.amd_calls import AMD_CALLS
from tile_core.ir.arith import as_expr
from tile_core.ir.device_call import DeviceCall
from tile_core.ir.effect import Effect
from tile_core.ir.expr import Call, Expr
from tile_core.ir.hopper_calls import HOPPER_CALLS

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
    DeviceCall("cp_async", 1, effect=_BOTH | Effect.STATE),  # <BYTES>(shared, global, predicate)
    DeviceCall("cp_async_commit", effect=Effect.STATE),
    DeviceCall("cp_async_wait", 1, effect=_BOTH | Effect.STATE),  # <PENDING>()
    # Barriers.
    DeviceCall("sync", effect=Effect.BLOCK),  # all threads of the block
    DeviceCall("sync_warp", effect=Effect.WARP),
    DeviceCall("bar_sync", effect=Effect.BLOCK),  # (number, threads)
    DeviceCall("bar_arrive", effect=Effect.BLOCK),  # (number, threads)
    # Matrix fragments; `dst` are registers, `src` is the row address this lane gives.
    *(
        DeviceCall(f"ldmatrix_x{n}{trans}", effect=_BOTH | Effect.WARP)
        for n in (1, 2, 4)
        for trans in ("", "_trans")
    ),
    # (d, a, b): d += a @ b on registers in the order of the PTX manual; one name per shape,
    # overloaded on the element types.
    *(
        DeviceCall(f"mma_{shape}", effect=_BOTH | Effect.WARP)
        for shape in (
            "m8n8k4", "m8n8k16", "m8n8k32",
            "m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64",
            # How a thread's halves of both factors lie, where that is not by row and by column.
            "m8n8k4_row_row", "m8n8k4_col_col", "m8n8k4_col_row",
        )
    ),
    # a / b in float32, made for many a to one b.
    DeviceCall("quotient", result="float32", effect=Effect.NONE),
    DeviceCall("dp4a"),  # (d, a, b): *d += four products of int8
    *HOPPER_CALLS,
    *AMD_CALLS,
)  # fmt: skip

DEVICE_CALLS: dict[str, DeviceCall] = {call.name: call for call in _CALLS}
"""By name."""


def device(name: str, *args: Expr | int | bool, dtype: str | None = None) -> Call:
    """Return a call of the header's function `name`.

    Parameters
    ----------
    args
        Template arguments first, then addresses (`AddressOf`) and values.
    dtype
        Element type of the result, where the table leaves it to the call.

    Raises
    ------
    InternalError
        If the header has no such function.
    """
    row = DEVICE_CALLS.get(name)
    if row is None:
        raise InternalError(f"the device header has no function {name!r}")
    result = dtype or ("int32" if row.result == "void" else row.result)
    return Call(PREFIX + name, tuple(as_expr(a) for a in args), dtype_of(result))


def device_effect(function: str) -> Effect:
    """Return the effects of calling ``device:name``."""
    return DEVICE_CALLS[function.removeprefix(PREFIX)].effect
