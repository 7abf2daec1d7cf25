"""Operands of products whose elements lie apart in memory: they are laid out once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, extents_of, index, load, rebuild
from tile_api.arrays.equations.sizes import at_most
from tile_api.arrays.planning.inner_products import reductions_over
from tile_api.arrays.planning.tasks import Task
from tile_api.arrays.reductions.groups import tiles_multiplied
from tile_core.dtypes import DType

LINE = 16
"""Elements side by side that are read about as fast as any."""
OFTEN = 256
"""Columns of the other operand: each element is read by as many, in fewer blocks."""

_APART = "its elements lie apart along {}: each block would gather them again"


def with_layouts(tasks: Sequence[Task], dtypes: Mapping[str, DType]) -> list[Task]:
    """Return kernels, with others before them that lay scattered operands out for them.

    Parameters
    ----------
    dtypes
        Of the arguments.
    """
    made: list[Task] = []
    names = {*dtypes, *(o.name for task in tasks for o in task.outputs)}
    for task in tasks:
        known: dict[Expr, Expr] = {}
        for x in _scattered(task) if task.is_streamed else ():
            if x.value in dtypes:
                output = _laid_out(x, task.stream or "", dtypes[x.value], names)
                known[x] = load(output.name, output.indices, output.dtype)
                made.append(Task((output,), None, (_APART.format(task.stream),)))
        outputs = (replace(o, element=rebuild(o.element, dict(known))) for o in task.outputs)
        made.append(replace(task, outputs=tuple(outputs)) if known else task)
    return made


def _scattered(task: Task) -> Iterator[Expr]:
    """Yield loads that are operands of products over the stream, and go through it in short runs.

    Weights of ``(results, channels, height, width)`` are an example, where results are summed over:
    those of a channel lie in runs of ``height * width``.
    """
    stream, elements = task.stream or "", [o.element for o in task.outputs]
    extents = extents_of(elements)
    for x in dict.fromkeys(reductions_over(elements, stream)):
        for group in tiles_multiplied(x) or ():
            mine = frozenset().union(*(f.free for f in group.factors))
            reads = math.prod(extents[v] for v in x.args[0].free - mine)
            operand, *more = group.factors
            if operand.op == "load" and not more and at_most(OFTEN, reads):
                yield from [operand] * _is_scattered(operand.args, stream)


def _is_scattered(indices: Sequence[Expr], stream: str) -> bool:
    """Tell whether dimensions of the stream stand apart, and the last ones are short."""
    mine = [k for k, i in enumerate(indices) if stream in i.free]
    plain = all(len(i.free) <= 1 for i in indices)
    run, k = 1, len(indices)
    if mine and not any(i.free for i in indices[mine[-1] + 1 :]):
        k = mine[-1] + 1  # elements at one place of further dimensions, if there are such
    while k and k - 1 in mine:
        k, run = k - 1, run * _values(indices[k - 1])
    is_apart = bool(mine) and mine[-1] - mine[0] >= len(mine)
    return plain and is_apart and run < LINE and k <= mine[-1]


def _values(x: Expr) -> int:
    """Return how many values a digit of a variable has, 1 if they are not side by side."""
    if x.op in ("add", "multiply") and x.args[0].op == "const":
        return _values(x.args[1]) if x.op == "add" else 1
    return x.args[1].value if x.op == "mod" else LINE


def _laid_out(x: Expr, stream: str, dtype: DType, names: set[str]) -> Output:
    """Return the tensor of the elements of a load in the order in which a product reads them."""
    extents = extents_of([x])
    order = [v for i in x.args for v in sorted(i.free) if v != stream]
    indices = tuple(index(v, extents[v]) for v in dict.fromkeys((*order, stream)))
    name = f"{x.value}_rows"
    while name in names:
        name += "_"
    names.add(name)
    return Output(name, tuple(i.value[1] for i in indices), dtype, indices, x)
