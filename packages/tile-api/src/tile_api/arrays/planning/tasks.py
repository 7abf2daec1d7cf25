"""What kernels compute, each after those whose results it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr
from tile_api.arrays.equations.recurrence import Steps
from tile_api.arrays.planning.inner_products import reductions_over
from tile_api.arrays.planning.kernel_dependences import View, loaded, reading_others
from tile_api.arrays.planning.recurrence_parts import outermost
from tile_api.arrays.planning.scatter import Scatter


@dataclass(frozen=True)
class Task:
    """What one kernel computes.

    Parameters
    ----------
    outputs
        Of the function, or tensors between its kernels.
    stream
        The variable that the kernel goes through in blocks; None without reductions.
    reasons
        Why its results are tensors between kernels.
    views
        The tensors that it reads, and writes, in another shape.
    recurrence
        What the kernel goes through step by step.
    scatter
        How the kernel adds where indices say.
    """

    outputs: tuple[Output, ...]
    stream: str | None
    reasons: tuple[str, ...] = ()
    views: tuple[View, ...] = ()
    recurrence: Steps | None = None
    scatter: Scatter | None = None

    @property
    def is_streamed(self) -> bool:
        """Whether the kernel is one of blocks that go through a stream, or through nothing."""
        return self.recurrence is None and self.scatter is None

    @property
    def carried(self) -> tuple[Expr, ...]:
        """Where what is carried starts, and what becomes of it in a step."""
        of = self.recurrence
        return () if of is None else (*of.starts, *of.steps)

    def split(self) -> list[Task]:
        """Return a task for the outputs of the same variables."""
        parts: dict[frozenset[str], list[Output]] = {}
        for output in self.outputs:
            parts.setdefault(variables_of(output), []).append(output)
        made = [reading_others(part, self.outputs, self.views) for part in parts.values()]
        made.sort(key=lambda part: not {*part} <= {*self.outputs})
        return [
            Task(tuple(x), streamed([o.element for o in x]), self.reasons, self._views_of(x))
            for x in made
        ]

    def alone(self) -> list[Task]:
        """Return a task for each output."""
        return [
            Task((o,), streamed([o.element]), self.reasons, self._views_of([o]))
            for o in self.outputs
        ]

    def _views_of(self, part: Sequence[Output]) -> tuple[View, ...]:
        """Return the views of what a kernel of only some of the outputs reads and writes."""
        gone = {o.name for o in self.outputs if o.name not in {p.name for p in part}}
        read = loaded(o.element for o in part)
        return tuple(v for v in self.views if v.tensor not in gone or v.name in read)


def variables_of(output: Output) -> frozenset[str]:
    """Return the index variables of an output."""
    return frozenset().union(*(i.free for i in output.indices))


def streamed(elements: Sequence[Expr]) -> str | None:
    """Return the variable over which most reductions depend on each other, the longest of these."""
    tops = [x for element in elements for x in outermost(element)]
    if not tops:
        return None
    extents: dict[str, int] = {x.value[1]: x.value[2] for x in tops}
    depth = {v: sum(len(reductions_over([x], v)) for x in tops) for v in extents}
    return max(extents, key=lambda v: (depth[v], extents[v], v))


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks, each after those whose results it reads; otherwise as they are given.

    Of kernels with several results that read each other each gives one.
    """
    while True:
        maker = {o.name: k for k, task in enumerate(tasks) for o in task.outputs}
        sorter: TopologicalSorter[int] = TopologicalSorter()
        for k, task in enumerate(tasks):
            read = loaded((*(o.element for o in task.outputs), *task.carried))
            sorter.add(k, *({maker[name] for name in read & maker.keys()} - {k}))
        try:
            sorter.prepare()
        except CycleError as error:
            circle = {k for k in error.args[1] if tasks[k].is_streamed}
            divided = [tasks[k].alone() if k in circle else [tasks[k]] for k in range(len(tasks))]
            assert any(len(parts) > 1 for parts in divided)
            tasks = [task for parts in divided for task in parts]
            continue
        found: list[Task] = []
        ready: list[int] = []
        while sorter.is_active():
            for k in sorter.get_ready():
                heappush(ready, k)
            k = heappop(ready)
            found.append(tasks[k])
            sorter.done(k)
        return found
