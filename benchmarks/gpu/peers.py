"""All peers of a problem: libraries behind torch, kernels in Triton, programs of TileLang."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import peers_torch
from contestant import Absent, Contestant, Run
from problem import Problem, Sizes, Tensors

LANGUAGES = {"Triton": "peers_triton", "TileLang": "peers_tilelang"}
"""Each module has `MAKERS`: by family, what a contestant's `make` is."""


def peers_of(problem: Problem) -> Iterator[Contestant]:
    """Yield the peers; those that are not installed say so when they are asked to run."""
    yield from peers_torch.CONTESTANTS.get(problem.family, ())
    for name, module in LANGUAGES.items():
        yield Contestant(name=name, make=_maker(name, module, problem.family))


def _maker(name: str, module: str, family: str) -> Any:
    def make(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
        makers = _makers(module)
        if isinstance(makers, str):
            raise Absent(makers)
        if family not in makers:
            raise Absent(f"there is no kernel in {name} for this")
        return makers[family](sizes, inputs, outputs)

    return make


@cache
def _makers(module: str) -> Any:
    """Return the makers of a module, or why there are none."""
    try:
        return import_module(module).MAKERS
    except Exception as error:  # a broken installation raises whatever it likes
        return f"{type(error).__name__}: {error}"
