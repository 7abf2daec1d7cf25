"""Any DLPack producer as an array on the same memory, whatever its element type.

NumPy reads DLPack too, but not bfloat16 and the narrow floats; so the capsule is read by
`tile_launch.dlpack`, and the array is made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tile_core.dtypes import DType, dtype_of
from tile_core.errors import FrontendTypeError
from tile_launch.dlpack import DeviceTensor, export

__all__ = ["Description", "DeviceTensor", "describe"]


@dataclass(frozen=True, slots=True)
class Description:
    """What a DLPack capsule tells.

    Parameters
    ----------
    shape, strides
        In elements.
    dtype
        Its name; types nobody here knows have one too, which no parameter matches.
    device
        ``"cpu"``, ``"cuda:0"`` …
    address
        Of the first element.
    array
        A NumPy array on the same memory, or a `DeviceTensor` if that is not the host's; it
        keeps the memory alive. None if the element type is unknown.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    address: int
    writeable: bool
    array: Any


def describe(producer: Any) -> Description:
    """Return what `producer` exports.

    Raises
    ------
    Exception
        Whatever the producer raises: a tensor that cannot be exported says why.
    """
    found = export(producer)
    shape, strides, address = found.shape, found.strides, found.address
    array: Any = None
    known = _known(found.dtype)
    if found.place != "cpu":
        array = found.tensor()
    elif known is not None and (address or 0 in shape):
        from tile_core.plugins.arrays import array_at

        array = array_at(address, shape, strides, known, found.capsule, writeable=found.writeable)
    return Description(shape, strides, found.dtype, found.place, address, found.writeable, array)


def _known(name: str) -> DType | None:
    try:
        dtype = dtype_of(name)
    except FrontendTypeError:
        return None
    return dtype if dtype.lanes == 1 and dtype.packing == 1 else None
