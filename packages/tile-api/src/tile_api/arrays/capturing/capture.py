"""A function run on arrays without elements: its outputs, as equations."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from tile_api.arrays.capturing import numpy_names
from tile_api.arrays.capturing.array import NAMES, Array
from tile_api.arrays.capturing.creation import CREATED
from tile_api.arrays.capturing.elementwise import lift
from tile_api.arrays.capturing.materialisation import (
    MOST_EXPRESSIONS,
    Graph,
    Materialised,
    Search,
    Whole,
    named,
    weight,
)
from tile_api.arrays.capturing.numpy_names import NAMESPACE
from tile_api.arrays.capturing.purity import impure, muted, raising
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.aligned import aligned
from tile_api.arrays.equations.dims import Symbol, dimension, name_of
from tile_api.arrays.equations.equations import (
    Equations,
    Output,
    Parameter,
    described,
    indices_of,
)
from tile_api.arrays.equations.expressions import Expr
from tile_api.arrays.equations.places import TRACE, Trace, definition_of
from tile_api.arrays.equations.sizes import (
    CONDITIONS,
    ValueNeeded,
    counted,
    names_in,
    renumbered,
    whole,
)
from tile_api.frontend.source import raising_span
from tile_core.errors import ElementUnknown, TileError, TooManyEquations
from tile_launch.dynamo import outside_of_graphs

MOST_EQUATIONS = 2_000
"""A function with more expressions, and nowhere to cut it, looks unrolled."""
MOST_IN_ALL = 20_000
"""So does one with more, wherever it is cut."""


Run = Callable[[Sequence[Parameter], Trace], Equations]
"""Captures a function that takes such arrays."""


def inside(function: types.FunctionType) -> types.FunctionType:
    """Return a copy of a function in which NumPy is captured, there and in its helpers."""
    names = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if value is np:
            names[name] = NAMESPACE
        elif callable(value) and _is_created(value):
            names[name] = getattr(NAMESPACE, value.__name__)
        elif isinstance(value, types.FunctionType) and value.__globals__ is function.__globals__:
            names[name] = _copied(value, names)
    if CONDITIONS.get() is not None and "range" not in names:
        names["range"] = _range
    return _copied(function, names)


def _range(*bounds: int) -> range:
    """Return `range` of bounds that are no symbols."""
    return range(*map(counted, bounds))


def _is_created(value: Any) -> bool:
    """Tell whether a value is a function of NumPy's that makes arrays of none."""
    name = getattr(value, "__name__", None)
    return name in CREATED and value is getattr(np, name)


