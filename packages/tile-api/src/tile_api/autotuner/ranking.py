"""The order in which candidates are tried: the cost model's, the best first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_api.autotuner.configs import Config
from tile_api.autotuner.outcome import UNTRIED, Candidate
from tile_api.autotuner.search import untraced
from tile_core.errors import TileError

Trace = Callable[[Mapping[str, Any]], Any]


def traced(configs: Sequence[Config], trace: Trace) -> list[Candidate]:
    """Return a candidate for each configuration; what cannot be traced has failed.

    Parameters
    ----------
    trace
        Returns the traced function for values of the tuned parameters. It runs the user's
        function, whose exceptions are outcomes like any other.
    """
    found = []
    for number, config in enumerate(configs):
        try:
            found.append(Candidate(number, config, trace(config.values)))
        except Exception as error:
            found.append(Candidate(number, config, outcome=untraced(error)))
    return found


def ranked(
    candidates: Sequence[Candidate], target: object, sizes: Mapping[str, int]
) -> list[Candidate]:
    """Return candidates, the cheapest by the cost model first.

    Those that it has no opinion of come after those that it has, in the order given. It counts
    what every kernel does; one that cannot be lowered at all is left to the compiler, which says
    why.
    """
    priced = [_priced(candidate, target, sizes) for candidate in candidates]
    return sorted(priced, key=_order)


def _order(candidate: Candidate) -> tuple[bool, float, int]:
    cost = candidate.estimate
    return (cost is None, 0.0 if cost is None else cost, candidate.number)


def _priced(candidate: Candidate, target: object, sizes: Mapping[str, int]) -> Candidate:
    if candidate.outcome.status != UNTRIED:
        return candidate
    from tile_api import cost

    try:
        found = cost.estimate(candidate.func, target, **_numbers(sizes))
    except (TileError, ArithmeticError, LookupError, TypeError, ValueError):
        return candidate
    return replace(candidate, estimate=float(found.milliseconds))


def _numbers(sizes: Mapping[str, int]) -> dict[str, Any]:
    return {name: int(size) for name, size in sizes.items()}
