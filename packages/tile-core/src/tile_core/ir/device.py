"""Calls of the functions of the device header: see `tile_core.ir.device_calls`."""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError
from tile_core.ir.build_expr import as_expr
from tile_core.ir.device_calls import PREFIX, device_call
from tile_core.ir.expr import Call, Expr


def device(name: str, *args: Expr | int | bool, dtype: str | None = None) -> Call:
    """Return a call of the header's function `name`.

    Template arguments come first, then addresses (`AddressOf`) and values. `dtype` is the element
    type of the result, where the table leaves it to the call.

    Raises `InternalError` if the header has no such function.
    """
    row = device_call(name)
    if row is None:
        raise InternalError(f"the device header has no function {name!r}")
    result = dtype or ("int32" if row.result == "void" else row.result)
    return Call(PREFIX + name, tuple(as_expr(a) for a in args), dtype_of(result))
