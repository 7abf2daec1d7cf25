"""Tensors of any library as NumPy arrays on the same memory: for executables in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.dtypes import DType

if TYPE_CHECKING:
    import numpy as np

    from tile_core.ir.buffer import Buffer


class _Memory:
    """Memory of somebody else, described by NumPy's array interface; keeps `owner` alive."""

    def __init__(self, interface: dict[str, Any], owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def array_at(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, owner: object
) -> np.ndarray[Any, Any]:
    """Return the elements at `address` as an array, without a copy.

    Shape and strides count elements, each as it is stored (four-bit types occupy a byte); `owner`
    keeps the memory valid, and lives as long as the array.
    """
    import numpy as np

    stored = dtype.numpy()
    if 0 in shape:
        return np.empty(shape, stored)
    raw = f"|V{stored.itemsize}"
    memory = _Memory(
        {
            "data": (address, False),
            "shape": shape,
            "strides": tuple(s * stored.itemsize for s in strides),
            "typestr": raw,
            "version": 3,
        },
        owner,
    )
    return np.asarray(memory).view(stored)


def as_array(param: Buffer, tensor: Any) -> np.ndarray[Any, Any] | None:
    """Return a checked tensor argument as a NumPy array on the same memory.

    The elements have the type of the parameter, except that four-bit types stay packed bytes.
    None, for a tensor that is never touched, stays None.
    """
    import numpy as np

    if tensor is None:
        return None
    dtype = param.dtype if param.dtype.packing == 1 else DType("uint8")
    if not isinstance(tensor, np.ndarray) and hasattr(tensor, "data_ptr"):
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        return array_at(tensor.data_ptr(), shape, strides, dtype, tensor)
    array = tensor if isinstance(tensor, np.ndarray) else np.from_dlpack(tensor)
    if array.dtype == param.dtype.numpy():
        return array
    same_size = array.dtype.itemsize == dtype.numpy().itemsize
    return array.view(dtype.numpy()) if same_size else array
