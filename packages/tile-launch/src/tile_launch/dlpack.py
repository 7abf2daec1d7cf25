"""What DLPack producers export, whatever the element type: NumPy reads fewer."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

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


class CapsuleTensor(ctypes.Structure):
    """``DLTensor``."""

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


_MAJOR = 1
"""Versions of one major number have the same layout (dlpack.h, `DLManagedTensorVersioned`)."""


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", CapsuleTensor),
    )


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """A tensor of any library, with the questions that launchers ask torch's tensors.

    Strides are in elements, `number` is that of the GPU, and the owner keeps the memory valid.
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
class Exported:
    """What a DLPack capsule tells; it keeps the memory valid.

    Strides are in elements. Element types that nobody here knows have a name too, which no
    parameter matches.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    number: int
    address: int
    writeable: bool
    capsule: Any

    @property
    def place(self) -> str:
        """``"cpu"``, or the kind of GPU and its number: ``"cuda:0"``."""
        return "cpu" if self.device == "cpu" else f"{self.device}:{self.number}"

    def tensor(self) -> DeviceTensor:
        """Return a tensor on the same memory."""
        number = 0 if self.device == "cpu" else self.number
        return DeviceTensor(self.shape, self.strides, self.address, number, self.capsule)


def export(producer: Any) -> Exported:
    """Return what `producer` exports; a tensor that cannot be exported says why."""
    try:
        capsule = producer.__dlpack__(max_version=(_MAJOR, 0))
    except TypeError:  # a producer from before versions
        capsule = producer.__dlpack__()
    tensor, writeable = opened(capsule)
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = tuple(tensor.strides[k] for k in range(tensor.ndim)) if tensor.strides else None
    return Exported(
        shape,
        _row_major(shape) if strides is None else strides,
        _name(tensor.code, tensor.bits, tensor.lanes),
        _DEVICES.get(tensor.device_type, f"device {tensor.device_type}"),
        tensor.device_id,
        (tensor.data or 0) + tensor.byte_offset,
        writeable and not _is_immutable(producer),
        capsule,
    )


def _is_immutable(producer: Any) -> bool:
    """Whether nobody may write what `producer` exports, although its capsule does not tell.

    JAX's arrays never change: programs share them, and compiled code counts on it.
    """
    return type(producer).__module__.partition(".")[0] in ("jax", "jaxlib")


def opened(capsule: Any) -> tuple[CapsuleTensor, bool]:
    """Return the tensor in a capsule, which stays its owner, and whether it may be written."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.restype, is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
    if is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(pointer_of(capsule, b"dltensor_versioned"))
        if managed.major != _MAJOR:  # whatever follows the version may be laid out in another way
            told = f"DLPack {managed.major}.{managed.minor} is not understood"
            raise BufferError(f"{told}: export it as DLPack {_MAJOR}.x, as max_version asks")
        return managed.tensor, not managed.flags & _READ_ONLY
    return CapsuleTensor.from_address(pointer_of(capsule, b"dltensor")), True


def _name(code: int, bits: int, lanes: int) -> str:
    name = _NAMED.get((code, bits)) or f"{_KINDS.get(code, f'dlpack{code}_')}{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