def _copied(function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


@outside_of_graphs
def captured(
    function: types.FunctionType, parameters: Sequence[Parameter], others: Mapping[str, Any],
    names: Any = numpy_names,
) -> Equations:  # fmt: skip
    """Run `function` on arrays without elements.

    Parameters
    ----------
    parameters
        The arrays that it takes.
    others
        Its other arguments, by name: numbers, texts, None.
    names
        What is captured of functions and methods: `tensor_methods` if tensors are given.

    Raises
    ------
    ElementUnknown
        If it returns something else than arrays.
    ImpureFunction
        If it computes something else when it is run again.
    TileError
        If it does what cannot be captured; at the user's line.
    """
    run = partial(_run, function, others=others, names=names)
    if CONDITIONS.get() is not None:
        return _for_all_values(run, function.__name__, parameters)
    found, first = _cut(run, function.__name__, parameters)
    again = _again(first)
    try:
        with muted():
            same = run(parameters, again)
    except Exception as error:
        raise raising(function, error) from error
    if found != same:
        one, other = ([o.element for o in run.computed] for run in (found, same))
        raise impure(function, one, other, {**again.places, **first.places})
    return found


def _cut(run: Run, name: str, parameters: Sequence[Parameter]) -> tuple[Equations, Trace]:
    """Capture a function; if it comes to many expressions, with arrays that are stored.

    Raises
    ------
    TooManyEquations
        If it comes to too many wherever it is cut.
    """
    first = _trace(name, Whole)
    try:
        found = run(parameters, first)
        if _weight(found.outputs) <= MOST_EXPRESSIONS:
            return found, first
    except TooManyEquations:
        pass
    with muted():
        graph = _trace(name, Graph)
        run(parameters, graph)
        search = _trace(name, partial(Search, reads=graph.materialised.reads))
        run(parameters, search)
        names = named(search.materialised.stored, [p.tensor for p in parameters])
        last = _trace(name, partial(Materialised, names=names))
        found = run(parameters, last)
    parts = [_weight([o]) for o in found.materialised] + [_weight(found.outputs)]
    if max(parts) > MOST_EQUATIONS or sum(parts) > MOST_IN_ALL:
        raise last.unrolled(f"comes to {sum(parts)} expressions")
    return found, last


def _weight(outputs: Sequence[Output]) -> int:
    return weight(*(o.element for o in outputs))


def _for_all_values(run: Run, name: str, parameters: Sequence[Parameter]) -> Equations:
    """Capture a function that has symbols for sizes: what depends on their numbers is refused.

    It runs again, with other numbers, which must not make a difference.
    """

    def numbered(only: str = "") -> Equations:
        changed = [
            replace(p, shape=tuple(renumbered(n, only) for n in p.shape)) for p in parameters
        ]
        return run(changed, _again(first))

    def differs(symbol: str) -> bool:
        with muted():
            return described(numbered(symbol)) != described(found)

    found, first = _cut(run, name, parameters)
    conditions = CONDITIONS.get() or {}
    with muted():
        token = CONDITIONS.set({})
        try:
            again = numbered()
            both = CONDITIONS.get() or {}
        finally:
            CONDITIONS.reset(token)
    if described(found) != described(again):
        symbols = frozenset().union(*(names_in(n) for p in parameters for n in p.shape))
        if len(symbols) > 1:
            symbols = frozenset(filter(differs, symbols)) or symbols
        raise ValueNeeded(symbols, "a number is computed of it")
    for text in [*conditions]:
        if text not in both:  # it held by chance, and nothing came of it
            del conditions[text]
    return found


def _again(trace: Trace) -> Trace:
    """Return what captures a function once more as it was captured."""
    return _trace(trace.function, trace.materialised.again)


def _trace(name: str, materialised: Callable[[Trace], Whole]) -> Trace:
    trace = Trace(name)
    trace.materialised = materialised(trace)
    return trace


def _run(
    function: types.FunctionType, parameters: Sequence[Parameter], trace: Trace,
    others: Mapping[str, Any], names: Any,
) -> Equations:  # fmt: skip
    named = {n: Symbol(n) for p in parameters for n in p.dims if isinstance(n, str)}
    trace.taken = frozenset(p.name for p in parameters)
    tokens = NAMES.set(names), TRACE.set(trace)
    eq.begin()  # what was met before, by chance, changes the order of no sum
    try:
        arguments = {p.name: _argument(function, p, named) for p in parameters}
        given = {**arguments, **others}
        by_position = [
            given.pop(p.name)
            for p in signature(function).parameters.values()
            if p.kind is p.POSITIONAL_ONLY
        ]
        returned = inside(function)(*by_position, **given)
        made = _traced(function, parameters, returned, trace)
        shapes = [arguments[p.name].shape for p in parameters]
        return replace(made, dimensions=tuple(tuple(map(name_of, shape)) for shape in shapes))
    except TileError as error:
        error.at(raising_span(error))
        raise
    except RecursionError as error:
        raise trace.unrolled("has expressions within expressions without end") from error
    finally:
        NAMES.reset(tokens[0])
        TRACE.reset(tokens[1])


def _traced(
    function: types.FunctionType, parameters: Sequence[Parameter], returned: Any, trace: Trace
) -> Equations:
    several = isinstance(returned, (tuple, list))
    if several and not returned:
        raise _no_array(function, "nothing")
    results = [_result(function, x) for x in (returned if several else [returned])]
    trace.materialised.end(results)
    outputs = [
        output_of(function, f"out{k}" if several else "out", x) for k, x in enumerate(results)
    ]
    elements = aligned([output.element for output in outputs])
    outputs = [replace(o, element=x) for o, x in zip(outputs, elements, strict=True)]
    stored = [
        Output(name, tuple(map(whole, x.shape)), x.dtype, indices, *aligned([element]))
        for name, x, indices, element in trace.materialised.definitions()
    ]
    structure = type(returned) if several else None
    remarks = tuple(trace.remarks)
    constants = tuple(trace.constants.values())
    taken = (*parameters, *(t.parameter for t in constants))
    return Equations(
        function.__name__, taken, tuple(outputs), structure, remarks, constants=constants,
        materialised=tuple(stored),
    )  # fmt: skip


def _argument(
    function: types.FunctionType, parameter: Parameter, named: Mapping[str, Symbol]
) -> Array:
    def symbol(k: int) -> Symbol:
        dimension = parameter.dims[k] if parameter.dims else None
        if isinstance(dimension, str):
            return named[dimension]
        name = f"{parameter.name}{k if k < 10 else f':{k}'}"
        return Symbol(f"{name}:" if name in named else name)

    shape = [n if n == 1 else dimension(n, symbol(k)) for k, n in enumerate(parameter.shape)]

    def at(indices: tuple[Expr, ...]) -> Expr:
        return eq.load(parameter.tensor, indices, parameter.dtype)

    return Array(
        shape, parameter.dtype, at, name=parameter.name,
        definition=partial(definition_of, function, parameter.name),
    )  # fmt: skip


def _no_array(function: types.FunctionType, what: str) -> ElementUnknown:
    return ElementUnknown(
        f"{function.__name__} returns {what}",
        span=definition_of(function),
        hint="return one array, or a tuple of arrays",
    )


def output_of(function: types.FunctionType, name: str, returned: Any) -> Output:
    """Return what a function returns as an output."""
    x = _result(function, returned)
    indices = indices_of(x.shape)
    return Output(name, tuple(map(whole, x.shape)), x.dtype, indices, x.read_as(x.dtype, indices))


def _result(function: types.FunctionType, returned: Any) -> Array:
    if not isinstance(returned, (Array, bool, int, float, np.generic, np.ndarray)):
        raise _no_array(function, f"{type(returned).__name__}, which is no array")
    return lift(returned)
