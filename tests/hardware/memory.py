"""Tensors with a strip of known bytes on either side: what a kernel writes there is noticed."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardware.cases import Argument, dense_strides, span_of

STRIP = 1024
"""Bytes before and behind a tensor; a multiple of what any copy needs."""

FILL = 0xA5


class StrayWrite(Exception):
    """A kernel wrote where no tensor is."""


class Image:
    """The memory around a tensor.

    Parameters
    ----------
    argument
        The tensor.
    data
        The bytes of its elements, in the order of their indices.

    Attributes
    ----------
    bytes
        All of the memory.
    start, stop
        Where the tensor begins and ends in it.
    shape, strides
        Of the tensor, in stored elements.
    """

    def __init__(self, argument: Argument, data: np.ndarray) -> None:
        assert argument.shape is not None, "a tensor"
        self.argument, self.shape = argument, argument.shape
        self.strides = argument.strides or dense_strides(self.shape)
        count = int(np.prod(self.shape))
        self.size = data.size // count if count else 1
        self.start = STRIP
        self.stop = STRIP + self.size * span_of(self.shape, self.strides)
        self.bytes = aligned(self.stop + STRIP)
        self.bytes[:] = FILL
        self._around = self.bytes.copy()
        self.data = data
        self._elements(self.bytes)[...] = data.reshape(*self.shape, self.size) if count else 0

    def _elements(self, memory: np.ndarray) -> np.ndarray:
        """Return the bytes of each element, in `memory`."""
        steps = (*(step * self.size for step in self.strides), 1)
        if 0 in self.shape:
            return np.empty((*self.shape, self.size), np.uint8)
        inside = memory[self.start :]
        return np.lib.stride_tricks.as_strided(inside, (*self.shape, self.size), steps)

    def array(self, dtype: np.dtype[Any]) -> np.ndarray:
        """Return the tensor in this memory, with elements of `dtype`."""
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        steps = tuple(step * dtype.itemsize for step in self.strides)
        inside = self.bytes[self.start : self.stop]
        return np.ndarray(self.shape, dtype, buffer=inside.data, strides=steps)

    def result(self, memory: np.ndarray) -> np.ndarray:
        """Return the bytes of the elements in `memory`, which a kernel has worked on.

        Raises
        ------
        StrayWrite
            If it wrote beside the tensor, or between its rows.
        """
        found = self._elements(memory).copy().reshape(-1)
        rest = memory.copy()
        self._elements(rest)[...] = FILL
        touched = np.flatnonzero(rest != self._around)
        if touched.size:
            offset = int(touched[0]) - self.start
            raise StrayWrite(
                f"{self.argument.name}: {touched.size} bytes outside of it were written, the "
                f"first of them {offset} bytes from where it begins"
            )
        return found


def aligned(size: int, alignment: int = 256) -> np.ndarray:
    """Return bytes that begin where memory of a GPU would."""
    memory = np.empty(size + alignment, np.uint8)
    skipped = -memory.__array_interface__["data"][0] % alignment
    return memory[skipped : skipped + size]
