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


def ranked(candidates: Sequence[Candidate], prices: Mapping[int, float]) -> list[Candidate]:
    """Return candidates, the cheapest by the cost model first.

    Those that it has no opinion of come after those that it has, in the order given: it may be
    that they cannot be lowered at all, and the compiler says why.

    Parameters
    ----------
    prices
        Milliseconds by the numbers of candidates.
    """
    priced = [replace(c, estimate=prices.get(c.number, c.estimate)) for c in candidates]
    return sorted(priced, key=_order)


def prices_of(
    candidates: Sequence[Candidate], target: object, sizes: Mapping[str, int]
) -> dict[int, float]:
    """Return what the cost model expects of the candidates that it has an opinion of."""
    found = {}
    for candidate in candidates:
        if candidate.outcome.status == UNTRIED:
            price = price_of(candidate.func, target, candidate.config.pass_configs, sizes)
            if price is not None:
                found[candidate.number] = price
    return found


def price_of(
    func: object,
    target: object,
    pass_configs: Mapping[Any, object],
    sizes: Mapping[str, int],
) -> float | None:
    """Return the milliseconds that the cost model expects, or None if it cannot tell."""
    from tile_api.cost import estimate

    numbers: dict[str, Any] = {name: int(size) for name, size in sizes.items()}
    try:
        found = estimate(func, target, pass_configs=dict(pass_configs) or None, **numbers)
    except (TileError, ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return float(found.milliseconds)


def _order(candidate: Candidate) -> tuple[bool, float, int]:
    cost = candidate.estimate
    return (cost is None, 0.0 if cost is None else cost, candidate.number)
