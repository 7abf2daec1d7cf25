"""The text of running sums and maxima along rows: scans of tiles, with what is carried between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from tile_api.arrays.equations.expressions import Expr, make, rebuild, walk
from tile_api.arrays.planning.affine import Declined
from tile_api.arrays.planning.carried_variables import carried_in
from tile_api.arrays.planning.plan import Axis, Blocks, Plan
from tile_api.arrays.planning.recurrence_plan import (
    is_as_carried,
    roots_of,
    step_of,
    stepped_plan,
)
from tile_api.arrays.planning.tasks import Task
from tile_api.arrays.printing.kernel_text import KernelText, Tensor
from tile_api.arrays.printing.recurrence_text import SteppedWriter
from tile_api.arrays.printing.text import nan_propagated
from tile_api.arrays.reductions.state import identity_of

MOST_OF_A_BLOCK = 4096
"""Elements of the rows of a block that is not the whole row."""
_NEUTRAL = {"add": 0, "maximum": -inf}
_KINDS = {"add": ("sum", "cumsum", "{} + {}"), "maximum": ("max", "cummax", "T.max({}, {}{})")}


@dataclass(frozen=True)
class Prefix:
    """A running sum or maximum.

    Parameters
    ----------
    kind
        "add" or "maximum".
    element
        What each step folds in.
    """

    kind: str
    element: Expr


def prefix(task: Task) -> Prefix:
    """Return what is summed along rows.

    Raises
    ------
    Declined
        If it is something else.
    """
    recurrence = task.recurrence
    assert recurrence is not None
    of, steps = recurrence.of, recurrence.steps
    along = [o for o in task.outputs if of.step in o.indices]
    is_of_spans = any(of.is_by_spans(o.indices) for o in task.outputs)
    if len(steps) > 1 or steps[0].op not in _KINDS or not along or is_of_spans:
        raise Declined("no running sum")
    before = [x for x in steps[0].args if x.op == "carry"]
    rest = [x for x in steps[0].args if not any(carried_in([x]))]
    if len(before) != 1 or len(rest) != 1 or any(o.indices[-1] is not of.step for o in along):
        raise Declined("no running sum of rows")
    read = [*carried_in(roots_of(task))]
    sums = [x for x in walk(*(o.element for o in task.outputs)) if x.op == "reduce"]
    is_plain = all(is_as_carried(x, recurrence) for x in read) and not sums
    results = carried_in(o.element for o in task.outputs)
    if not is_plain or any(x.value[0] != of.after for x in results):
        raise Declined("it is read at other elements")
    return Prefix(steps[0].op, rest[0])


def prefix_plan(task: Task, blocks: Blocks) -> Plan:
    """Return a kernel of blocks of rows, whole ones if they fit."""
    plan = stepped_plan(task, blocks)
    of = task.recurrence.of if task.recurrence is not None else None
    if of is None or plan.columns:
        raise Declined("no running sum of rows")
    rows, size = 1 if plan.row is None else plan.axes[plan.row].size, of.extent
    if size * rows > blocks.resident:
        size = min(size, max(blocks.stream, MOST_OF_A_BLOCK // rows))
    start = f"{step_of(of)} * BN"
    axes = {**plan.axes, of.variable: Axis(of.variable, of.extent, size, "BN", start, "j")}
    grid = tuple(v for v in plan.grid if v != of.variable)
    note = f"carried: 1 value, {of.extent} steps in blocks of {size}: running totals of tiles"
    return replace(plan, axes=axes, columns=(of.variable,), grid=grid, notes=(note,))


def with_prefix(name: str, plan: Plan, tensors: Mapping[str, Tensor]) -> KernelText:
    """Return the kernel of a plan; `tensors` are those that exist before it."""
    return _PrefixWriter(name, plan, tensors).kernel()


class _PrefixWriter(SteppedWriter):
    def kernel(self) -> KernelText:
        """Write everything."""
        tiles, of, plan = self.tiles, self.of, self.plan
        form = prefix(plan.task)
        for name, text in plan.combined:
            tiles.prologue.append(f"            {name} = {text}")
        step, mine = of.variable, self._tile(0)
        fold, scan, folded = _KINDS[form.kind]
        dtype = self.recurrence.steps[0].dtype
        nan = nan_propagated(fold, dtype)
        axis = plan.axes[step]
        along = [o for o in plan.finals if of.step in o.indices]
        start = self.recurrence.starts[0]
        is_neutral = start.op == "const" and start.value == _NEUTRAL[form.kind]
        is_single = axis.size == axis.extent and is_neutral and len(along) == len(plan.finals)
        running = tiles.allocate("running", (*mine, step), dtype=dtype)
        if not is_single:
            carried = tiles.allocate("carried", mine, dtype=dtype)
            total = tiles.allocate("total", mine, dtype=dtype)
            self._put(carried, start, mine)
        kept = {**tiles.held}
        self._loop(f"T.ceildiv({of.extent}, BN)")
        tiles.hoist(form.element, (*mine, step))
        parts, text = tiles.in_parts(form.element)
        if axis.extent % axis.size:
            beyond = self.text.number(identity_of(fold, dtype, is_infinite=True), dtype)
            text = f"T.if_then_else({self.text.at(step)} < {axis.extent}, {text}, {beyond})"
        at = self.text.loops((*mine, step))
        tiles.parallel((*mine, step), *parts, f"{running}[{at}] = {text}")
        if not is_single:
            tiles.put(f"T.reduce_{fold}({running}, {total}, dim={len(mine)}{nan})")
        order = ", reverse=True" if of.is_backward else ""
        tiles.put(f"T.{scan}({running}, dim={len(mine)}{order}{nan})")
        if not is_single:
            before = f"{carried}[{self.text.loops(mine)}]"
            text = folded.format(f"{running}[{at}]", before, nan)
            tiles.parallel((*mine, step), f"{running}[{at}] = {text}")
            text = folded.format(before, f"{total}[{self.text.loops(mine)}]", nan)
            tiles.parallel(mine, f"{before} = {text}")
            self.text.buffers[of.after, 0] = carried
        now = make("state", value=("running", (*mine, step)), dtype=dtype)
        tiles.held[now] = (running, (*mine, step))
        after = {x: now for x in carried_in(roots_of(plan.task)) if x.value[0] == of.after}
        for o in along:
            self._result(replace(o, element=rebuild(o.element, dict(after))))
        tiles.depth -= 1
        for x in [*tiles.held]:
            if x not in kept:
                del tiles.held[x]
        for o in plan.finals:
            if o not in along:
                self._result(o)
        return self._function()

    def _sizes(self) -> str:
        return f"BN={self.plan.axes[self.of.variable].size}, {super()._sizes()}"
