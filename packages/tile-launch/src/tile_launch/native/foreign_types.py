"""What C must know of NumPy and torch: types, and how torch describes tensors to C."""

from __future__ import annotations

import ctypes
import struct
import sys
from contextlib import suppress
from functools import lru_cache
from typing import Any

from tile_launch.loaded_torch import loaded_torch
from tile_launch.native.c_structures import LibrariesData

EXCHANGE = "__dlpack_c_exchange_api__"
"""The attribute of ``torch.Tensor`` with DLPack's table of functions (DLPack 1.2)."""

_CAPSULE = b"dlpack_exchange_api"
_MAJOR = 1  # of DLPack: another one may order the table otherwise
_DESCRIBE = 40  # bytes before the function that fills a DLTensor, in that table


def libraries() -> tuple[LibrariesData, tuple[object, ...]]:
    """Return what is known of NumPy and torch, as far as they are loaded, and what keeps it.

    While another thread is importing torch, torch is not loaded.
    """
    numpy, torch = sys.modules.get("numpy"), loaded_torch()
    found = LibrariesData()
    held: tuple[Any, ...] = ()
    if numpy is not None:
        found.array = id(numpy.ndarray)
    if torch is not None:
        with suppress(AttributeError):  # where it is too old
            held = _of_torch(torch)
    if held:
        kinds, functions, found.describe = held
        found.tensor, found.parameter = map(id, kinds)
        found.is_negated, found.is_inference, found.bump = map(id, functions)
    return found, held


@lru_cache(maxsize=1)
def _of_torch(torch: Any) -> tuple[Any, ...]:
    """Return torch's types, its functions, and the address of the one that describes tensors.

    Nothing where that does not tell the truth.
    """
    kinds = torch.Tensor, torch.nn.Parameter
    functions = torch.Tensor.is_neg, torch.Tensor.is_inference, torch._C._increment_version
    describe = describing(getattr(torch.Tensor, EXCHANGE))
    return (kinds, functions, describe) if _is_true(describe, torch) else ()


def describing(table: object) -> int:
    """Return the address of the function in `table` that fills a DLTensor; 0 if there is none."""
    is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_IsValid", ctypes.pythonapi)
    )
    if not is_valid(table, _CAPSULE):
        return 0
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(table, _CAPSULE)
    if ctypes.c_uint32.from_address(pointer).value != _MAJOR:
        return 0
    return int(struct.unpack("Q", ctypes.string_at(pointer + _DESCRIBE, 8))[0])


def _is_true(describe: int, torch: Any) -> bool:
    """Whether the function at an address describes a tensor as it is."""
    if not describe:
        return False
    fill = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(describe)
    sample = torch.empty((3, 4), dtype=torch.float32, device="cpu")[1:, ::2]
    record = (ctypes.c_char * 48)()
    if fill(sample, record):
        return False
    address, *numbers, shape, strides, offset = struct.unpack("QiiiBBHQQQ", record.raw)
    extents = (ctypes.c_int64 * 2).from_address(shape)
    steps = (ctypes.c_int64 * 2).from_address(strides)
    told = (address + offset, numbers, tuple(extents), tuple(steps))
    return told == (sample.data_ptr(), [1, 0, 2, 2, 32, 1], (2, 2), (4, 2))
