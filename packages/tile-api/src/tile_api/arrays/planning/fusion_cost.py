"""Where kernels end, by cost: what is written for others, and what is computed again.

No rule says it: the model of what kernels move and compute does, for the machine that they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, extents_of, formula, walk
from tile_api.arrays.equations.sizes import ValueNeeded, usual
from tile_api.arrays.planning.blocks import least, worthwhile
from tile_api.arrays.planning.partition import BY_RULES, Cuts
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.planning.tasks import Task
from tile_api.arrays.planning.traffic import Machine
from tile_api.arrays.reductions.groups import tiles_multiplied
from tile_core.cost.estimate import duration
from tile_core.dtypes import DType
from tile_core.errors import TileError

SURELY = 0.9
"""A way is faster if it takes so much of another's time: what is closer is left to the rules."""
MOST_APART = 3
"""Reductions that are tried in kernels of their own: those that take longest."""
MOST_KERNELS = 16
"""Kernels of a function whose ends are left to the rules if it has more: it would take long."""

LONGEST = 70
"""Characters of a formula in what is told."""

_AGAIN = "products in a loop are computed again in the loop after it"
_WIDE = "products in a loop are computed again for each block of columns"


@dataclass(frozen=True)
class Way:
    """A way to divide a function into kernels.

    Parameters
    ----------
    told
        In words.
    milliseconds, by
        What it is expected to take, and who says so.
    """

    cuts: Cuts
    told: str
    milliseconds: float
    by: str = "traffic"

    def asked(self, milliseconds: float) -> Way:
        """Return it with what the model of the machine says."""
        return replace(self, milliseconds=milliseconds, by="the model")


def told_of(ways: Sequence[Way]) -> tuple[str, ...]:
    """Return what is to be told of ways, of which the first is taken."""
    if not ways:
        return ()
    first, *others = (f"{w.told}: {duration(w.milliseconds)} by {w.by}" for w in ways)
    return ("\n".join((f"kernels: {first}", *(f"  not {other}" for other in others))),)


def compared(
    outputs: Sequence[Output],
    tasks: Callable[[Cuts], list[Task]],
    plans: Callable[[Sequence[Task]], list[Plan]],
    dtypes: Mapping[str, DType],
    machine: Machine,
) -> list[Way]:
    """Return the ways to divide a function into kernels, the fastest first; none if there is one.

    Parameters
    ----------
    tasks, plans
        What gives the kernels, with blocks as they come.
    """
    rules = tasks(BY_RULES)
    if len(rules) > MOST_KERNELS or not all(t.is_streamed for t in rules):
        return []
    best = Way(BY_RULES, "as the rules have them", _sum(plans(rules), dtypes, machine))
    known = {_shape(rules): best}
    if best.milliseconds < worthwhile(machine):
        return []
    while True:
        start, found = best, best
        for cuts, told in _others(start, outputs):
            try:
                made = tasks(cuts)
                if _shape(made) in known:
                    continue
                way = Way(cuts, told, _sum(plans(made), dtypes, machine))
            except (TileError, ValueNeeded):  # a way that no kernel can go
                continue
            known[_shape(made)] = way
            if way.milliseconds < SURELY * found.milliseconds:
                found = way
        if found is start:
            break
        best = found
    others = [w for w in known.values() if w is not best]
    return [best, *others] if others else []


def _others(way: Way, outputs: Sequence[Output]) -> Iterator[tuple[Cuts, str]]:
    """Yield ways that differ from one in one place."""
    cuts = way.cuts
    before = f"{way.told}; " if cuts != BY_RULES else ""
    if not cuts.is_read_again:
        yield replace(cuts, is_read_again=True), f"{before}{_AGAIN}"
    if cuts.widest < inf:
        yield replace(cuts, widest=inf), f"{before}{_WIDE}"
    for x in _products_within(outputs):
        if x not in cuts.apart:
            told = f"{before}{_short(formula(x))} is written by a kernel of its own"
            yield replace(cuts, apart=cuts.apart | {x}), told


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _products_within(outputs: Sequence[Output]) -> list[Expr]:
    """Return the products that reductions read, those that take longest first.

    A sum of sums is one, over several dimensions.
    """
    elements = [o.element for o in outputs]
    nested = [x for x in walk(*elements) if x.op == "reduce"]
    inner = {n for x in nested for n in walk(*x.args) if n.op == "reduce" and tiles_multiplied(n)}
    inner -= {x.args[0] for x in nested if x.value[0] == "sum"}
    extents = extents_of(elements)
    work = {x: usual(x.value[2]) * prod(usual(extents[v]) for v in x.free) for x in inner}
    ordered = sorted(inner - {*elements}, key=lambda x: (-work[x], x.serial))
    return ordered[:MOST_APART]


def _sum(plans: Sequence[Plan], dtypes: Mapping[str, DType], machine: Machine) -> float:
    known, total = dict(dtypes), 0.0
    for plan in plans:
        known |= {v.name: known[v.tensor] for v in plan.task.views if v.tensor in known}
        total += least(plan, known, machine)
        known |= {o.name: o.dtype for o in plan.finals}
    return total


def _shape(tasks: Sequence[Task]) -> object:
    """Return what kernels compute, whatever the reason that there are so many."""
    return tuple((t.outputs, t.stream) for t in tasks)
