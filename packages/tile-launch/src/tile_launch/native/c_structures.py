"""The structures of ``caller.c``, as ctypes writes them."""

from __future__ import annotations

import ctypes
from enum import IntEnum


class ArgumentKind(IntEnum):
    """Of a parameter."""

    TENSOR = 0
    BOOL = 1
    INT = 2
    FLOAT = 3
    OUTPUT = 4


class Source(IntEnum):
    """Where the value of an argument of compiled code comes from."""

    ADDRESS = 0
    SCALAR = 1
    CONSTANT = 2
    STATUS = 3


class Width(IntEnum):
    """How compiled code reads a scalar."""

    INT = 0
    FLOAT = 1
    DOUBLE = 2
    BOOL = 3
    POINTER = 4


class Interface(IntEnum):
    """How compiled code is called.

    ``PACKED`` is TVM's interface, ``ROW`` takes a row of addresses, the others are the drivers'.
    """

    PACKED = 0
    ROW = 1
    CUDA = 2
    HIP = 3


class ParameterData(ctypes.Structure):
    """``Parameter``."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("keyed", ctypes.c_int32),
        ("low", ctypes.c_int64),
        ("high", ctypes.c_int64),
        ("mask", ctypes.c_int64),
        ("array_mask", ctypes.c_int64),
        ("largest", ctypes.c_double),
    )


class SlotData(ctypes.Structure):
    """``Slot``."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("parameter", ctypes.c_int32),
        ("type", ctypes.c_int32),
        ("pad", ctypes.c_int32),
        ("value", ctypes.c_int64),
    )


class PlanData(ctypes.Structure):
    """``Plan``."""

    _fields_ = (
        ("interface", ctypes.c_int32),
        ("slots", ctypes.c_int32),
        ("function", ctypes.c_void_p),
        ("handle", ctypes.c_void_p),
        ("slot", ctypes.c_void_p),
        ("context", ctypes.c_uint64),
        ("read_context", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("attribute_count", ctypes.c_uint32),
        ("attributes", ctypes.c_void_p),
        ("stream_of", ctypes.c_void_p),
        ("device", ctypes.c_void_p),
        ("failed", ctypes.c_void_p),
        ("output_count", ctypes.c_int32),
        ("changed_count", ctypes.c_int32),
        ("output", ctypes.c_void_p),
        ("maker", ctypes.c_void_p),
        ("returned", ctypes.c_void_p),
        ("changed", ctypes.c_void_p),
        ("keep", ctypes.c_void_p),
    )


class LibrariesData(ctypes.Structure):
    """``Libraries``."""

    _fields_ = (
        ("array", ctypes.c_void_p),
        ("tensor", ctypes.c_void_p),
        ("parameter", ctypes.c_void_p),
        ("describe", ctypes.c_void_p),
        ("is_negated", ctypes.c_void_p),
        ("is_inference", ctypes.c_void_p),
        ("bump", ctypes.c_void_p),
    )
