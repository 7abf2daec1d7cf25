"""Elements narrower than a byte: how they are stored, read and written."""

from __future__ import annotations

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Scope


def is_packed(dtype: DType, scope: Scope) -> bool:
    """Whether two elements share a byte: sub-byte types in tensors, low nibble first."""
    return dtype.bits == 4 and scope is Scope.GLOBAL


def storage_dtype(dtype: DType, scope: Scope) -> DType:
    """Return the element type of the memory that holds elements of `dtype`.

    Tensors of 4-bit elements are bytes of two elements; tiles give each element a byte of
    its own. Truth values are bytes.
    """
    if is_packed(dtype, scope) or dtype.bits < 8:
        return dtype_of("bool") if dtype.is_bool else dtype_of("uint8")
    return dtype
