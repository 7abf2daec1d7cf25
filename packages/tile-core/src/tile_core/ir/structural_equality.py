"""Structural equality of nodes: same shape, same data, variables matched one to one."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Const, Var
from tile_core.ir.node import Node
from tile_core.ir.stmt import Seq


def structurally_equal(left: Any, right: Any) -> bool:
    """Tell whether two nodes differ only in spans, names and identities.

    Variables and buffers are matched one to one at their first meeting. A `Seq` of one
    statement equals that statement.
    """
    return _Matcher().same(left, right)


def same_value(left: Any, right: Any) -> bool:
    """Tell whether two expressions are written alike, with the very same variables and buffers.

    ``i + 1`` and another ``i + 1`` are; ``i`` and ``j`` are not, though structurally equal.
    """
    return _Identity().same(left, right)


class _Matcher:
    def __init__(self) -> None:
        self._partner: dict[Node | None, Node] = {}

    def same(self, a: Any, b: Any) -> bool:
        a, b = _unwrap(a), _unwrap(b)
        if isinstance(a, DType):  # those of the language are of a class of their own
            return isinstance(b, DType) and a == b
        if type(a) is not type(b):
            return False
        if isinstance(a, (Var, Buffer)):
            return self._matched(a, b)
        if isinstance(a, Const):
            return a.dtype == b.dtype and _same_number(a.value, b.value)
        if isinstance(a, Node):
            return self._same_fields(a, b, but=("span",))
        if isinstance(a, tuple):
            return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))
        return bool(a == b)

    def _matched(self, a: Node, b: Any) -> bool:
        if a in self._partner or b in self._partner:
            return self._partner.get(a) is b and self._partner.get(b) is a
        self._partner[a], self._partner[b] = b, a
        return self._same_fields(a, b, but=("span", "name"))

    def _same_fields(self, a: Node, b: Any, *, but: tuple[str, ...]) -> bool:
        names = (f.name for f in fields(a) if f.name not in but)
        return all(self.same(getattr(a, name), getattr(b, name)) for name in names)


class _Identity(_Matcher):
    def _matched(self, a: Node, b: Any) -> bool:
        return a is b


def _unwrap(value: Any) -> Any:
    while isinstance(value, Seq) and len(value.body) == 1:
        value = value.body[0]
    return value


def _same_number(a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b and math.copysign(1, a) == math.copysign(1, b)
