"""Recurrences in equations: nodes of op ``scan`` for values that are carried from step to step.

A node of op ``scan`` is a carried value after (or before) a step. Its operands are the step and
the element's indices; then where each carried value starts, and what each becomes in a step. In
these stand nodes of op ``carry`` for the values before the step, and variables of the recurrence
for the step and for the indices of elements; all of them are bound by the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from tile_api.arrays.equations.dims import Dim, another
from tile_api.arrays.equations.expressions import (
    Expr,
    Indices,
    add,
    const,
    floordiv,
    index,
    make,
    multiply,
    remade,
    walk,
)
from tile_api.arrays.equations.sizes import is_multiple, whole

Variables = tuple[tuple[str, int], ...]
"""Names and extents; a dimension of size 1 has no name."""
SPAN = 64
"""Steps of a span: blocks of steps end where spans do."""


@dataclass(frozen=True)
class Recurrence:
    """What is gone through, and what is carried.

    Parameters
    ----------
    token
        What `free` of an expression has that reads a carried value.
    variable, extent
        The step, and how many there are.
    carried
        The dimensions of each carried value.
    is_backward
        Whether the last step is the first one that is taken.
    sorted_by
        If the steps sort: after the last one, what is carried is what they start from, along the
        first dimension, in the ascending order of bits of the first value: the first of these, and
        how many they are, the last one their sign. Equal ones stay in their order.
    """

    token: str
    variable: str
    extent: int
    carried: tuple[Variables, ...]
    is_backward: bool = False
    sorted_by: tuple[int, int] | None = None

    @property
    def first(self) -> int:
        """The step that is taken first."""
        return self.extent - 1 if self.is_backward else 0

    @property
    def last(self) -> int:
        """The step that is taken last."""
        return 0 if self.is_backward else self.extent - 1

    @property
    def after(self) -> str:
        """What `token` is for values after the step: kernels read both."""
        return f"{self.token}+"

    @property
    def bound(self) -> frozenset[str]:
        """The names that mean something within the recurrence only."""
        names = {name for variables in self.carried for name, _ in variables}
        return frozenset({self.token, self.variable, *names})

    @property
    def step(self) -> Expr:
        """The step, as an expression."""
        return index(self.variable, self.extent)

    @property
    def span(self) -> Expr:
        """The span that a step is in, as an expression."""
        count = -(-self.extent // SPAN)
        return index(f"{self.variable}/", count) if count > 1 else const(0)

    def is_by_spans(self, indices: Indices) -> bool:
        """Tell whether an element with these indices is what is carried after a span."""
        return bool(self.span.free) and self.span in indices

    def end_of(self, span: Expr) -> Expr:
        """Return the step of a span that is taken last."""
        first = multiply(const(SPAN), span)
        if self.is_backward:
            return first
        last = add(const(SPAN - 1), first)
        if is_multiple(self.extent, SPAN):
            return last
        return make("minimum", last, const(self.extent - 1))

    def span_of(self, at: Expr) -> Expr | None:
        """Return the span of which a step is the one that is taken last, if it is written so."""
        found = floordiv(at.args[0] if at.op == "minimum" else at, const(SPAN))
        return found if at.op != "index" and self.end_of(found) is at else None

    def indices(self, carry: int) -> Indices:
        """Return the indices of an element of a carried value."""
        return tuple(index(name, n) if name else const(0) for name, n in self.carried[carry])


@dataclass(frozen=True)
class Read:
    """Which value of a recurrence a node of op ``scan`` is, after a step or before it."""

    of: Recurrence
    carry: int
    is_before: bool = False

    @property
    def rank(self) -> int:
        """How many of the operands are the step and the indices."""
        return 1 + len(self.of.carried[self.carry])

    def free(self, args: Sequence[Expr]) -> frozenset[str]:
        """Return the names that a node with these operands depends on."""
        at = frozenset[str]().union(*(arg.free for arg in args[: self.rank]))
        return at.union(*(arg.free for arg in args[self.rank :])) - (self.of.bound - at)

    def formula(self, args: Sequence[str]) -> str:
        """Return a node with these operands as it is written in mathematics."""
        rest = args[self.rank :]
        half = len(rest) // 2
        steps = ", ".join(f"{a} -> {b}" for a, b in zip(rest[:half], rest[half:], strict=True))
        at = ", ".join(args[: self.rank])
        step = f"{'-' * self.of.is_backward}{self.of.variable}"
        return f"h{self.carry}{'-' * self.is_before}[{at}] of {step}({steps})"


@dataclass(frozen=True)
class Steps:
    """A recurrence with where its values start, and what becomes of them in a step."""

    of: Recurrence
    starts: tuple[Expr, ...]
    steps: tuple[Expr, ...]

    @property
    def outer(self) -> tuple[Expr, ...]:
        """The variables of what the recurrence stands in."""
        free = frozenset().union(*(x.free for x in (*self.starts, *self.steps))) - self.of.bound
        found = {x.value[0]: x for x in walk(*self.starts, *self.steps) if x.op == "index"}
        return tuple(found[name] for name in sorted(free))

    def value(self, carry: int, at: Expr, indices: Indices, *, is_before: bool = False) -> Expr:
        """Return an element of a carried value after the step `at`, or before it."""
        return make(
            "scan", at, *indices, *self.starts, *self.steps,
            value=Read(self.of, carry, is_before), dtype=self.steps[carry].dtype,
        )  # fmt: skip


def steps_of(x: Expr) -> Steps:
    """Return the recurrence of a node."""
    rest = x.args[x.value.rank :]
    half = len(rest) // 2
    return Steps(x.value.of, rest[:half], rest[half:])


DEPTH: ContextVar[int] = ContextVar("depth", default=1)
"""In how many steps what is captured stands: recurrences within one another have other names."""


def recurrence(extent: int, shapes: Sequence[Sequence[int]]) -> Recurrence:
    """Return a recurrence of `extent` steps that carries arrays of these shapes."""
    depth = DEPTH.get()
    carried = []
    for shape in shapes:
        names: list[tuple[str, int]] = []
        for size in shape:
            name = _name(size, depth)
            if size != 1:
                name = another(name, {known for known, _ in names})
            names.append(("" if size == 1 else name, whole(size)))
        carried.append(tuple(names))
    step = f"s'{whole(extent)}.{depth}"
    return Recurrence(f"carry.{depth}", step, whole(extent), tuple(carried))


def _name(size: int, depth: int) -> str:
    symbol = size.symbol.found().name if isinstance(size, Dim) else f"k'{whole(size)}"
    return f"{symbol}.{depth}"


def replaced(x: Expr, names: frozenset[str], by: Callable[[Expr], Expr | None]) -> Expr:
    """Return `x` with other expressions for those that depend on free `names`.

    Parameters
    ----------
    by
        Gives what stands for an expression, or None for the same with other operands. What it
        gives depends on nothing that is bound in `x`.
    """
    known: dict[tuple[Expr, frozenset[str]], Expr] = {}

    def run(x: Expr, names: frozenset[str]) -> Expr:
        if not x.free & names:
            return x
        if (x, names) not in known:
            known[x, names] = by(x) or within(x, names)
        return known[x, names]

    def within(x: Expr, names: frozenset[str]) -> Expr:
        if x.op == "scan":
            at = x.value.rank
            inner = names - x.value.of.bound
            args = (*(run(a, names) for a in x.args[:at]), *(run(a, inner) for a in x.args[at:]))
            return remade(x, args)
        return remade(x, tuple(run(arg, names) for arg in x.args))

    return run(x, names)
