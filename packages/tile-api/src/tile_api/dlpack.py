"""Any DLPack producer as an array on the same memory, whatever its element type.

NumPy reads DLPack too, but not bfloat16 and the narrow floats; so the capsule is read here.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from tile_core.dtypes import DType, dtype_of
from tile_core.errors import FrontendTypeError

_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 8: "metal", 10: "hip"}  # 3: pinned host memory
_KINDS = {0: "int", 1: "uint", 2: "float", 5: "complex"}
_NAMED = {
    (4, 16): "bfloat16",
    (6, 8): "bool",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
}
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """A tensor in the memory of a GPU, with the questions that launchers ask torch's tensors.

    Parameters
    ----------
    shape, strides
        In elements.
    address
        Of the first element.
    number
        Of the GPU.
    owner
        What keeps the memory valid.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    number: int
    owner: Any

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self.address

    def stride(self) -> tuple[int, ...]:
        """Return the distances between elements, in elements."""
        return self.strides

    def get_device(self) -> int:
        """Return the number of the GPU."""
        return self.number


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
    try:
        capsule = producer.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer from before versions
        capsule = producer.__dlpack__()
    tensor, writeable = _opened(capsule)
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = tuple(tensor.strides[k] for k in range(tensor.ndim)) if tensor.strides else None
    strides = strides if strides is not None else _row_major(shape)
    dtype = _name(tensor.code, tensor.bits, tensor.lanes)
    kind = _DEVICES.get(tensor.device_type, f"device {tensor.device_type}")
    device = "cpu" if kind == "cpu" else f"{kind}:{tensor.device_id}"
    address = (tensor.data or 0) + tensor.byte_offset
    array: Any = None
    known = _known(dtype)
    if device != "cpu":
        array = DeviceTensor(shape, strides, address, tensor.device_id, capsule)
    elif known is not None and (address or 0 in shape):
        from tile_core.plugins.arrays import array_at

        array = array_at(address, shape, strides, known, capsule, writeable=writeable)
    return Description(shape, strides, dtype, device, address, writeable, array)


def _opened(capsule: Any) -> tuple[_Tensor, bool]:
    """Return the tensor in a capsule, which stays its owner, and whether it may be written."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.restype, is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
    if is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(pointer_of(capsule, b"dltensor_versioned"))
        return managed.tensor, not managed.flags & _READ_ONLY
    return _Tensor.from_address(pointer_of(capsule, b"dltensor")), True


def _name(code: int, bits: int, lanes: int) -> str:
    name = _NAMED.get((code, bits)) or f"{_KINDS.get(code, f'dlpack{code}_')}{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


def _known(name: str) -> DType | None:
    try:
        dtype = dtype_of(name)
    except FrontendTypeError:
        return None
    return dtype if dtype.lanes == 1 and dtype.packing == 1 else None


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
