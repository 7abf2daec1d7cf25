"""Where tensors of NumPy, torch and every DLPack producer begin, and how they lie."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_from_buffer = ctypes.c_char.from_buffer


def address_of(tensor: Any) -> int:
    """Return the address of a tensor's first element; 0 for None; an int is an address."""
    if _is_array(tensor):
        return _address_of_array(tensor)
    if tensor is None:
        return 0
    if isinstance(tensor, int):
        return tensor
    pointer = getattr(tensor, "data_ptr", None)
    if pointer is not None:
        return int(pointer())
    if isinstance(tensor, ctypes.c_void_p):
        return tensor.value or 0
    return int(_array_of(tensor).__array_interface__["data"][0])


def _address_of_array(array: Any) -> int:
    """Return where an array begins; a buffer tells it three times as quickly as NumPy does."""
    if array.dtype.isbuiltin == 1:
        try:
            return ctypes.addressof(_from_buffer(array))
        except (TypeError, ValueError, BufferError):  # with gaps, empty, or read-only
            pass
    return int(array.__array_interface__["data"][0])


def strides_of(tensor: Any) -> tuple[int, ...]:
    """Return the distances between a tensor's elements, in elements."""
    if _is_array(tensor):
        return tuple(s // tensor.itemsize for s in tensor.strides)
    stride = getattr(tensor, "stride", None)
    if callable(stride):
        return tuple(stride())
    return strides_of(_array_of(tensor))


def _is_array(tensor: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(tensor, numpy.ndarray)


def _array_of(producer: Any) -> Any:
    import numpy as np

    return np.from_dlpack(producer)
