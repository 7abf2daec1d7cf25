"""Who takes part: our configurations, out of bundles, and peers, as far as they are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from problem import Family, Sizes, Tensors

import tile_launch

Run = Callable[[], Any]

OURS = "tile"


class Absent(Exception):
    """A peer cannot take part, for the reason that it tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """Somebody who solves a problem.

    Parameters
    ----------
    name
        Such as ``"tile 3"`` or ``"cuBLAS"``.
    make
        ``make(sizes, inputs, outputs)`` returns what runs it. A run returns the results, or
        None if they are in `outputs`.
    is_exact
        Whether it computes the same function; one that does not is a mark, and not checked.
    can_record
        Whether it can be captured in a graph.
    """

    name: str
    make: Callable[[Sizes, Tensors, Tensors], Run]
    is_exact: bool = True
    can_record: bool = True


def ours(folder: Path, family: Family, entries: Sequence[Mapping[str, Any]]) -> list[Contestant]:
    """Return a contestant for each configuration of a plan."""
    return [_of_bundles(folder, family, k, entry) for k, entry in enumerate(entries)]


def _of_bundles(folder: Path, family: Family, number: int, entry: Mapping[str, Any]) -> Contestant:
    def make(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
        kernels = {name: _loaded(folder / file) for name, file in entry["bundles"].items()}
        return family.launch(kernels, inputs, outputs)

    return Contestant(name=f"{OURS} {number}", make=make)


@cache
def _loaded(path: Path) -> Any:
    """Return a kernel of a bundle; each file is read once."""
    return tile_launch.load(path)


def results_of(run: Run, outputs: Tensors) -> Tensors:
    """Run once, and return the results."""
    found = run()
    if found is None:
        return outputs
    return found if isinstance(found, (list, tuple)) else [found]
