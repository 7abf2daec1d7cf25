"""Recurrences whose steps can be taken many at a time: decays, products of two factors, sums.

``h[n, p] <- a h[n, p] + b[n] x[p]``, read as ``sum over n of c[n] h[n, p]``: after the steps of a
chunk that is ``((c b') * L) x``, with ``L[t, s]`` the product of the decays after s up to t, and
the values carried into the chunk times the decays since. With a decay for each ``n``,
``L`` has another dimension, and stands within the sum over it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_api.arrays.equations.expressions import Expr, add, const, multiply, walk, where
from tile_api.arrays.planning.carried_variables import carried_in
from tile_api.arrays.planning.recurrence_plan import is_apart, is_as_carried, roots_of
from tile_api.arrays.planning.tasks import Task
from tile_api.arrays.reductions.algebra import factors, is_zero, product

FEWEST_STEPS = 12
"""Fewer steps are taken one after the other."""
MOST_SUMMED = 256
"""Elements that a read sums over: a tile has all of them."""


@dataclass(frozen=True)
class Value:
    """A carried value.

    Parameters
    ----------
    summed, column
        The variables of its elements beside those that have a block each; it may have no column.
    left, right
        What is added in a step: a factor along `summed`, and one along `column`.
    """

    carry: int
    summed: str
    column: str | None
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Read:
    """A sum that reads a carried value.

    Parameters
    ----------
    by
        What it multiplies it by.
    is_earlier
        Whether it reads the value before the step.
    """

    value: Value
    by: Expr
    is_earlier: bool


@dataclass(frozen=True)
class Chunked:
    """A recurrence that is taken in chunks.

    Parameters
    ----------
    decay
        Of all values in a step; None if they do not decay.
    reads
        By the reductions of outputs: what each reads.
    """

    values: tuple[Value, ...]
    decay: Expr | None
    column: str
    reads: dict[Expr, Read]

    @property
    def is_diagonal(self) -> bool:
        """Whether each element that is summed has a decay of its own."""
        return self.decay is not None and any(v.summed in self.decay.free for v in self.values)


class Declined(Exception):
    """Why a recurrence is taken step by step, in a few words: kernels have it in a comment."""


def affine(x: Expr, is_mine: Callable[[Expr], bool], one: Expr) -> tuple[Expr | None, Expr | None]:
    """Return `a` and `b` of an expression ``a h + b``; None for what is zero.

    Raises
    ------
    Declined
        If it is no such expression.
    """
    if is_mine(x):
        return one, None
    if not any(map(is_mine, walk(x))):
        return None, None if is_zero(x) else x
    if x.op == "add":
        (a, b), (c, d) = (affine(arg, is_mine, one) for arg in x.args)
        return _sum(a, c), _sum(b, d)
    if x.op == "multiply":
        mine = [arg for arg in x.args if any(map(is_mine, walk(arg)))]
        if len(mine) == 1:
            (by,) = (arg for arg in x.args if arg is not mine[0])
            a, b = affine(mine[0], is_mine, one)
            return _product(a, by), _product(b, by)
    if x.op == "where" and not any(map(is_mine, walk(x.args[0]))):
        (a, b), (c, d) = (affine(arg, is_mine, one) for arg in x.args[1:])
        return _chosen(x.args[0], a, c), _chosen(x.args[0], b, d)
    raise Declined("a step is no multiple and a summand")


def _sum(x: Expr | None, y: Expr | None) -> Expr | None:
    return y if x is None else x if y is None else add(x, y)


def _product(x: Expr | None, by: Expr) -> Expr | None:
    return None if x is None else multiply(x, by)


def _chosen(condition: Expr, x: Expr | None, y: Expr | None) -> Expr | None:
    if x is None and y is None:
        return None
    zero = const(0, (x or y).dtype)  # type: ignore[union-attr]
    return where(condition, zero if x is None else x, zero if y is None else y)


def chunked(task: Task) -> Chunked:
    """Return how a recurrence is taken in chunks.

    Raises
    ------
    Declined
        If it is not; with the reason.
    """
    recurrence = task.recurrence
    assert recurrence is not None
    of = recurrence.of
    along = [o for o in task.outputs if of.step in o.indices]
    if of.extent < FEWEST_STEPS:
        raise Declined("few")
    if not all(x.dtype.is_float for x in recurrence.steps):
        raise Declined("they are whole numbers")
    if not all(is_as_carried(x, recurrence) for x in carried_in(roots_of(task))):
        raise Declined("they are read at other elements")
    reads = dict(_read(x) for o in along for x in _sums(o.element))
    if any(_outside(o.element, reads) for o in along):
        raise Declined("they are read in no product")
    summed: dict[int, str] = {}
    for node, (carry, *_) in reads.items():
        if summed.setdefault(carry, node.value[1]) != node.value[1]:
            raise Declined("products go over several dimensions")
    is_of_spans = all(of.is_by_spans(o.indices) for o in task.outputs)
    if len(summed) != len(of.carried) and not is_of_spans:
        raise Declined("they are read in no product")
    parts = [_parts(of.token, k, step) for k, step in enumerate(recurrence.steps)]
    decays = {a for a, _ in parts}
    if len(decays) > 1:
        raise Declined("they decay in different ways")
    (decay,) = decays
    names = {name for variables in of.carried for name, _ in variables if name}
    order = [i.value[0] for o in task.outputs for i in o.indices if i.op == "index"]
    apart = sorted((v for v in names if is_apart(v, task, recurrence)), key=order.index)
    of_its_own = decay.free & (names - {*apart})
    if of_its_own and any(earlier for *_, earlier in reads.values()):
        raise Declined("they are read before a step")
    if of_its_own and {*summed.values()} != of_its_own:
        raise Declined("elements decay in different ways")
    is_one = decay.is_constant and decay.value == 1
    reason = Declined("they have no columns")
    for column in reversed(apart):
        if column in decay.free or any(column in c.free for _, c, _ in reads.values()):
            reason = Declined("columns decay in different ways")
            continue
        try:
            values = tuple(
                _value(k, own, b, summed.get(k) or _along(own, column, decay), column, apart)
                for k, (own, (_, b)) in enumerate(zip(of.carried, parts, strict=True))
            )
        except Declined as error:
            reason = error
            continue
        found = {n: Read(values[carry], c, earlier) for n, (carry, c, earlier) in reads.items()}
        return Chunked(values, None if is_one else decay, column, found)
    raise reason


def _parts(token: str, k: int, step: Expr) -> tuple[Expr, Expr]:
    """Return the decay of a value in a step, and what is added."""
    a, b = affine(step, lambda x: x.op == "carry" and x.value == (token, k), const(1, step.dtype))
    if a is None or b is None or any(carried_in([a, b])):
        raise Declined("a step is no multiple and a summand")
    return a, b


def _sums(x: Expr) -> list[Expr]:
    return [n for n in walk(x) if n.op == "reduce" and any(carried_in([n]))]


def _outside(x: Expr, reads: Mapping[Expr, Any]) -> bool:
    """Tell whether an expression reads carried values beside in some reductions."""
    if x in reads:
        return False
    return x.op == "carry" or any(_outside(arg, reads) for arg in x.args)


def _read(node: Expr) -> tuple[Expr, tuple[int, Expr, bool]]:
    """Return which value a reduction reads, by what it multiplies it, and if before the step."""
    kind, variable, extent = node.value
    found = {*carried_in([node])}
    if kind != "sum" or len(found) != 1 or extent > MOST_SUMMED:
        raise Declined("they are read in no product")
    (mine,) = found
    a, b = affine(node.args[0], lambda x: x is mine, const(1, node.dtype))
    if a is None or b is not None or variable not in mine.free:
        raise Declined("they are read in no product")
    return node, (mine.value[1], a, not mine.value[0].endswith("+"))


def _along(variables: Sequence[tuple[str, int]], column: str, decay: Expr) -> str:
    """Return a dimension of a value that no read sums over, which may be one of a tile."""
    for name, _ in reversed(variables):
        if name and name != column and name not in decay.free:
            return name
    raise Declined("they have no columns")


def _value(
    carry: int, variables: Sequence[tuple[str, int]], b: Expr, summed: str, column: str,
    apart: Sequence[str],
) -> Value:  # fmt: skip
    own = [name for name, _ in variables if name in (column, summed) or name not in ("", *apart)]
    mine = column if column in own else None
    if {*own} != {summed, mine} - {None}:
        raise Declined("products go over some dimensions")
    left: list[Expr] = []
    right: list[Expr] = []
    for f in factors(b):
        (left if summed in f.free else right).append(f)
        if summed in f.free and column in f.free:
            raise Declined("they add no product of two factors")
    one = const(1, b.dtype)
    return Value(carry, summed, mine, product(left, one), product(right, one))
