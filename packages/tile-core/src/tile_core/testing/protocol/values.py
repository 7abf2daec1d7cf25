"""What expressions are in one run of a kernel: known sizes, and chosen values for all else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var
from tile_core.ir.operations import BINARY, UNARY

Value: TypeAlias = "int | Sequence[int]"
"""A number, or the elements of a tensor."""

Compiled: TypeAlias = "Callable[[Values], Any]"


class Unknown(Exception):
    """An expression depends on what the block computes."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What nobody knows before a kernel runs.

    All threads, and the program before and after it was changed, see the same: a value belongs
    to a symbol, or to an element of a tensor.
    """

    # Symbols and tensors by name: a number, or one for each row. Others have `otherwise`.
    known: Mapping[str, Value] = field(default_factory=dict)
    # The value of a symbol, or of an element at these indices.
    otherwise: Callable[[str, tuple[int, ...]], int] = lambda name, indices: 0
    # The indices of the first block of the cluster; negative ones count from the grid's end.
    block: tuple[int, int, int] = (0, 0, 0)

    def element(self, name: str, indices: tuple[int, ...]) -> int:
        """Return an element of a tensor, or the value of a symbol."""
        known = self.known.get(name)
        if known is None:
            return self.otherwise(name, indices)
        if isinstance(known, int):
            return known
        return known[indices[0]] if 0 <= indices[0] < len(known) else 0


@dataclass(slots=True)
class Values:
    """The variables of one group of threads."""

    scenario: Scenario
    rank: int = 0  # of its block in the cluster
    vars: dict[Var, Any] = field(default_factory=dict)
    scalars: dict[Buffer, Any] = field(default_factory=dict)
    codes: dict[Expr, Compiled] = field(default_factory=dict)

    def of(self, extent: Any) -> Any:
        """Return the value of an expression.

        Raises `Unknown` if it depends on what the block computes.
        """
        if isinstance(extent, int):
            return extent
        if isinstance(extent, Const):
            return extent.value
        code = self.codes.get(extent)
        if code is None:
            code = self.codes[extent] = _compiled(extent)
        return code(self)

    def loaded(self, buffer: Buffer, indices: tuple[int, ...]) -> Any:
        """Return an element of a buffer."""
        if buffer in self.scalars:
            return self.scalars[buffer]
        if buffer.scope is Scope.GLOBAL:
            return self.scenario.element(buffer.storage.name, indices)
        raise Unknown(f"{buffer.name!r} holds what the block computes")

    def variable(self, var: Var) -> Any:
        """Return the value of a variable: of symbols, as chosen."""
        found = self.vars.get(var)
        if found is None:
            found = self.vars[var] = self.scenario.element(var.name, ())
        return found(self) if callable(found) else found

    def name(self, var: Var, value: Expr, *, by_thread: bool = False) -> None:
        """Let a variable stand for what a value is now, or for each thread."""
        if by_thread:
            self.vars[var] = _compiled(value)
            return
        try:
            self.vars[var] = self.of(value)
        except Unknown as reason:
            self.vars[var] = _raising(str(reason))

    def store(self, scalar: Buffer, value: Expr) -> None:
        """Set a scalar of these threads; it has no value if nobody knows it."""
        try:
            self.scalars[scalar] = self.of(value)
        except Unknown:
            self.scalars.pop(scalar, None)


def _compiled(expr: Expr) -> Compiled:
    """Return a function that evaluates an expression: one is evaluated in every iteration."""
    match expr:
        case Const(value=number):
            return lambda values: number
        case Var():
            return lambda values: values.variable(expr)
        case Binary(op=op, a=a, b=b):
            left, right, both = _compiled(a), _compiled(b), BINARY[op]
            return lambda values: both(left(values), right(values))
        case Unary(op=op, a=a):
            inner, single = _compiled(a), UNARY[op]
            return lambda values: single(inner(values))
        case Select(cond=cond, then=then, otherwise=otherwise):
            test, yes, no = _compiled(cond), _compiled(then), _compiled(otherwise)
            return lambda values: yes(values) if test(values) else no(values)
        case Cast(dtype=dtype, value=value):
            source, kind = _compiled(value), int if dtype.is_int else lambda number: number
            return lambda values: kind(source(values))
        case Load(buffer=buffer, indices=indices):
            places = [_compiled(index) for index in indices]
            return lambda values: values.loaded(buffer, tuple(p(values) for p in places))
        case Call(function="block_rank_in_cluster"):
            return lambda values: values.rank
    what = expr.function if isinstance(expr, Call) else type(expr).__name__
    return _raising(f"{what} is not followed")


def _raising(reason: str) -> Compiled:
    def unknown(values: Values) -> Any:
        raise Unknown(reason)

    return unknown
