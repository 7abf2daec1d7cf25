"""Kernels of the problems that fill a GPU: examples for Hopper at the size they are meant for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from support.example_files import load
from support.hopper_examples import CASES
from tile_core.compilation.results import Lowered
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins


@dataclass(frozen=True)
class Large:
    """A kernel and its problem.

    Parameters
    ----------
    problem
        In `hardware.problems.PROBLEMS`.
    example
        In `support.hopper_examples.CASES`, whose tiles are used.
    sizes
        Arguments of the example's function.
    small
        Arguments for tests, of a problem that the interpreter solves.
    changes
        Tiles that differ.
    """

    problem: str
    example: str
    sizes: tuple[Any, ...]
    small: tuple[Any, ...]
    changes: tuple[tuple[str, Any], ...] = ()

    def kernel(self, sizes: tuple[Any, ...]) -> Any:
        """Return the kernel for a size."""
        case = CASES[self.example]
        function = getattr(load(case.example), case.function)
        tiles = {**case.tiles, **dict(self.changes)}
        return function.get_tir(*sizes, **tiles).kernel


def _matrices(m: int, n: int, k: int) -> tuple[np.ndarray, ...]:
    return tuple(np.zeros(shape, "float16") for shape in ((m, k), (k, n), (m, n)))


LARGE = {
    "gemm": Large("product", "gemm", _matrices(4096, 4096, 2048), _matrices(128, 256, 128)),
    "persistent": Large(
        "product", "persistent", (4096, 4000, 1000, False), (136, 264, 72, False),
        (("workers", 132),),
    ),
    "grouped blocks": Large(
        "product", "persistent_grouped", (4096, 4000, 1000, True), (136, 264, 72, True),
        (("workers", 132),),
    ),
    "stream-K": Large(
        "sum of products", "stream_k", (1000, 2000, 4096, 132, "float16"),
        (136, 200, 328, 3, "float16"),
    ),
    "int8": Large("product of bytes", "int8", (4096, 4096, 2048), (70, 100, 320)),
    "attention": Large("attention", "attention", (2, 4000, 8, 128, False), (1, 100, 1, 128, False)),
    "causal attention": Large(
        "causal attention", "attention_causal", (2, 4000, 8, 128, True), (1, 100, 1, 128, True),
    ),
}  # fmt: skip


def lowered_kernels(arch: str) -> Iterator[tuple[str, str, Lowered]]:
    """Yield name, problem and code of each for an architecture."""
    host = installed_plugins()
    for name, large in LARGE.items():
        kernel = large.kernel(large.sizes)
        yield f"large/{name}", large.problem, lower(kernel, f"cuda:{arch}", host)
