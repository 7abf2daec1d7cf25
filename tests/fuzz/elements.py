"""Element types of generated programs: which whole numbers are exact, rounding, memory."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Element:
    """An element type.

    Parameters
    ----------
    stored
        The type of NumPy that holds one element; two elements of 4 bits share a byte in memory.
    low, high
        All whole numbers between them are exact; expressions stay between them, and those of
        32 and 64 bits wrap.
    """

    name: str
    stored: np.dtype
    low: int
    high: int
    bits: int

    @property
    def is_float(self) -> bool:
        return "float" in self.name

    @property
    def wraps(self) -> bool:
        return self.name in ("int32", "int64")

    def settle(self, values: np.ndarray) -> np.ndarray:
        """Round computed values to this type: float64 for floats, int64 for the others."""
        if self.name == "bool":
            return (np.asarray(values) != 0).astype(np.int64)
        if not self.is_float:
            if self.bits == 64:
                return np.asarray(values).astype(np.int64)
            span = 1 << self.bits
            low = 0 if self.name.startswith("u") else -(span // 2)
            return (np.asarray(values).astype(np.int64) - low) % span + low
        wide = np.asarray(values, np.float64)
        if self.bits <= 8:
            limit = float(ml_dtypes.finfo(self.stored).max)
            wide = np.clip(wide, -limit, limit)
        # Whole numbers of this size are exact in float32, from where short types round once.
        return (
            wide.astype(np.float32 if self.bits < 64 else np.float64)
            .astype(self.stored)
            .astype(np.float64)
        )

    def shape_in_memory(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] // 2) if self.bits == 4 else shape

    @property
    def in_memory(self) -> np.dtype:
        return np.dtype("uint8") if self.bits == 4 else self.stored

    def pack(self, values: np.ndarray) -> np.ndarray:
        """Return carried values as memory holds them."""
        stored = values.astype(self.stored)
        if self.bits != 4:
            return stored
        nibbles = stored.view(np.uint8) & 15
        return nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)

    def unpack(self, memory: np.ndarray) -> np.ndarray:
        """Return what memory holds in its carrier; the inverse of `pack`."""
        if self.bits == 4:
            nibbles = np.stack([memory & 15, memory >> 4], axis=-1)
            nibbles = nibbles.reshape(*memory.shape[:-1], -1)
            memory = nibbles.astype(np.uint8).view(self.stored) if self.is_float else nibbles
            if not self.is_float:
                return self.settle(memory.astype(np.int64))
        return memory.astype(np.float64 if self.is_float else np.int64)


def _element(name: str, low: int, high: int, bits: int) -> Element:
    return Element(name, np.dtype(getattr(ml_dtypes, name, None) or name), low, high, bits)


ELEMENTS = {
    e.name: e
    for e in (
        _element("bool", 0, 1, 8),
        _element("int8", -128, 127, 8),
        _element("uint8", 0, 255, 8),
        _element("int16", -(1 << 15), (1 << 15) - 1, 16),
        _element("int32", -(1 << 31), (1 << 31) - 1, 32),
        _element("int64", -(1 << 63), (1 << 63) - 1, 64),
        _element("float16", -2048, 2048, 16),
        _element("bfloat16", -256, 256, 16),
        _element("float32", -(1 << 24), 1 << 24, 32),
        _element("float64", -(1 << 50), 1 << 50, 64),
        _element("float8_e4m3fn", -16, 16, 8),
        _element("float8_e5m2", -8, 8, 8),
        _element("float4_e2m1fn", -4, 4, 4),
        _element("int4", -8, 7, 4),
    )
}
"""By name."""
