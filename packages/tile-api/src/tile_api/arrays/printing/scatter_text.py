"""The text of a kernel that adds elements where indices say."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from math import prod

from tile_api.arrays.equations.expressions import extents_of
from tile_api.arrays.equations.sizes import Size
from tile_api.arrays.planning.plan import Axis, Blocks, Plan, with_grid
from tile_api.arrays.planning.scatter import LOOPS
from tile_api.arrays.planning.tasks import Task
from tile_api.arrays.printing.kernel_text import KernelText, Tensor, Writer

MOST_HELD = 8192
"""Elements of a result that a block collects."""
MOST_CACHED = 1 << 17
"""So many are close to a core of a CPU."""
MOST_COLUMNS = 1024
FEWEST_BLOCKS = 64
"""Blocks of rows that keep a GPU busy."""


def scatter_plan(task: Task, blocks: Blocks, cores: int = 0) -> Plan:
    """Return a kernel in which each block looks for the indices that are its own.

    Parameters
    ----------
    cores
        Of a CPU: more blocks would do no more than to go through the indices again.
    """
    (output,), scatter = task.outputs, task.scatter
    assert scatter is not None
    extents = extents_of([output.element, *output.indices])
    names = [i.value[0] for i in output.indices if i.op == "index"]
    searched = scatter.index.free.union(*(c.free for c in scatter.conditions))
    columns = [v for v in names if v != scatter.row and v not in searched][-1:]
    grid = tuple(v for v in names if v not in (scatter.row, *columns))
    indices = [("bx", f"T.ceildiv({extents[scatter.row]}, BM)")]
    axes: dict[str, Axis] = {}
    width = 1
    for v in columns:
        n = extents[v]
        width = min(n, MOST_COLUMNS)
        if n == width:
            axes[v] = Axis(v, n, n, str(n), "0", "d")
        else:
            axes[v] = Axis(v, n, width, "BC", "by * BC", "d")
            indices.append(("by", f"T.ceildiv({n}, BC)"))
    whole = extents[scatter.row]
    beside = prod(  # a size that is a symbol is that of many
        FEWEST_BLOCKS if isinstance(extents[v], Size) else max(1, extents[v]) for v in grid
    ) * max(1, -(-extents[columns[0]] // width) if columns else 1)
    parts = -(-(cores or FEWEST_BLOCKS) // beside)  # each goes through all indices
    rows = max(1, min((MOST_CACHED if cores else MOST_HELD) // width, -(-whole // parts)))
    axes[scatter.row] = Axis(scatter.row, whole, rows, "BM", "bx * BM", "i")
    axes |= {v: Axis(v, n, 1, "1", at, "") for (v, n), at in zip(scatter.over, LOOPS, strict=False)}
    axes |= {v: Axis(v, extents[v], 1, "1", f"g{k}", "") for k, v in enumerate(grid)}
    count = prod(n for _, n in scatter.over)
    note = f"scatter: of {count} indices, each block adds what is its own, in their order"
    inner = (*grid, *(v for v, _ in scatter.over))
    plan = Plan(
        task, blocks, (), task.outputs, scatter.row, tuple(columns), inner, axes, notes=(note,)
    )
    return with_grid(plan, indices, [extents[v] for v in grid])


def with_scatter(name: str, plan: Plan, tensors: Mapping[str, Tensor]) -> KernelText:
    """Return the kernel of a plan; `tensors` are those that exist before it."""
    return _ScatterWriter(name, plan, tensors).kernel()


class _ScatterWriter(Writer):
    def kernel(self) -> KernelText:
        """Write everything."""
        plan, tiles, scatter = self.plan, self.tiles, self.plan.task.scatter
        assert scatter is not None
        (output,) = plan.finals
        row, dtype = scatter.row, scatter.element.dtype
        for name, text in plan.combined:
            tiles.prologue.append(f"            {name} = {text}")
        held = (row, *plan.columns)
        dims = tuple(i.value[0] for i in output.indices if i.op == "index" and i.value[0] in held)
        acc = tiles.allocate("acc", dims, "shared", str(dtype))
        tiles.put(f"T.fill({acc}, {tiles.text.number(0.0, dtype)})")
        for v, n in scatter.over:
            tiles.put(f"for {plan.axes[v].start} in T.serial({n}):")
            tiles.depth += 1
        at = tiles.fresh("at")
        parts, text = tiles.in_parts(scatter.index)
        for line in (*parts, f"{at} = {text} - {plan.axes[row].start}"):
            tiles.put(line)
        conditions = [f"0 <= {at}", f"{at} < BM", *map(tiles.text, scatter.conditions)]
        tiles.put(f"if {functools.reduce('T.And({}, {})'.format, conditions)}:")
        tiles.depth += 1
        where = ", ".join(at if v == row else plan.axes[v].loop for v in dims)
        parts, text = tiles.in_parts(scatter.element)
        for v in plan.columns:
            if plan.axes[v].extent % plan.axes[v].size:
                none = tiles.text.number(0.0, dtype)
                text = f"T.if_then_else({tiles.text.at(v)} < {plan.axes[v].extent}, {text}, {none})"
        tiles.parallel(plan.columns, *parts, f"{acc}[{where}] = {acc}[{where}] + {text}")
        tiles.depth -= 1 + len(scatter.over)
        tiles.put(f"T.copy({acc}, {tiles.region(output.name, output.indices)})")
        return self._function()

    def _sizes(self) -> str:
        columns = [f"BC={a.size}" for a in self.plan.axes.values() if a.text == "BC"]
        rows = f"BM={self.plan.axes[self.plan.row or ''].size}"
        return ", ".join((rows, *columns, f"threads={self.plan.blocks.threads}"))
