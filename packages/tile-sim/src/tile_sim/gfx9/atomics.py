"""What atomic instructions do to one number, by the end of their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_sim.gfx9.floats import bfloat16_bits

_NAMES = {
    "add_u32": ("add", "u32"), "sub_u32": ("sub", "u32"), "rsub_u32": ("rsub", "u32"),
    "inc_u32": ("inc", "u32"), "dec_u32": ("dec", "u32"), "min_i32": ("min", "i32"),
    "max_i32": ("max", "i32"), "min_u32": ("min", "u32"), "max_u32": ("max", "u32"),
    "and_b32": ("and", "u32"), "or_b32": ("or", "u32"), "xor_b32": ("xor", "u32"),
    "add_u64": ("add", "u64"), "sub_u64": ("sub", "u64"), "min_i64": ("min", "i64"),
    "max_i64": ("max", "i64"), "min_u64": ("min", "u64"), "max_u64": ("max", "u64"),
    "and_b64": ("and", "u64"), "or_b64": ("or", "u64"), "xor_b64": ("xor", "u64"),
    "add_f32": ("add", "f32"), "min_f32": ("fmin", "f32"), "max_f32": ("fmax", "f32"),
    "add_f64": ("add", "f64"), "min_f64": ("fmin", "f64"), "max_f64": ("fmax", "f64"),
    "wrxchg_b32": ("swap", "u32"), "wrxchg_b64": ("swap", "u64"),
    "pk_add_f16": ("add_f16", "u32"), "pk_add_bf16": ("add_bf16", "u32"),
    "cmpst_b32": ("compare", "u32"), "cmpst_b64": ("compare", "u64"),
    "cmpst_f32": ("compare", "f32"),
}  # fmt: skip
_MEMORY = re.compile(r"^(add|sub|inc|dec|smin|smax|umin|umax|and|or|xor|swap|cmpswap)(_x2)?$")
_DTYPES: dict[str, Any] = {
    "u32": np.uint32, "i32": np.int32, "f32": np.float32,
    "u64": np.uint64, "i64": np.int64, "f64": np.float64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Atomic:
    """An operation on one number in memory: ``combine(old, operand)``.

    If it `compares` it has two operands: the number to write, and the one that must be there.
    """

    combine: Callable[[Any, Any], Any]
    dtype: Any
    compares: bool = False

    @property
    def words(self) -> int:
        """Return how many registers an operand takes."""
        return int(np.dtype(self.dtype).itemsize) // 4


def _halves(old: Any, operand: Any) -> Any:
    a = np.array([old], np.uint32).view(np.float16)
    b = np.array([operand], np.uint32).view(np.float16)
    return (a + b).view(np.uint32)[0]


def _brain_halves(old: Any, operand: Any) -> Any:
    parts = np.array([[old << 16, old & 0xFFFF0000], [operand << 16, operand & 0xFFFF0000]])
    low, high = bfloat16_bits(parts.astype(np.uint32).view(np.float32).sum(0))
    return np.uint32(low | high << 16)


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "rsub": lambda a, b: b - a,
    "inc": lambda a, b: type(a)(0) if a >= b else a + type(a)(1),
    "dec": lambda a, b: b if a == 0 or a > b else a - type(a)(1),
    "min": min,
    "max": max,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "swap": lambda a, b: b,
    "compare": lambda a, b: b,
    "add_f16": _halves,
    "add_bf16": _brain_halves,
}


def shared_atomic(name: str) -> Atomic | None:
    """Return the operation of ``ds_<name>``; None if it is none."""
    if name not in _NAMES:
        return None
    kind, form = _NAMES[name]
    return Atomic(_COMBINE[kind], _DTYPES[form], kind == "compare")


def memory_atomic(name: str) -> Atomic | None:
    """Return the operation of ``global_atomic_<name>``; None if it is none.

    Examples
    --------
    >>> memory_atomic("umax_x2").words
    2
    """
    if name in {"add_f32", "add_f64", "min_f64", "max_f64", "pk_add_f16", "pk_add_bf16"}:
        return shared_atomic(name)
    found = _MEMORY.match(name)
    if found is None:
        return None
    kind, bits = found[1], "64" if found[2] else "32"
    form = {"s": "i", "u": "u"}[kind[0]] if kind[1:] in {"min", "max"} else "u"
    plain = kind[1:] if kind[1:] in {"min", "max"} else kind
    if plain == "cmpswap":
        return Atomic(_COMBINE["compare"], _DTYPES[f"u{bits}"], compares=True)
    return Atomic(_COMBINE[plain], _DTYPES[form + bits])
