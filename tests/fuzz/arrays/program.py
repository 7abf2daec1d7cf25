"""Functions of whole arrays, as data: arguments, and a line of NumPy for each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


def kind_of(dtype: Any) -> str:
    """Return the letter of a type's kind, as NumPy has it: bfloat16 is one of floats, too."""
    return "f" if dtype == ml_dtypes.bfloat16 else str(np.dtype(dtype).kind)


def limits_of(dtype: Any) -> Any:
    """Return what `numpy.finfo` tells of floats."""
    return ml_dtypes.finfo(dtype) if dtype == ml_dtypes.bfloat16 else np.finfo(dtype)


@dataclass(frozen=True)
class Argument:
    """An array; `filling` says what stands in it: see `fuzz.arrays.fillings`."""

    shape: tuple[int, ...]
    dtype: str
    filling: str


@dataclass(frozen=True)
class Step:
    """A line: operands stand in its text as ``{0}``, ``{1}``, by the numbers of values.

    Parameters
    ----------
    operands
        Values by number: the arguments come first, then the steps.
    kind
        "sum" if it adds up many elements: what rounds is then as large as their magnitudes.
        "difference" if it subtracts neighbours, which are as large as any element.
        "spread" if these are squares of distances from a mean, which is rounded too.
    """

    text: str
    operands: tuple[int, ...]
    kind: str = ""


@dataclass(frozen=True)
class Program:
    """A function; `outputs` are the values that it returns."""

    seed: int
    arguments: tuple[Argument, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def name(self, value: int) -> str:
        """Return what a value is called."""
        count = len(self.arguments)
        return "abc"[value] if value < count else f"v{value - count}"

    def line(self, step: Step) -> str:
        """Return the expression of a step."""
        return step.text.format(*map(self.name, step.operands))

    @property
    def is_brain(self) -> bool:
        """Whether its floats of 16 bits are bfloat16: one has not both kinds."""
        told = (*(a.dtype for a in self.arguments), *(step.text for step in self.steps))
        return any("bfloat16" in text for text in told)

    @property
    def text(self) -> str:
        """The function as Python."""
        count = len(self.arguments)
        names = [self.name(k) for k in range(count)]
        lines = [f"{self.name(count + k)} = {self.line(s)}" for k, s in enumerate(self.steps)]
        lines.append(f"return {', '.join(map(self.name, self.outputs))}")
        body = "".join(f"    {line}\n" for line in lines)
        return f"import numpy as np\n\n\ndef f({', '.join(names)}):\n{body}"
