"""Simplification of expressions at one place of a thread-level program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from tile_core.arith.affine import Linear
from tile_core.arith.bounds import Range, Ranges, is_beyond_indices, limits
from tile_core.arith.expander import (
    INT32,
    INT64,
    MayOverflow,
    fits,
    is_narrow,
    is_safe,
    within,
    write,
)
from tile_core.arith.index_rules import IndexRules
from tile_core.arith.interval import compare
from tile_core.dtypes import DType
from tile_core.ir import build_expr
from tile_core.ir.effect import Effect
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.intrinsics import effect_of
from tile_core.ir.node import Node, nodes_of
from tile_core.records import dataclass


def is_index(dtype: DType) -> bool:
    """Whether the rules work on values of this type."""
    return dtype in (INT32, INT64)


def acts(expr: Expr) -> bool:
    """Whether evaluating `expr` does more than give a value."""
    return any(effect_of(n.function) is not Effect.NONE for n in nodes_of(expr, Call))


@dataclass(slots=True)
class Simplifier:
    """Simplifies expressions where `ranges` hold; what was worked out is kept by node."""

    ranges: Ranges
    rules: IndexRules = field(default_factory=IndexRules)
    forms: dict[Expr, Linear] = field(default_factory=dict)
    done: dict[Node, Node] = field(default_factory=dict)
    multiples: dict[Var, int] = field(default_factory=dict)

    def binding(self, var: Var, bounds: Range, multiple: int) -> Simplifier:
        """Return a simplifier for the scope of `var`, which is a multiple of a number."""
        inner = self.knowing({var: bounds})
        if inner.multiples.get(var, 1) != (multiple or 1):
            if inner is self and var in self.forms:
                inner = Simplifier(self.ranges.copy())
            inner.multiples = {**self.multiples, var: multiple or 1}
        return inner

    def knowing(self, known: Mapping[Var, Range]) -> Simplifier:
        """Return a simplifier that also knows the ranges `known`; itself if that is no news."""
        news = {v: r for v, r in known.items() if self.ranges.ranges.get(v) != r}
        if not news:
            return self
        if news.keys().isdisjoint(self.ranges.ranges):
            for var, bounds in news.items():
                self.ranges.bind(var, *bounds)
            return self
        ranges = self.ranges.copy()
        for var, bounds in news.items():
            ranges.bind(var, *bounds)
        return Simplifier(ranges, multiples=self.multiples)

    def expr(self, expr: Expr) -> Expr:
        """Return an expression of the same type and value."""
        found = self.done.get(expr)
        if found is None:
            found = self.done[expr] = self._expr(expr)
        return found  # type: ignore[return-value]

    def _expr(self, expr: Expr) -> Expr:
        rule = _EXPRESSIONS.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        return expr.map_children(self._child)

    def _child(self, node: Node) -> Node:
        return self.expr(node) if isinstance(node, Expr) else node

    def index(self, expr: Expr) -> Expr:
        """Return an index of equal value, in 32 bits where they certainly suffice."""
        if expr.dtype != INT64:
            return self.expr(expr)
        value = self.form(expr)
        return write(value, INT32) if is_narrow(value) else self.expr(expr)

    def form(self, expr: Expr) -> Linear:
        """Return an expression of type int32 or int64 as a sum that is safe to compute."""
        found = self.forms.get(expr)
        if found is not None:
            return found
        rule = _FORMS.get(type(expr))
        try:
            made = self._opaque(expr) if rule is None else rule(self, expr)
            if not is_safe(made, expr.dtype) or (
                not fits(made, expr.dtype) and self._may_wrap(made)
            ):
                raise MayOverflow
        except MayOverflow:
            made = self._opaque(expr)
        if not made.acts:
            self.forms[expr] = made
        return made

    def _may_wrap(self, value: Linear) -> bool:
        """Whether a sum, which may not fit, is one of what was given."""
        return is_beyond_indices(value.constant) or any(
            self.ranges.is_arbitrary(atom.expr) for atom, _ in value.terms
        )

    def written(self, expr: Expr) -> Expr:
        """Return the shortest expression of the value of an int32 or int64 expression."""
        try:
            return write(self.form(expr), expr.dtype)
        except MayOverflow:
            return expr.map_children(self._child)

    def _opaque(self, expr: Expr) -> Linear:
        """Return `expr` as a sum of nothing but itself, with simpler parts."""
        made = expr if type(expr) is Var else self._parts(expr)
        bounds = self.ranges.of(made)
        if not within(bounds, expr.dtype):
            bounds = limits(expr.dtype)
        if type(expr) is not Var and acts(expr):
            return self.rules.acting(made, bounds)
        return self.rules.leaf(expr, made, bounds)

    def _parts(self, expr: Expr) -> Expr:
        if isinstance(expr, (Binary, Unary, Cast)):
            return expr.map_children(self._child)
        return self._expr(expr)


def _form_of_var(s: Simplifier, expr: Var) -> Linear:
    multiple = s.multiples.get(expr, 1)
    if expr.contract is not None:
        multiple = math.lcm(multiple, expr.contract.multiple_of)
    return s.rules.leaf(expr, expr, s.ranges.learn(expr), multiple=multiple)


def _form_of_unary(s: Simplifier, expr: Unary) -> Linear:
    a = s.form(expr.a)
    if a.acts or expr.op is UnaryOp.NOT:
        raise MayOverflow
    negative = a.times(-1)
    return negative if expr.op is UnaryOp.NEG else negative.plus(-1)


def _form_of_cast(s: Simplifier, expr: Cast) -> Linear:
    if not is_index(expr.value.dtype):
        raise MayOverflow
    a = s.form(expr.value)
    if a.acts:
        raise MayOverflow
    if expr.dtype == INT32:
        if not fits(a, INT32) or not all(fits(Linear((t,)), INT32) for t in a.terms):
            raise MayOverflow
        return a
    if fits(a, INT32) or a.single is not None:
        return a
    (low, high), (least, most) = a.bounds, limits(INT32)
    return s.rules.leaf(("wide", a), write(a, INT32), (max(least, low), min(most, high)))


def _form_of_binary(s: Simplifier, expr: Binary) -> Linear:
    a, b = s.form(expr.a), s.form(expr.b)
    rule = _OPERATIONS.get(expr.op)
    if rule is None or a.acts or b.acts:
        raise MayOverflow
    if expr.op is BinaryOp.MUL and a.terms and b.terms:
        ends = [x * y for x in a.bounds for y in b.bounds]
        if not within((min(ends), max(ends)), expr.dtype) and s.ranges.is_arbitrary(expr):
            raise MayOverflow
    return rule(s.rules, a, b, expr.dtype)


def _divisor(a: Linear, b: Linear, *, natural: bool = False) -> int:
    """Return the positive number that `b` is."""
    if b.terms or b.constant <= 0 or (natural and a.bounds[0] < 0):
        raise MayOverflow
    return int(b.constant)


def _power(b: Linear, dtype: DType) -> int:
    """Return two to the power of the number that `b` is."""
    if b.terms or not 0 <= b.constant < dtype.bits - 1:
        raise MayOverflow
    return 1 << int(b.constant)


def _bit_and(rules: IndexRules, a: Linear, b: Linear, dtype: DType) -> Linear:
    for x, mask in ((a, b), (b, a)):
        if not mask.terms and mask.constant >= 0 and mask.constant & (mask.constant + 1) == 0:
            return rules.remainder(x, mask.constant + 1, dtype)
    raise MayOverflow


Rule = Callable[[IndexRules, Linear, Linear, DType], Linear]

_OPERATIONS: dict[BinaryOp, Rule] = {
    BinaryOp.ADD: lambda r, a, b, t: r.joined(a + b, t),
    BinaryOp.SUB: lambda r, a, b, t: r.joined(a - b, t),
    BinaryOp.MUL: lambda r, a, b, t: r.product(a, b, t),
    BinaryOp.FLOORDIV: lambda r, a, b, t: r.quotient(a, _divisor(a, b), t),
    BinaryOp.FLOORMOD: lambda r, a, b, t: r.remainder(a, _divisor(a, b), t),
    BinaryOp.TRUNCDIV: lambda r, a, b, t: r.quotient(a, _divisor(a, b, natural=True), t),
    BinaryOp.TRUNCMOD: lambda r, a, b, t: r.remainder(a, _divisor(a, b, natural=True), t),
    BinaryOp.SHR: lambda r, a, b, t: r.quotient(a, _power(b, t), t),
    BinaryOp.SHL: lambda r, a, b, t: a.times(_power(b, t)),
    BinaryOp.BITAND: _bit_and,
    BinaryOp.BITXOR: lambda r, a, b, t: r.xor(a, b, t),
    BinaryOp.BITOR: lambda r, a, b, t: r.union(a, b, t),
    BinaryOp.MIN: lambda r, a, b, t: r.extreme(BinaryOp.MIN, a, b, t),
    BinaryOp.MAX: lambda r, a, b, t: r.extreme(BinaryOp.MAX, a, b, t),
}

_FORMS: dict[type, Callable[[Simplifier, Any], Linear]] = {
    Const: lambda s, expr: Linear.of_number(int(expr.value)),
    Var: _form_of_var,
    Unary: _form_of_unary,
    Cast: _form_of_cast,
    Binary: _form_of_binary,
}


def _var(s: Simplifier, expr: Var) -> Expr:
    low, high = s.ranges.learn(expr) if expr.dtype.is_int and expr.dtype.lanes == 1 else (0, 1)
    return Const(low, expr.dtype) if low == high else expr


def _arithmetic(s: Simplifier, expr: Binary | Unary | Cast) -> Expr:
    if is_index(expr.dtype):
        return s.written(expr)
    if expr.dtype.is_bool and expr.dtype.lanes == 1 and not isinstance(expr, Cast):
        return _truth(s, expr)
    return expr.map_children(s._child)


def _truth(s: Simplifier, expr: Binary | Unary) -> Expr:
    if isinstance(expr, Unary):
        return build_expr.unary(expr.op, s.expr(expr.a))
    if expr.op.is_logical:
        joined = build_expr.binary(expr.op, s.expr(expr.a), s.expr(expr.b))
        return expr if isinstance(joined, Const) and acts(expr) else joined
    if not (expr.op.is_comparison and is_index(expr.a.dtype)):
        return expr.map_children(s._child)
    a, b = s.form(expr.a), s.form(expr.b)
    if a.acts or b.acts:
        return expr.map_children(s._child)
    difference = a - b
    low, high = compare(expr.op, difference.bounds, (0, 0))
    if low == high:
        return Const(bool(low), expr.dtype)
    if len(difference.terms) < len(a.terms) + len(b.terms):
        try:
            return _balanced(expr, difference)
        except MayOverflow:
            pass
    return expr.map_children(s._child)


def _balanced(expr: Binary, difference: Linear) -> Expr:
    """Return a comparison without what stands on both sides.

    Raises `MayOverflow` if what is left might not fit where the whole did.
    """
    dtype = expr.a.dtype
    left = Linear(tuple(t for t in difference.terms if t[1] > 0))
    right = left - difference
    if not left.terms and right.constant < 0:
        left, right = Linear.of_number(-right.constant), Linear(right.terms)
    if not (fits(left, dtype) and fits(right, dtype)):
        raise MayOverflow
    return Binary(expr.op, write(left, dtype), write(right, dtype), expr.dtype)


def _select(s: Simplifier, expr: Select) -> Expr:
    cond = s.expr(expr.cond)
    if isinstance(cond, Const):
        return s.expr(expr.then if cond.value else expr.otherwise)
    return Select(cond, s.expr(expr.then), s.expr(expr.otherwise), expr.lazy, span=expr.span)


def _load(s: Simplifier, expr: Load) -> Expr:
    return Load(expr.buffer, tuple(map(s.index, expr.indices)), span=expr.span)


def _address(s: Simplifier, expr: AddressOf) -> Expr:
    return AddressOf(expr.buffer, tuple(map(s.index, expr.indices)), expr.access, span=expr.span)


_EXPRESSIONS: dict[type, Callable[[Simplifier, Any], Expr]] = {
    Const: lambda s, expr: expr,
    Var: _var,
    Binary: _arithmetic,
    Unary: _arithmetic,
    Cast: _arithmetic,
    Select: _select,
    Load: _load,
    AddressOf: _address,
}
