"""Cases on disk: a launch, what it is given, and what the reference interpreter gets out of it.

A pack is a folder:

    index.jsonl            a line for each case, from simple to complex
    kernels/<digest>.tile  bundles, each for one or more cases
    data/<digest>.npz      the bytes of arguments before the launch, and of those it changes after
    programs/<digest>      the kernels as tile IR, for rehearsals

Nothing but NumPy is needed to read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

INDEX = "index.jsonl"


@dataclass(frozen=True)
class Argument:
    """What is passed for a parameter.

    Parameters
    ----------
    name, dtype
        Of the parameter; tensors without data are never touched, and not passed.
    shape, strides
        In stored elements, of which four-bit types put two into a byte; strides of what is not
        dense.
    value
        Of a scalar.
    data, after
        Names of arrays of bytes: the tensor before, and after if it changes.
    relative, absolute
        How far results may be from the reference; 0 and 0 means not at all.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    value: Any = None
    data: str = ""
    after: str = ""
    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True)
class Case:
    """One launch.

    Parameters
    ----------
    name
        Of the test that made it, and which of its launches it is.
    kernel
        Name of the kernel's bundle and of its program, without endings.
    data
        Name of the archive of its arguments.
    lowered_for
        The architecture that the compiler wrote code for; it was translated for the GPU at hand.
    features
        What the code uses, simplest first.
    problem
        In `hardware.problems.PROBLEMS`, of arguments that are made where they are used.
    """

    name: str
    kernel: str
    data: str
    lowered_for: str
    arguments: tuple[Argument, ...]
    features: tuple[str, ...] = field(default=())
    problem: str = ""

    def line(self) -> str:
        """Return the line of the index."""
        return json.dumps(asdict(self))


def parse_case(line: str) -> Case:
    """Return the case of a line."""
    told = json.loads(line)
    arguments = tuple(_argument(each) for each in told.pop("arguments"))
    return Case(**{**told, "features": tuple(told["features"])}, arguments=arguments)


def _argument(told: dict[str, Any]) -> Argument:
    for key in ("shape", "strides"):
        told[key] = None if told[key] is None else tuple(told[key])
    return Argument(**told)


@dataclass(frozen=True)
class Pack:
    """A folder of cases."""

    folder: Path

    def cases(self) -> list[Case]:
        """Return all cases, from simple to complex."""
        return [parse_case(line) for line in (self.folder / INDEX).read_text().splitlines()]

    def write_index(self, cases: Iterable[Case]) -> None:
        """Write the index."""
        (self.folder / INDEX).write_text("".join(case.line() + "\n" for case in cases))

    def bundle(self, case: Case) -> Path:
        """Return where the machine code of a case is."""
        return self.folder / "kernels" / f"{case.kernel}.tile"

    def program(self, case: Case) -> Path:
        """Return where the tile IR of a case is."""
        return self.folder / "programs" / case.kernel

    def arrays(self, case: Case) -> dict[str, np.ndarray]:
        """Return the bytes of the arguments, by name."""
        with np.load(self.folder / "data" / f"{case.data}.npz") as archive:
            return dict(archive)


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of rows without gaps, in elements.

    Examples
    --------
    >>> dense_strides((2, 3, 4))
    (12, 4, 1)
    """
    found, step = [], 1
    for extent in reversed(shape):
        found.insert(0, step)
        step *= extent
    return tuple(found)


def span_of(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many elements lie between the first and the last one, both included.

    Examples
    --------
    >>> span_of((2, 3), (8, 1)), span_of((0, 3), (3, 1))
    (11, 0)
    """
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
