"""Functions of arrays on pieces of their arguments, beside what they give for the whole."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_api.arrays.equations.evaluate import evaluated
from tile_api.arrays.function import Function
from tile_api.arrays.gradients.stages import adjoint_of
from tile_api.arrays.sharding.rules import Rule

JOINS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def pieces(x, dim, count) -> list[np.ndarray]:
    """Return the pieces of an array as `torch.chunk` makes them, with empty ones behind."""
    most = max(1, -(-x.shape[dim] // count))
    at = [min(k * most, x.shape[dim]) for k in range(count + 1)]
    return [np.take(x, range(a, b), dim) for a, b in itertools.pairwise(at)]


def joined(placement, results: Sequence[np.ndarray]) -> np.ndarray:
    """Return the result that the results of pieces are parts of."""
    if isinstance(placement, int):
        return np.concatenate(results, placement)
    if placement is None:
        for other in results[1:]:
            np.testing.assert_array_equal(other, results[0])
        return results[0]
    return functools.reduce(JOINS[placement], results)


def assert_holds(run, rule: Rule, arrays: dict[str, Any], count: int, roundings=0.0) -> None:
    """Run a function on the pieces that a rule is for, and compare with what it gives of the whole.

    Parameters
    ----------
    run
        Takes arrays by name, and returns a list of results.
    """
    split = {name: pieces(arrays[name], k, count) for name, k in rule.inputs.items()}
    results = [run(arrays | {name: split[name][n] for name in split}) for n in range(count)]
    wanted = run(arrays)
    for k, (placement, whole) in enumerate(zip(rule.outputs, wanted, strict=True)):
        if isinstance(placement, int):  # as torch would split the result
            shapes = [part.shape for part in pieces(whole, placement, count)]
            assert [parts[k].shape for parts in results] == shapes, rule
        found = joined(placement, [parts[k] for parts in results])
        assert found.shape == whole.shape, rule
        if placement in JOINS and placement == "sum":
            found = found.astype(whole.dtype)
        np.testing.assert_allclose(found, whole, roundings, roundings, err_msg=str(rule))


def check_rules(
    function: Function, arrays: Sequence[Any], machines: int, **others: Any
) -> list[str]:
    """Check all rules for some arrays, the exact ones exactly; return the dimensions they split."""
    roundings = others.pop("roundings", 0.0)
    given = function._bound(arrays, others)[0]

    def run(named):
        with np.errstate(all="ignore"):
            found = function.interpret(**named, **others)
        return [*found] if isinstance(found, (tuple, list)) else [found]

    rules = function.sharding(*arrays, machines=machines, **others).rules
    for rule in rules:
        assert_holds(run, rule, given, machines, roundings)
    return [rule.dimension for rule in rules]


def check_gradient_rules(
    function: Function, arrays: Sequence[Any], machines: int, wrt: tuple[str, ...],
    roundings=0.0, **others: Any,
) -> list[str]:  # fmt: skip
    """Check the rules for gradients."""
    given = function._bound(arrays, others)[0]
    sharding = function.sharding(*arrays, machines=machines, wrt=wrt, **others)
    random = np.random.default_rng(1)
    cotangents = adjoint_of(function.equations(*arrays, **others), wrt).parameters[len(given) :]
    weights = {p.name: random.integers(-3, 4, p.shape).astype(p.dtype.numpy()) for p in cotangents}
    assert sharding.cotangents == tuple(weights)

    def run(named):
        equations = function.equations(**{name: named[name] for name in given}, **others)
        return evaluated(adjoint_of(equations, wrt), named)

    for rule in sharding.rules:
        assert_holds(run, rule, given | weights, machines, roundings)
    return [rule.dimension for rule in sharding.rules]
