"""Elements of four bits: NumPy holds one per byte, kernels hold two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.ir.buffer import Buffer


@dataclass(frozen=True, slots=True)
class PackedNibbles:
    """A NumPy array of four-bit elements, and its elements two to a byte, low nibble first."""

    array: np.ndarray[Any, Any]
    bytes: np.ndarray[Any, Any]

    @classmethod
    def needs(cls, param: Buffer, array: np.ndarray[Any, Any]) -> bool:
        """Whether `array` has to be packed for the parameter."""
        return param.dtype.packing > 1 and array.dtype not in (np.dtype("i1"), np.dtype("u1"))

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> PackedNibbles:
        """Pack the elements of `array`, whose last extent is even."""
        nibbles = np.ascontiguousarray(array).view(np.uint8) & 15
        return cls(array, nibbles[..., 0::2] | (nibbles[..., 1::2] << 4))

    def unpack(self) -> None:
        """Bring the elements back into the array."""
        both = np.stack([self.bytes & 15, self.bytes >> 4], axis=-1).reshape(self.array.shape)
        if self.array.dtype.name == "int4":
            both = (both.astype(np.int8) ^ 8) - 8
            self.array[...] = both.astype(self.array.dtype)
        elif self.array.dtype.name == "uint4":
            self.array[...] = both.astype(self.array.dtype)
        else:
            self.array[...] = both.view(self.array.dtype)
