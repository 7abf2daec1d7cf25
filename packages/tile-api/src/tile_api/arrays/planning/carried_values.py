"""Which carried values depend on each other: recurrences of those that are read, and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from tile_api.arrays.equations.expressions import Expr, make, rebuild, walk
from tile_api.arrays.equations.recurrence import Steps, replaced, steps_of


def of_what_is_read(x: Expr, nodes: Sequence[Expr]) -> Expr:
    """Return `x` with recurrences that carry what `nodes`, which it reads, depend on."""
    known: dict[Expr, Expr] = {}
    for steps in dict.fromkeys(map(steps_of, nodes)):
        mine = [n for n in nodes if steps_of(n) == steps]
        needed = _needed(steps, (n.value.carry for n in mine))
        if len(needed) < len(steps.steps):
            known |= {n: _carrying(n, needed) for n in mine}
    return rebuild(x, known) if known else x


def beside_products(x: Expr, nodes: Sequence[Expr]) -> dict[Expr, Expr]:
    """Return values that are read as they are beside others in sums, with recurrences of their own.

    Sums of carried values are products of tiles, if nothing else of the recurrence is read.
    """
    summed = {n for sum_ in walk(x) if sum_.op == "reduce" for n in walk(sum_.args[0])}
    plain = [n for n in nodes if n not in summed]
    others = [n for n in nodes if n in summed]
    found: dict[Expr, Expr] = {}
    for n in plain if others else ():
        steps = steps_of(n)
        needed = _needed(steps, [n.value.carry])
        met = _needed(steps, (o.value.carry for o in others if steps_of(o) == steps))
        if not {*needed} & {*met}:
            found[n] = _carrying(n, needed)
    return found


def _needed(steps: Steps, carries: Iterable[int]) -> list[int]:
    """Return the values that some depend on, and these."""
    found: set[int] = set()
    todo, token = [*carries], steps.of.token

    def met(x: Expr) -> None:
        if x.op == "carry" and x.value[0] == token:
            todo.append(x.value[1])

    while todo:
        k = todo.pop()
        if k not in found:
            found.add(k)
            replaced(steps.steps[k], frozenset({token}), met)  # not those of recurrences within
    return sorted(found)


def _carrying(x: Expr, carries: Collection[int]) -> Expr:
    """Return a node of a recurrence that carries some of its values, which need no others."""
    steps, read = steps_of(x), x.value
    token, number = steps.of.token, {k: n for n, k in enumerate(carries)}

    def moved(n: Expr) -> Expr | None:
        if n.op != "carry" or n.value[0] != token:
            return None
        args = tuple(replaced(arg, frozenset({token}), moved) for arg in n.args)
        return make("carry", *args, value=(token, number[n.value[1]]), dtype=n.dtype)

    of = replace(steps.of, carried=tuple(steps.of.carried[k] for k in carries))
    made = Steps(
        of,
        tuple(steps.starts[k] for k in carries),
        tuple(replaced(steps.steps[k], frozenset({token}), moved) for k in carries),
    )
    at, *indices = x.args[: read.rank]
    return made.value(number[read.carry], at, tuple(indices), is_before=read.is_before)
