"""Gradients within a function that is captured: what has gradients may ask for those of others."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.capture import output_of
from tile_api.arrays.capturing.elementwise import lift
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.equations import Equations, Output, Parameter
from tile_api.arrays.equations.expressions import Expr, Indices, rebuild, walk
from tile_api.arrays.equations.places import within
from tile_api.arrays.equations.substitution import substituted
from tile_api.arrays.gradients.adjoint import adjoint
from tile_api.arrays.gradients.passes import check_cotangents, names_of
from tile_api.arrays.gradients.sums import product_of

_COUNT = itertools.count()


def captured_vjp(
    function: Any, bound: inspect.BoundArguments, wrt: str | Sequence[str] | None
) -> tuple[Any, Callable[..., Any]]:
    """Return the results of a function of captured arrays, and its vector-Jacobian product."""
    results = function(*bound.args, **bound.kwargs)
    arrays = {n: x for n, x in bound.arguments.items() if isinstance(x, Array)}
    depth = next(_COUNT)
    names = {n: f"{n}_within_{depth}" for n in arrays}
    for n, x in arrays.items():
        bound.arguments[n] = _placeholder(names[n], x)
    with within():
        returned = function(*bound.args, **bound.kwargs)
    several = isinstance(returned, (tuple, list))
    outputs = [
        output_of(function, f"out{k}", y) for k, y in enumerate(returned if several else [returned])
    ]
    parameters = [Parameter(n, tuple(map(int, x.shape)), x.dtype) for n, x in arrays.items()]
    plain = Equations(
        function.__name__, tuple(parameters), tuple(outputs), type(returned) if several else None
    )
    asked = names_of(plain, wrt)
    hidden = tuple(replace(p, name=names[p.name]) for p in parameters)
    whole = adjoint(replace(plain, parameters=hidden), [names[n] for n in asked])
    cotangents = [p.tensor for p in whole.parameters[len(parameters) :]]
    is_one = isinstance(wrt, str) or (wrt is None and len(asked) == 1)

    def pull(*given: Any) -> Any:
        lifted = [lift(x) for x in given]
        check_cotangents(plain.name, outputs, lifted)
        held = {names[n]: x for n, x in arrays.items()}
        held |= dict(zip(cotangents, lifted, strict=True))
        made = [
            Array(arrays[n].shape, o.dtype, _element(o, held))
            for n, o in zip(asked, whole.outputs, strict=True)
        ]
        return made[0] if is_one else tuple(made)

    return results, pull


def _placeholder(name: str, x: Array) -> Array:
    return Array(x.shape, x.dtype, lambda indices: eq.load(name, indices, x.dtype))


def _element(output: Output, arrays: Mapping[str, Array]) -> Callable[[Indices], Expr]:
    """Return the element of an output at indices, with elements of arrays for what it loads."""

    def at(indices: Indices) -> Expr:
        pairs = zip(output.indices, indices, strict=True)
        values = {i.value[0]: given for i, given in pairs if i.op == "index"}
        element = substituted(output.element, values)
        known: dict[Expr, Expr] = {}
        for n in walk(element):
            if n.op == "load" and n.value in arrays:
                read = tuple(rebuild(i, known) for i in n.args)
                known[n] = arrays[n.value].read_as(n.dtype, read)
            elif n.op == "multiply" and n.dtype.is_float:  # in the order of what stands there now
                known[n] = product_of([rebuild(f, known) for f in n.args], n)
        return rebuild(element, known)

    return at
