"""Sums of sums, before they become one: masks go inside, variables stand as elements lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, const, rebuild, reduce, walk, where
from tile_api.arrays.equations.numerics import is_strict
from tile_api.arrays.reductions.algebra import factors, product


def prepared(outputs: Iterable[Output]) -> list[Output]:
    """Return outputs whose sums of sums are one product as far as there is one.

    Not with strict numerics: terms are added in another order, and what a mask hid is multiplied
    by 0, which makes NaN of infinities.
    """
    outputs = [*outputs]
    if is_strict():
        return outputs
    known: dict[Expr, Expr] = {}
    for x in walk(*(o.element for o in outputs)):
        made = rebuild(x, known)
        known[x] = _with_mask_inside(made) if _is_sum(made) else made
    elements = [known[o.element] for o in outputs]
    nodes = [*walk(*elements)]
    inner = {x.args[0] for x in nodes if _is_sum(x)}
    known = {}
    for x in nodes:
        made = rebuild(x, known)
        known[x] = _as_elements_lie(made) if _is_sum(made) and x not in inner else made
    return [replace(o, element=known[x]) for o, x in zip(outputs, elements, strict=True)]


def _is_sum(x: Expr) -> bool:
    return x.op == "reduce" and x.value[0] == "sum"


def _with_mask_inside(x: Expr) -> Expr:
    """Return ``Σ Σ a where(c, b, 0)`` for ``Σ where(c, Σ a b, 0)``, if `b` has all indices of `c`.

    Conditions of indices alone: they tell which elements there are. One product goes through both
    sums then, where there was one for each element of the outer one.
    """
    return _with_body(x, _mask_inside(x.args[0]))


def _with_body(x: Expr, body: Expr) -> Expr:
    kind, name, extent = x.value
    return reduce(kind, name, extent, body)


def _mask_inside(x: Expr) -> Expr:
    if x.op != "where" or any(n.op == "load" for n in walk(x.args[0])):
        return x
    condition, *sides = x.args
    k = next((k for k, side in enumerate(sides) if side.op == "const" and side.value == 0), None)
    inner = x if k is None else _mask_inside(sides[1 - k])
    if k is None or not _is_sum(inner) or inner.value[1] in condition.free:
        return x
    parts = factors(inner.args[0])
    at = next((n for n, part in enumerate(parts) if condition.free <= part.free), None)
    if at is None:
        return x
    pair = (sides[0], parts[at]) if k == 0 else (parts[at], sides[1])
    parts[at] = where(condition, *pair)
    return _with_body(inner, product(parts, const(1, inner.dtype)))


def _as_elements_lie(x: Expr) -> Expr:
    """Return a sum of sums of products in the order of the dimensions that they go along."""
    nest, body = [x], x.args[0]
    while _is_sum(body) and body.dtype == x.dtype:
        nest.append(body)
        body = body.args[0]
    if len(nest) < 2 or not x.dtype.is_float:
        return x
    for n in walk(body):
        found = [k for one in nest for k in _dimensions(n, one.value[1])]
        if n.op == "load" and len(found) == len(nest) == len({*found}):
            for _, one in sorted(zip(found, nest, strict=True), key=lambda pair: -pair[0]):
                body = _with_body(one, body)
            return body
    return x


def _dimensions(x: Expr, name: str) -> list[int]:
    """Return the dimensions of a load that a variable goes along."""
    return [k for k, i in enumerate(x.args) if name in i.free]
