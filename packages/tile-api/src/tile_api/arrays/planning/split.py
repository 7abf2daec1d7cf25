"""Streams that several blocks share: each leaves its states, another kernel merges them.

``(d1, a1) + (d2, a2) = (d, Φ(d1 -> d) a1 + Φ(d2 -> d) a2)``, with the same Φ that corrects an
accumulator when a loop goes on. The merge is a fold over the parts in their order: equal plans
give equal bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.evaluate import once_begun
from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    cast,
    const,
    index,
    load,
    make,
    multiply,
    rebuild,
    reciprocal,
    reduce,
    subtract,
    walk,
    where,
)
from tile_api.arrays.equations.sizes import Size
from tile_api.arrays.planning.finite_extrema import infinite_of, with_infinities
from tile_api.arrays.planning.matrix_vector import ONE
from tile_api.arrays.planning.plan import PART, Blocks, Plan, plans_of, resized
from tile_api.arrays.planning.storage import state_dtype
from tile_api.arrays.planning.tasks import Task, streamed
from tile_api.arrays.reductions.algebra import product
from tile_api.arrays.reductions.state import COUNT, Correction, State, has_left, identity_of
from tile_core.dtypes import DType, dtype_of

_WHY = "few blocks, a long stream: they share it, and the next kernel merges what they leave"


def can_split(plan: Plan) -> bool:
    """Tell whether the states of a plan are all that a block needs to leave of its stream."""
    if plan.stream is None or not plan.states or plan.is_stepped:
        return False
    is_folded = any(n.op == "reduce" for o in plan.finals for n in walk(o.element))
    return not is_folded and not any(s.sweep for s in plan.states)


def in_parts(plan: Plan, names: Iterator[str]) -> list[Plan]:
    """Return the kernels of a plan: one, or several whose blocks share its stream.

    Parameters
    ----------
    names
        For the tensors between them.
    """
    blocks = plan.blocks
    if blocks.parts == 1 or not can_split(plan):
        return [plan]
    fresh, first = names, resized(plan, blocks, blocks.parts)
    if first.parts is None or first.is_resident or first.is_stepped or first.parts.count == 1:
        return [plan]
    assert first.stream is not None
    count, each, stream = first.parts.count, first.parts.blocks, first.axes[first.stream]
    left = tuple(_output(s, next(fresh), first, count) for s in first.states)
    rests = {
        s.left: replace(_output(s, next(fresh), first, count), element=s.left)
        for s in first.states
        if s.left is not None and has_left(s, first.states)
    }
    first = replace(
        first,
        finals=(*left, *rests.values()),
        task=_with_views(plan, Task((), first.stream, (_WHY,))),
    )
    met = _met(stream.extent, each * stream.size, count)
    merged = _merged(first.states, left, rests, met, stream.extent)
    values = _finished(merged, first.states, [o.element for o in plan.finals])
    along = [o for o in plan.finals if stream.name in {v for i in o.indices for v in i.free}]
    whole = [_with(o, values) for o in plan.finals if o not in along]
    if along:
        read = dict.fromkeys(n for o in along for n in walk(o.element) if n.op == "state")
        means = {s.mine: s for s in first.states}
        kept = {x: replace(_output(means[x], next(fresh), first), element=values[x]) for x in read}
        whole += kept.values()
        loads = {x: load(o.name, o.indices, x.dtype) for x, o in kept.items()}
        along = [_with(o, loads) for o in along]
    rows = 1 if first.row is None else min(64, first.axes[first.row].extent)
    blocks = Blocks(columns=4096 // rows, threads=blocks.threads)
    merging = Task(tuple(whole), PART, plan.task.reasons)
    made = [first, *plans_of(_with_views(plan, merging), blocks)]
    if along:
        elements = [o.element for o in along]
        reading = Task(tuple(along), streamed(elements), plan.task.reasons)
        made += plans_of(_with_views(plan, reading), blocks)
    return made


def _output(s: State, name: str, plan: Plan, count: int = 0) -> Output:
    """Return the tensor of a state, of as many parts if there are."""
    names = [v for v in plan.axes if v in s.mine.free and v != ONE]
    order = [v for v in (*plan.grid, plan.row, *plan.columns) if v in names]
    indices = [index(v, plan.axes[v].extent) for v in order]
    indices = [index(PART, count), *indices] if count else indices
    shape = tuple(i.value[1] for i in indices)
    return Output(name, shape, state_dtype(s), tuple(indices), s.mine)


def _with_views(plan: Plan, task: Task) -> Task:
    """Return a task that knows the other shapes of what it reads and of its own results."""
    others = {o.name for o in plan.task.outputs} - {o.name for o in task.outputs}
    return replace(task, views=tuple(v for v in plan.task.views if v.tensor not in others))


def _with(output: Output, values: Mapping[Expr, Expr]) -> Output:
    return replace(output, element=rebuild(output.element, dict(values)))


def _met(extent: int, each: int, count: int) -> Expr:
    """Return how many elements of the stream a part has."""
    if each * count == extent:
        return const(each, "float32")
    start = multiply(const(each), index(PART, count))
    left = subtract(const(extent), start)
    met = make("minimum", const(each), left)
    if isinstance(extent, Size):  # parts may be empty
        met = make("maximum", const(0), met)
    return cast(met, dtype_of("float32"))


def _share(extent: int, dtype: DType) -> Expr:
    """Return what one element is of the stream."""
    if isinstance(extent, Size):
        return reciprocal(cast(const(extent), dtype))
    return const(1 / extent, dtype)


def _merged(
    states: Sequence[State],
    left: Sequence[Output],
    rests: Mapping[Expr, Output],
    met: Expr,
    extent: int,
) -> dict[Expr, Expr]:
    """Return what the states of all parts together are; `rests` is what is left of means."""
    count = left[0].shape[0]
    old: dict[Expr, Expr] = {}
    new: dict[Expr, Expr] = {}
    starts: dict[Expr, Expr] = {}
    for s, o in zip(states, left, strict=True):
        mine = cast(load(o.name, o.indices, o.dtype), s.mine.dtype)
        change = s.correct(old, new) if s.correct is not None else Correction()
        made = mine
        if change.value is not None:
            made = rebuild(change.value, {s.mine: mine, COUNT: met})
        elif change.scale is not None:
            read = {old[d]: starts[d] for d in s.depends}
            made = product([mine, once_begun(change.scale, read)], const(1, mine.dtype))
        kind = s.kind
        if kind == "mean":
            share = multiply(_share(extent, dtype_of("float32")), met)
            kind, made = "sum", multiply(cast(share, mine.dtype), made)
            if s.left is not None:
                rest = rests.get(s.left)
                of_part = const(0.0, mine.dtype)
                if rest is not None:
                    of_part = load(rest.name, rest.indices, rest.dtype)
                    made = add(made, multiply(_share(extent, mine.dtype), of_part))
                old[s.left] = of_part
        old[s.mine] = mine
        starts[s.mine] = const(identity_of(s.kind, state_dtype(s)), s.mine.dtype)
        new[s.mine] = reduce(kind, PART, count, made)
    return new


def _finished(
    merged: Mapping[Expr, Expr], states: Sequence[State], results: Sequence[Expr]
) -> dict[Expr, Expr]:
    """Return states as results read them: an extremum of nothing but infinities is infinite."""
    made = dict(merged)
    for s in states:
        value = merged[s.mine]
        is_read = any(s.mine in x.depends for x in states)
        if s.kind not in ("max", "min") or not value.dtype.is_float or not is_read:
            continue
        made |= with_infinities(s, states, results, merged)
        start = const(identity_of(s.kind, value.dtype), value.dtype)
        infinite = const(infinite_of(s), value.dtype)
        made[s.mine] = where(make("eq", value, start), infinite, value)
    return made
