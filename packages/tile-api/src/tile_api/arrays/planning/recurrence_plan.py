"""The roles of variables in a kernel of a recurrence, and the sizes of its blocks."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tile_api.arrays.equations.expressions import Expr, extents_of, walk
from tile_api.arrays.equations.recurrence import SPAN, Recurrence, Steps
from tile_api.arrays.planning.carried_variables import carried_in
from tile_api.arrays.planning.plan import Axis, Blocks, Plan, with_grid
from tile_api.arrays.planning.sorts import digits_of, length_of
from tile_api.arrays.planning.tasks import Task

ROWS_APART = 4
"""Rows of a block whose steps lie one behind the other: each row has its own cache lines."""
MOST_CARRIED = 1 << 16
"""Bytes of the tiles of what is carried, if they have more than one row: every GPU has as many."""


def stepped_plan(task: Task, blocks: Blocks, reason: str = "") -> Plan:
    """Return a kernel in which each block takes the steps one after the other.

    Parameters
    ----------
    reason
        Why it does not take them in chunks.
    """
    recurrence = task.recurrence
    assert recurrence is not None
    of = recurrence.of
    roots = roots_of(task)
    extents = extents_of([*roots, *(i for o in task.outputs for i in o.indices)])
    extents |= {name: n for variables in of.carried for name, n in variables if name}
    names = [n for n in extents if n not in (of.variable, *of.span.free)]
    apart = [v for v in names if is_apart(v, task, recurrence)]
    whole = [v for v in names if v not in apart]
    order = [i.value[0] for o in task.outputs for i in o.indices if i.op == "index"]
    apart.sort(key=order.index)
    is_row = bool(apart) and of.sorted_by is None  # each row is sorted for itself
    row, grid = (apart[-1], tuple(apart[:-1])) if is_row else (None, tuple(apart))
    axes: dict[str, Axis] = {}
    indices: list[tuple[str, str]] = []
    letters = iter([*"jdefgh", *(f"g{len(grid) + k}" for k in range(len(whole)))])
    if row is not None:
        held = sum(  # before a step and after it
            2 * step.dtype.bits // 8 * prod(n for v, n in c if v in whole)
            for c, step in zip(of.carried, recurrence.steps, strict=True)
        )
        rows = min(blocks.rows, extents[row], max(1, MOST_CARRIED // max(1, held)))
        if any(o.indices[-1] is of.step for o in task.outputs):
            rows = min(rows, ROWS_APART)
        axes[row] = Axis(row, extents[row], rows, "BM", "bx * BM", "i")
        indices.append(("bx", f"T.ceildiv({extents[row]}, BM)"))
    for v in whole:
        axes[v] = Axis(v, extents[v], extents[v], str(extents[v]), "0", next(letters))
    for k, v in enumerate(grid):
        axes[v] = Axis(v, extents[v], 1, "1", f"g{k}", "")
    axes[of.variable] = Axis(of.variable, of.extent, 1, "1", step_of(of), "")
    axes |= span_axis(of, f"{step_of(of)} // {SPAN}")
    columns = tuple(v for v in whole if any(v == name for c in of.carried for name, _ in c))
    count = len(of.carried)
    note = f"carried: {count} value{'s' * (count > 1)}, {of.extent} steps one after the other"
    note += f": {reason}" if reason else ""
    if of.sorted_by is not None:
        digits = digits_of(of)
        note = f"sorted: {length_of(of)} elements by {digits.count} digits of {digits.width} bits"
    plan = Plan(
        task, blocks, (), task.outputs, row, columns, (*grid, of.variable, *of.span.free), axes,
        notes=(note,),
    )  # fmt: skip
    return with_grid(plan, indices, [extents[v] for v in grid])


def span_axis(of: Recurrence, start: str) -> dict[str, Axis]:
    """Return how a kernel says which span its steps are in."""
    return {name: Axis(name, of.span.value[1], 1, "1", start, "") for name in of.span.free}


def step_of(of: Recurrence) -> str:
    """Return what a kernel calls the block of steps that it has come to."""
    return "kt" if of.is_backward else "ko"


def roots_of(task: Task) -> list[Expr]:
    """Return all that a task computes."""
    return [*task.carried, *(o.element for o in task.outputs)]


def tile_of(plan: Plan, carry: int) -> tuple[str, ...]:
    """Return the variables of the tile of a carried value.

    Rows that nothing carries along are of what the recurrence stands in: all values have them.
    """
    recurrence = plan.task.recurrence
    assert recurrence is not None
    own = tuple(v for v, _ in recurrence.of.carried[carry] if v and v not in plan.grid)
    carried = {v for variables in recurrence.of.carried for v, _ in variables}
    return own if plan.row is None or plan.row in carried else (plan.row, *own)


def is_apart(variable: str, task: Task, recurrence: Steps) -> bool:
    """Tell whether elements with other values of a variable do not meet in any step."""
    roots = roots_of(task)
    own = frozenset(name for variables in recurrence.of.carried for name, _ in variables)
    if variable not in own.union(*(x.free for x in (*recurrence.starts, *recurrence.steps))):
        return False
    if not all(any(variable in i.free for i in o.indices) for o in task.outputs):
        return False
    if any(x.op == "reduce" and x.value[1] == variable for x in walk(*roots)):
        return False
    return all(
        (name == variable) == (arg.op == "index" and arg.value[0] == variable)
        and (name == variable or variable not in arg.free)
        for x in carried_in(roots)
        for (name, _), arg in zip(recurrence.of.carried[x.value[1]], x.args, strict=True)
    )


def is_as_carried(x: Expr, recurrence: Steps) -> bool:
    """Tell whether a carried value is read at the element for which a step computes it."""
    return x.args == recurrence.of.indices(x.value[1])


def are_as_carried(roots: Iterable[Expr], recurrence: Steps) -> bool:
    """Tell whether all carried values are read so."""
    return all(is_as_carried(x, recurrence) for x in carried_in(roots))
