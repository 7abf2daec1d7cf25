"""Index variables that become one: of reductions in each other, and of the rows of products."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    const,
    extents_of,
    index,
    integer_part,
    multiply,
    rebuild,
    reduce,
    walk,
)
from tile_api.arrays.equations.substitution import substituted
from tile_api.arrays.planning.nested_sums import prepared
from tile_api.arrays.planning.window_runs import windows_in
from tile_api.arrays.planning.windows import is_by_rows, sides, written_out

MOST_IN_ONE = 16_384
"""Elements of a reduction over several dimensions that is always one loop."""
ENOUGH_ROWS = 48
"""Rows that keep blocks busy, and rows of a block that are enough for a product."""
ENOUGH_COLUMNS = 256
"""Windows side by side that fill the widest block of a product."""


FEWEST_APART = 8
"""Elements of a part of a dimension that is a dimension of its own, if sums change along it."""


def merged(outputs: Sequence[Output]) -> list[Output]:
    """Return outputs in which variables that belong together are one.

    A reduction over several dimensions is a loop over their elements, in C order; so are the
    dimensions of a result that all of it goes through together.
    """
    outputs = _reductions([_split(o) for o in prepared(_aligned(outputs))])
    names = {x.value[1] for x in walk(*(o.element for o in outputs)) if x.op == "reduce"}
    for name in sorted(n for n in names if "," in n):
        outputs = _along(outputs, name.split(","))
    for run in _rows(outputs):
        outputs = _along(outputs, run)
    return [written_out(o) for o in outputs]


def parts_of(whole: Expr, sizes: Sequence[int]) -> list[Expr]:
    """Return the indices of dimensions, given the index of all their elements in C order."""
    made, step = [], math.prod(sizes)
    for size in sizes:
        step //= size
        quotient = integer_part("floordiv", whole, const(step))
        made.append(integer_part("mod", quotient, const(size)))
    return made


def _reductions(outputs: Sequence[Output]) -> Sequence[Output]:
    """Make one reduction of those whose operand is another of their kind."""
    extents = extents_of(o.element for o in outputs)
    results = {frozenset().union(*(i.free for i in o.indices)) for o in outputs}
    known: dict[Expr, Expr] = {}
    for x in walk(*(o.element for o in outputs)):
        made = rebuild(x, known)
        if made.op != "reduce" or made.args[0].op != "reduce" or not _belong(made, extents):
            continue
        if not any(is_by_rows(made, variables) for variables in results):
            known[x] = _joined(made)
    return [replace(o, element=known.get(o.element, o.element)) for o in outputs]


def _belong(x: Expr, extents: Mapping[str, int]) -> bool:
    inner = x.args[0]
    if x.value[0] != inner.value[0] or x.dtype != inner.dtype:
        return False
    over = {x.value[1], inner.value[1]}
    is_nested = any(n.op == "reduce" and n.free & over for n in walk(inner.args[0]))
    if is_nested and not _is_plain([inner.args[0]], (x.value[1], inner.value[1])):
        return False
    rows = math.prod(extents.get(v, 1) for v in x.free)
    return x.value[2] * inner.value[2] <= MOST_IN_ONE or rows >= ENOUGH_ROWS


def _joined(x: Expr) -> Expr:
    kind, outer, m = x.value
    _, inner, n = x.args[0].value
    name = f"{outer},{inner}"
    parts = parts_of(index(name, m * n), (m, n))
    body = substituted(x.args[0].args[0], dict(zip((outer, inner), parts, strict=True)))
    return reduce(kind, name, m * n, body)


def _along(outputs: Sequence[Output], run: Sequence[str]) -> Sequence[Output]:
    """Make one variable of a run of dimensions, if all outputs that have some of it have it."""
    made = []
    for o in outputs:
        place = _place(o, run)
        if place is None:
            if any(set(run) & i.free for i in o.indices):
                return outputs
            made.append(o)
            continue
        sizes = [i.value[1] for i in o.indices[place : place + len(run)]]
        parts = parts_of(index(",".join(run), math.prod(sizes)), sizes)
        element = substituted(o.element, dict(zip(run, parts, strict=True)))
        indices = (*o.indices[:place], *parts, *o.indices[place + len(run) :])
        made.append(replace(o, indices=indices, element=element))
    return made


def _place(o: Output, run: Sequence[str]) -> int | None:
    """Return where the variables of a run are the indices of an output, one behind the other."""
    names = _names(o)
    starts = range(len(names) - len(run) + 1)
    return next((k for k in starts if names[k : k + len(run)] == [*run]), None)


def _names(o: Output) -> list[str]:
    return [i.value[0] if i.op == "index" else "" for i in o.indices]


def _aligned(outputs: Sequence[Output]) -> Iterable[Output]:
    """Yield outputs without reductions along the same variables where they have one shape."""
    known: dict[tuple[int, ...], tuple[Expr, ...]] = {}
    for o in outputs:
        if any(n.op == "reduce" for n in walk(o.element)):
            yield o
            continue
        indices = known.setdefault(o.shape, o.indices)
        pairs = [(i, new) for i, new in zip(o.indices, indices, strict=True) if i is not new]
        if any(i.op != "index" for i, _ in pairs):  # of several variables, which stay what they are
            yield o
            continue
        values = {i.value[0]: new for i, new in pairs}
        yield replace(o, indices=indices, element=substituted(o.element, values))


def _split(o: Output) -> Output:
    """Return an output with two variables for one of which a quotient or remainder is read.

    Heads that stand side by side in a row are an example: ``q[i, 64 * (d // 64) + k]``. Of short
    parts those of which no sum has the remainder: it is the same for all of them.
    """
    reductions = [n for n in walk(o.element) if n.op == "reduce"]
    for i in o.indices if reductions else ():
        parts = [n for n in walk(o.element) if n.op in ("floordiv", "mod") and n.args[0] is i]
        steps = {n.args[1].value for n in parts}
        if len(steps) != 1 or i.op != "index" or "," in i.value[0]:
            continue
        (step,), (name, extent) = steps, i.value
        if extent % step:
            continue
        # other outputs of a kernel may be split at other places
        outer = index(f"{name}/{step}", extent // step)
        inner = index(f"{name}%{step}", step)
        whole = add(multiply(const(step), outer), inner)
        element = substituted(o.element, {name: whole})
        if step < FEWEST_APART and any(
            inner.value[0] in n.free for n in walk(element) if n.op == "reduce"
        ):
            continue
        indices = tuple(whole if at is i else at for at in o.indices)
        made = replace(o, indices=indices, element=element)
        # Of long parts one is enough: with more, sums that others read would be computed again.
        return _split(made) if step < FEWEST_APART else made
    return o


def rejoined(outputs: Sequence[Output], stream: str | None) -> tuple[Output, ...]:
    """Return the outputs of a kernel: without a stream, in terms of what was split in few parts."""
    return tuple(outputs if stream is not None else map(_rejoined, outputs))


def _rejoined(o: Output) -> Output:
    made = [*o.indices]
    values: dict[str, Expr] = {}
    for k, i in enumerate(o.indices):
        outer, inner = (n for n in walk(i) if n.op == "index") if len(i.free) == 2 else (i, i)
        name = outer.value[0] if outer.op == "index" else ""
        whole, _, step_of_name = name.rpartition("/")
        is_split = bool(whole) and inner.value[0] == f"{whole}%{step_of_name}"
        if not is_split or inner.value[1] >= FEWEST_APART:
            continue
        step = const(inner.value[1])
        made[k] = index(whole, outer.value[1] * inner.value[1])
        values |= {
            name: integer_part("floordiv", made[k], step),
            inner.value[0]: integer_part("mod", made[k], step),
        }
    return replace(o, indices=tuple(made), element=substituted(o.element, values))


def _rows(outputs: Sequence[Output]) -> Iterable[list[str]]:
    """Yield runs of dimensions that are the rows, or the columns, of all products together."""
    elements = [o.element for o in outputs]
    reductions = [x for x in walk(*elements) if x.op == "reduce"]
    factors = [group.variables for x in reductions for group in sides(x)]
    everywhere = [*factors, *(x.free for x in reductions)]
    is_nested = any(n.op == "reduce" for x in reductions for n in walk(x.args[0]))
    extents = extents_of([*elements, *(i for o in outputs for i in o.indices)])
    run: list[str] = []
    for name in (*_names(outputs[0]), ""):
        is_side = any(name in s for s in factors)
        if run and is_side and all((run[0] in s) == (name in s) for s in everywhere):
            run.append(name)
            continue
        if len(run) > 1 and not _is_plain(elements, run):
            are_windows = any(i.free & {*run} for i in windows_in(elements))
            enough = ENOUGH_COLUMNS if are_windows else ENOUGH_ROWS
            run = [] if is_nested else _enough(run, extents, enough)
        if len(run) > 1:
            yield run
        run = [name] if is_side else []


def _enough(run: Sequence[str], extents: Mapping[str, int], enough: int) -> list[str]:
    """Return the last dimensions of a run that are rows enough."""
    made: list[str] = []
    for name in reversed(run):
        if math.prod(extents[n] for n in made) >= enough:
            break
        made.insert(0, name)
    return made


def _is_plain(elements: Sequence[Expr], run: Sequence[str]) -> bool:
    """Tell whether all of a run is read as neighbouring dimensions of tensors, and no otherwise."""
    names = set(run)
    for x in walk(*elements):
        if x.op == "load":
            at = [i.value[0] if i.op == "index" else "" for i in x.args]
            k = at.index(run[0]) if run[0] in at else 0
            is_run = at[k : k + len(run)] == [*run]
            others = [*x.args[:k], *x.args[k + len(run) :]] if is_run else x.args
            if any(i.free & names for i in others):
                return False
        elif any(arg.op == "index" and arg.value[0] in names for arg in x.args):
            return False
    return True
