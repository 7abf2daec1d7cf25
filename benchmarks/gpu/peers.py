"""All peers of a problem: libraries behind torch, kernels in Triton, programs of TileLang."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import peers_torch
import torch
from contestant import Absent, Contestant, Run
from problem import Problem, Sizes, Tensors
from timing import Gpu, Processor, quick_us

LANGUAGES = {"Triton": "peers_triton", "TileLang": "peers_tilelang"}
"""Each module has `MAKERS`: by family, what yields runs for sizes, inputs and outputs."""


def peers_of(problem: Problem) -> Iterator[Contestant]:
    """Yield the peers; those that are not installed say so when they are asked to run."""
    yield from peers_torch.CONTESTANTS.get(problem.family, ())
    for name, module in LANGUAGES.items():
        yield Contestant(name=name, make=_maker(name, module, problem.family))


def _maker(name: str, module: str, family: str) -> Callable[[Sizes, Tensors, Tensors], Run]:
    """Return what makes a run: of the peer's variants the fastest, chosen once per problem."""
    chosen: list[int] = []

    def make(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
        makers = _makers(module)
        if isinstance(makers, str):
            raise Absent(makers)
        if family not in makers:
            raise Absent(f"there is no kernel in {name} for this")
        runs = list(makers[family](sizes, inputs, outputs))
        if not chosen:
            chosen.append(fastest(runs))
        return runs[chosen[0]]

    return make


def fastest(runs: Sequence[Run]) -> int:
    """Return the place of the fastest run; those that cannot be launched are passed over.

    Raises
    ------
    Absent
        If none can; it says why not.
    """
    device = Gpu() if torch.cuda.is_available() else Processor()
    times: dict[int, float] = {}
    why = "it has no variants"
    for place, run in enumerate(runs):
        try:
            times[place] = quick_us(device, [run], 2)
        except Exception as error:  # too much shared memory, say; each language raises its own
            device.wait()
            why = f"{type(error).__name__}: {error}".partition("\n")[0]
    if not times:
        raise Absent(why)
    return min(times, key=lambda place: times[place])


@cache
def _makers(module: str) -> Any:
    """Return the makers of a module, or why there are none."""
    try:
        return import_module(module).MAKERS
    except Exception as error:  # a broken installation raises whatever it likes
        return f"{type(error).__name__}: {error}"
