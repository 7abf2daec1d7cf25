"""Functions of torch as text, written with torch at hand: lines that it refuses are left out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch

from fuzz.torch.operations import ELEMENTS, FAMILIES

SHAPES = ((4, 6), (5,), (3, 4, 6), (6, 6), (2, 3), (1, 7), (4, 1), (2, 2, 2), (8, 8), (17, 5),
          (1, 1, 6), (1, 5, 4))  # fmt: skip
MOST_LINES = 4
MOST_ELEMENTS = 3000
"""Of a value."""
NAMES = {"torch": torch, "F": torch.nn.functional}


@dataclass(frozen=True)
class Program:
    """A function of tensors of float64, as Python; the seed gives their elements."""

    seed: int
    shapes: tuple[tuple[int, ...], ...]
    text: str

    def arguments(self) -> list[torch.Tensor]:
        """Return its arguments: no two elements are equal, and none is a corner."""
        random = np.random.default_rng(self.seed)
        return [torch.tensor(random.standard_normal(shape)) for shape in self.shapes]


def generate(seed: int, number: int) -> Program:
    """Return program `number` of `seed`."""
    rng = Random(f"{seed}:{number}:torch")
    shape = rng.choice(SHAPES)
    shapes = [
        shape if rng.random() < 0.7 else rng.choice([shape[-1:], (1,) * len(shape)])
        for _ in range(rng.choice([1, 2, 2]))
    ]
    program = Program(rng.randrange(1 << 30), (*shapes,), "")
    values, lines = program.arguments(), list[str]()
    taken, wanted = len(values), rng.randint(1, MOST_LINES)
    for _ in range(20 * wanted):
        if len(lines) == wanted:
            break
        line = _line(rng, values)
        made = _made(line, values)
        if made is not None:
            lines.append(f"    v{len(values)} = {line}\n")
            values.append(made)
    names = ", ".join(f"v{k}" for k in range(taken))
    head = "import torch\nimport torch.nn.functional as F\n\n\n"
    text = f"{head}def f({names}):\n{''.join(lines)}    return v{len(values) - 1}\n"
    return Program(program.seed, program.shapes, text)


def _line(rng: Random, values: Sequence[torch.Tensor]) -> str:
    count = len(values)
    one = count - 1 if rng.random() < 0.7 else rng.randrange(count)
    (family,) = rng.choices([*FAMILIES], [*FAMILIES.values()])
    if not values[one].ndim:  # torch takes dimension 0 of tensors without dimensions: no one else
        family = ELEMENTS
    dim = rng.choice(("-1", "-1", "0", "1", "-2"))
    text: str = rng.choice(family)
    return text.replace("DIM", dim).format(f"v{one}", f"v{rng.randrange(count)}")


def _made(line: str, values: Sequence[Any]) -> Any:
    """Return the value of a line, or None if torch refuses it, or it is no number somewhere."""
    known = {f"v{k}": value for k, value in enumerate(values)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = eval(line, dict(NAMES), known)
    except (RuntimeError, TypeError, IndexError, ValueError):
        return None
    is_tensor = isinstance(made, torch.Tensor) and made.is_floating_point()
    is_fit = is_tensor and 0 < made.numel() <= MOST_ELEMENTS and bool(made.isfinite().all())
    return made if is_fit else None
