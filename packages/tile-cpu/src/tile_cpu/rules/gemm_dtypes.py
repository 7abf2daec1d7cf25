"""Which element types the register-tiled products take."""

from __future__ import annotations

from tile_core.dtypes import DType


def unsupported_product(a: DType, b: DType, c: DType) -> str | None:
    """Say why ``c += a b`` has no register-tiled kernel, or return None if it has one."""
    for dtype in (a, b, c):
        if dtype.is_bool or dtype.is_handle:
            return f"{dtype} is not a number"
        if dtype.bits in (4, 6) or dtype.is_narrow_float:
            return f"{dtype} is widened before it is multiplied"
    return None
