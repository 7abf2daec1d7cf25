"""The memory of a program that is run in NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fuzz.elements import ELEMENTS

NOBODY, MANY = -1, -2


class Invalid(Exception):
    """The program means nothing: its result is not defined."""


@dataclass
class Memory:
    """A buffer: its values, which of them are defined, and who wrote and read each."""

    dtype: str
    values: np.ndarray
    defined: np.ndarray
    is_global: bool = False
    safe: int = 0
    writer: np.ndarray = field(init=False)
    reader: np.ndarray = field(init=False)
    adder: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget who touched what: a barrier."""
        self.writer = np.full(self.values.shape, NOBODY, np.int64)
        self.reader = self.writer.copy()
        self.adder = np.zeros(self.values.shape, np.int64)


def scratch(dtype: str, shape: tuple[int, ...]) -> Memory:
    kind = np.float64 if ELEMENTS[dtype].is_float else np.int64
    return Memory(dtype, np.zeros(shape, kind), np.zeros(shape, bool))
