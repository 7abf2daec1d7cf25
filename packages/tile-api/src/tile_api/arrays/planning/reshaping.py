"""Tensors in other shapes: indices that are parts of one, or one of parts, are plain there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.expressions import (
    Expr,
    bound_of,
    const,
    integer_part,
    make,
    rebuild,
    walk,
)
from tile_api.arrays.equations.sizes import at_most, whole
from tile_api.arrays.planning.kernel_dependences import View
from tile_api.arrays.planning.tasks import Task
from tile_api.arrays.reductions.algebra import terms

Shape = tuple[int, ...]


def reshaped(task: Task, shapes: Mapping[str, Shape]) -> Task:
    """Return a task that reads and writes tensors in shapes in which its indices are plain.

    Elements that lie in a row lie in a row in every shape: ``x[r // 8, r % 8]`` is element ``r``
    of a vector. What a recurrence reads stays as it is: its steps know it by that.
    """
    views: dict[tuple[str, Shape], View] = {}

    def view(name: str, indices: Sequence[Expr]) -> tuple[str, Sequence[Expr]]:
        if name not in shapes or not indices:
            return name, indices
        shape, plain = plain_form(shapes[name], indices)
        if shape == shapes[name]:
            return name, indices
        called = re.sub(r"\W+", "_", f"{name}_{'x'.join(map(str, shape))}")
        while any(v.name == called and v.shape != shape for v in views.values()):
            called += "_"
        return views.setdefault((name, shape), View(called, name, shape)).name, plain

    known: dict[Expr, Expr] = {}
    read = [] if task.recurrence is not None else [o.element for o in task.outputs]
    for x in walk(*read):
        made = rebuild(x, known)
        if made.op == "load":
            name, indices = view(made.value, made.args)
            made = make("load", *indices, value=name, dtype=made.dtype)
        known[x] = made
    outputs = tuple(
        replace(
            o,
            element=known.get(o.element, o.element),
            indices=tuple(view(o.name, o.indices)[1]),
        )
        for o in task.outputs
    )
    return replace(task, outputs=outputs, views=tuple(views.values()))


def plain_form(shape: Shape, indices: Sequence[Expr]) -> tuple[Shape, list[Expr]]:
    """Return another shape of the same elements, and the indices of an element in it."""
    sizes, made = [shape[-1]], [indices[-1]]
    for size, at in zip(shape[-2::-1], indices[-2::-1], strict=True):
        whole = _whole(at, size, made[0], sizes[0])
        if whole is None:
            sizes.insert(0, size)
            made.insert(0, at)
        else:
            sizes[0] *= size
            made[0] = whole
    split = [_split(at, size) for at, size in zip(made, sizes, strict=True)]
    return tuple(n for s, _ in split for n in s), [at for _, parts in split for at in parts]


def _whole(first: Expr, size: int, second: Expr, n: int) -> Expr | None:
    """Return the index of both dimensions together, if the two are parts of one."""
    if second.op != "mod" or second.args[1].op != "const" or second.args[1].value != n:
        return None
    whole = second.args[0]
    quotient = integer_part("floordiv", whole, const(n))
    if first is quotient:
        return whole
    if first is integer_part("mod", quotient, const(size)):
        return integer_part("mod", whole, const(size * n))
    return None


def _split(at: Expr, size: int) -> tuple[list[int], list[Expr]]:
    """Return an index ``n * a + b`` of a dimension as `a` and `b`, if it is one."""
    parts = sorted(((_factor(t), t) for t in terms(at)), key=lambda part: -part[0])
    steps = [step for step, _ in parts]
    is_chain = len(parts) > 1 and steps[-1] == 1 and size % steps[0] == 0
    atoms = [t.args[1] if step > 1 else t for step, t in parts]
    for k, (step, atom) in enumerate(zip(steps[1:], atoms[1:], strict=True)):
        bound = bound_of(atom)
        fits = (
            bound is not None and step > 0 and at_most(bound * step, steps[k]) and steps[k] > step
        )
        is_chain = is_chain and fits and steps[k] % step == 0
    if not is_chain or not any(atom.op == "index" for atom in atoms):
        return [size], [at]
    sizes = [size // steps[0], *(steps[k] // step for k, step in enumerate(steps[1:]))]
    return sizes, atoms


def _factor(x: Expr) -> int:
    if x.op == "multiply" and x.args[0].op == "const":
        return whole(x.args[0].value)
    return 0 if x.op == "const" else 1
