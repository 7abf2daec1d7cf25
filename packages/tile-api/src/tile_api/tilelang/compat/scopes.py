"""`tilelang.utils.language`: in which memory a buffer is, and what a region of it has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_api.frontend.dtypes import dtype as language_dtype
from tile_api.frontend.values import BufferValue, as_region
from tile_core.ir.buffer import Region


def _scope(buffer: Any) -> str:
    return str(buffer.scope())


def is_global(buffer: Any) -> bool:
    """Tell whether a buffer is in global memory."""
    return _scope(buffer) == "global"


def is_shared(buffer: Any, allow_dynamic: bool = True) -> bool:
    """Tell whether a buffer is in shared memory."""
    return _scope(buffer) == "shared"


def is_shared_dynamic(buffer: Any) -> bool:
    """Tell whether a buffer is in shared memory, of which each launch says how much there is."""
    return is_shared(buffer)


def is_fragment(buffer: Any) -> bool:
    """Tell whether a buffer is in registers, spread over the threads of a block."""
    return _scope(buffer) == "local.fragment"


def is_local(buffer: Any) -> bool:
    """Tell whether a buffer is in registers of one thread."""
    return _scope(buffer) == "local"


def is_local_var(buffer: Any) -> bool:
    """Tell whether a buffer is a variable of one thread."""
    return _scope(buffer) == "local.var"


def is_tensor_memory(buffer: Any) -> bool:
    """Tell whether a buffer is in the memory of the matrix unit."""
    return _scope(buffer) == "shared.tmem"


def is_reducer(buffer: Any) -> bool:
    """Tell whether a buffer accumulates what threads add to it."""
    return _scope(buffer) == "local.reducer"


# Regions ------------------------------------------------------------------------------------


def to_buffer_region(obj: Any, access_type: str = "rw", extents: Any = None) -> Region:
    """Return the region that a buffer, a slice or an element stands for.

    Parameters
    ----------
    access_type
        Accepted for compatibility: how it is used is known from where it is used.
    extents
        Of the region that begins at an element.
    """
    region = as_region(obj, "an operand")
    if extents is None or not region.is_element:
        return region
    given = tuple(extents)
    padded = (1,) * (len(region.starts) - len(given)) + given
    return replace(region, extents=padded, is_element=False)


def is_full_region(buffer_region: Any) -> bool:
    """Tell whether a region is all of its buffer."""
    return as_region(buffer_region, "an operand").is_whole


def retrieve_shape(obj: Any) -> list[Any]:
    """Return the extents of a buffer or region."""
    return [*as_region(obj, "an operand").extents]


def retrieve_stride(obj: Any) -> list[Any]:
    """Return the distances, in elements, between neighbours of a buffer or region."""
    return [*BufferValue(as_region(obj, "an operand").buffer).strides]


def retrieve_dtype(obj: Any) -> Any:
    """Return the element type of a buffer or region."""
    return BufferValue(as_region(obj, "an operand").buffer).dtype


def get_buffer_elems(buffer: Any) -> Any:
    """Return how many elements a buffer has."""
    return array_reduce(buffer.shape)


def array_reduce(array: Sequence[Any]) -> Any:
    """Return the product of numbers.

    Examples
    --------
    >>> array_reduce([2, 3, 4])
    24
    """
    return math.prod(array)


def bits_product(shape: Sequence[Any], dtype: Any) -> Any:
    """Return the bits of a tile of an element type.

    Examples
    --------
    >>> bits_product((8, 16), "float16")
    2048
    """
    return array_reduce(shape) * language_dtype(dtype).bits


def prim_expr_equal(lhs: Any, rhs: Any) -> bool:
    """Tell whether two extents are the same: numbers of one value, or one expression."""
    return lhs is rhs or (is_int(lhs) and is_int(rhs) and int(lhs) == int(rhs))


def is_int(value: Any) -> bool:
    """Tell whether an extent is a number."""
    return hasattr(value, "__index__")


def get_prim_func_name(func: Any, default: str | None = None) -> str | None:
    """Return the name of a kernel."""
    return getattr(func, "name", None) or getattr(func, "__name__", default)
