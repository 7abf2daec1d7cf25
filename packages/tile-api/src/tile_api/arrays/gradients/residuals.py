"""What a forward pass saves for the backward one: states of rows, and what exists anyway.

Saved is what forward kernels hold at their end: results of reductions, such as maximum and sum of
a row. Not saved are products of tiles that another reduction goes through, such as blocks of
scores: they are computed again, unless they are long sums, and no more than some times what they
are made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tile_api.arrays.equations.equations import Equations, Output, Parameter
from tile_api.arrays.equations.expressions import Expr, const, extents_of, walk
from tile_api.arrays.equations.recurrence import steps_of
from tile_api.arrays.gradients.adjoint import adjoint, new_name, prepared
from tile_api.arrays.gradients.extrema import is_extremum, is_rounded_alike, position_of
from tile_api.arrays.gradients.stages import adjoint_of
from tile_api.arrays.gradients.sums import partial_sums
from tile_api.arrays.planning.partition import is_long
from tile_api.arrays.reductions.groups import grouped, is_product_of_two

TIMES_KEPT = 4
"""How many times as large as an operand, or a result, a long sum may be that is saved."""


@dataclass(frozen=True)
class Passes:
    """A program with its vector-Jacobian product.

    Parameters
    ----------
    forward
        The program, with what is saved behind its outputs.
    backward
        It takes arguments and results of `forward`, and cotangents.
    takes
        What it takes, by names: of parameters, of outputs of `forward`, of cotangents.
    cotangents
        The names of cotangents, for each output of floats.
    """

    forward: Equations
    backward: Equations
    takes: tuple[str, ...]
    cotangents: tuple[str, ...]


def passes(equations: Equations, wrt: Sequence[str]) -> Passes:
    """Return a program and its vector-Jacobian product, which reads what the program saves."""
    if equations.materialised:
        return _of_stages(equations, wrt)
    equations = prepared(equations)
    saved = dict(_states(equations))
    taken = {p.tensor for p in equations.parameters} | {o.name for o in equations.outputs}
    names = {node: new_name(f"saved{k}", taken) for k, node in enumerate(saved)}
    reads = {node: output.read_from(names[node]) for node, output in saved.items()}
    whole = adjoint(equations, wrt, reads)
    met = {n.value for n in walk(*(o.element for o in whole.outputs)) if n.op == "load"}
    new: list[Output] = []
    parameters: list[Parameter] = []
    takes: list[str] = []
    for p in whole.parameters:
        if p.tensor in met:
            parameters.append(p)
            takes.append(p.tensor)
    for node, output in saved.items():
        if names[node] in met:
            if not output.name:
                output = replace(output, name=names[node])
                new.append(output)
            parameters.append(Parameter(names[node], output.shape, output.dtype))
            takes.append(output.name)
    forward = replace(equations, outputs=(*equations.outputs, *new), structure=tuple)
    cotangents = whole.parameters[len(equations.parameters) :]
    return Passes(
        forward,
        replace(whole, parameters=tuple(parameters)),
        tuple(takes),
        tuple(c.tensor for c in cotangents),
    )


def _of_stages(equations: Equations, wrt: Sequence[str]) -> Passes:
    """Return the passes of equations with arrays that are stored: these are what is saved."""
    whole = adjoint_of(equations, wrt)
    count = len(equations.materialised)
    computed = (*whole.materialised[count:], *whole.outputs)
    met = {n.value for n in walk(*(o.element for o in computed)) if n.op == "load"}
    saved = [o for o in equations.materialised if o.name in met]
    parameters = [p for p in whole.parameters if p.tensor in met]
    parameters += [Parameter(o.name, o.shape, o.dtype) for o in saved]
    forward = replace(equations, outputs=(*equations.outputs, *saved), structure=tuple)
    cotangents = whole.parameters[len(equations.parameters) :]
    return Passes(
        forward,
        replace(whole, parameters=tuple(parameters), materialised=whole.materialised[count:]),
        tuple(p.tensor for p in parameters),
        tuple(c.tensor for c in cotangents),
    )


def _is_kept(x: Expr, outputs: Sequence[Output]) -> bool:
    """Tell whether a result is saved through which another reduction goes.

    No scores of short queries and keys, and no logits of a large vocabulary.
    """
    if not is_product_of_two(x):
        return True
    nested = [n for n in walk(*x.args) if n.op == "reduce"]
    if not is_long(x) and all(map(is_product_of_two, nested)):
        return False
    extents = extents_of([x, *(i for o in outputs for i in o.indices)])

    def size(names: Iterable[str]) -> int:
        return math.prod(extents[name] for name in names)

    groups = grouped(x.args[0], x.value[1])
    operands = [size(frozenset().union(*(f.free for f in g.factors))) for g in groups]
    largest = max(math.prod(o.shape) for o in outputs)
    return size(x.free) <= TIMES_KEPT * max(largest, min(operands))


def _states(equations: Equations) -> list[tuple[Expr, Output]]:
    """Return reductions that may be saved, each as an output."""
    outputs = [o for o in equations.outputs if 0 not in o.shape]
    nodes = [*walk(*(o.element for o in outputs))]
    tokens = {x.value.of.token for x in nodes if x.op == "scan"}
    whole = {o.element: o for o in reversed(outputs) if o.element.op == "reduce"}
    indices = {i.value[0]: i for o in outputs for i in walk(*o.indices) if i.op == "index"}
    reductions = [x for x in nodes if x.op == "reduce" and not x.free & tokens]
    again = {
        n
        for x in reductions
        for n in walk(x.args[0])
        if n.op == "reduce" and x.value[1] in n.free and not _is_kept(n, outputs)
    } | partial_sums(reductions)
    rounded = [x for x in reductions if is_extremum(x) and not is_rounded_alike(x.args[0])]
    made = []
    for x in (*reductions, *map(position_of, rounded)):
        if x in whole:
            made.append((x, whole[x]))
        elif x not in again:
            met = {i.value[0]: i for i in walk(x) if i.op == "index" and i.value[0] in x.free}
            mine = tuple(i for name, i in {**indices, **met}.items() if name in met)
            made.append((x, Output("", tuple(i.value[1] for i in mine), x.dtype, mine, x)))
    return [*made, *_carried(outputs, nodes)]


def _carried(outputs: Sequence[Output], nodes: Sequence[Expr]) -> Iterator[tuple[Expr, Output]]:
    """Yield carried values that are results, and those of all steps that are small."""
    largest = max((math.prod(o.shape) for o in outputs), default=0)
    for steps in dict.fromkeys(steps_of(x) for x in nodes if x.op == "scan"):
        of = steps.of
        for k, x in enumerate(steps.steps):
            for at in (const(of.last), of.step):
                value = steps.value(k, at, of.indices(k))
                found = (_given(o, value) for o in outputs)
                given = next((o for o in found if o is not None), None)
                if given is not None:
                    yield value, given
            indices = (*steps.outer, of.step, *of.indices(k))
            if of.sorted_by is not None:  # what counts is the end
                place, *row = of.indices(k)
                value = steps.value(k, const(of.last), of.indices(k))
                indices = (*steps.outer, *row, place)
            shape = tuple(i.value[1] if i.op == "index" else 1 for i in indices)
            if given is None and math.prod(shape) <= TIMES_KEPT * largest:
                yield value, Output("", shape, x.dtype, indices, value)


def _given(o: Output, value: Expr) -> Output | None:
    """Return an output that has a carried value, in terms of the variables of its recurrence."""
    x, rank = o.element, value.value.rank
    if x.op != "scan" or x.value != value.value or x.args[rank:] != value.args[rank:]:
        return None
    names: dict[Expr, Expr] = {}
    outer = steps_of(x).outer
    pairs = zip((*outer, *x.args[:rank]), (*outer, *value.args[:rank]), strict=True)
    for i, own in pairs:
        if i.op != own.op or i in names or (i.op == "const" and i is not own):
            return None
        if i.op == "index":
            names[i] = own
    if {*names} != {i for i in o.indices if i.op == "index"} or o.dtype != x.dtype:
        return None
    return replace(o, indices=tuple(names.get(i, i) for i in o.indices), element=value)
