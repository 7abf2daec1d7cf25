"""Writing out the iterations of a loop in the IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_core.errors import ControlFlowError, Span
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Binary, Const, Expr, Select, Unary, Var
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import Alloc, AnnotateSafeValue, Break, Continue, If, Let, Seq, Stmt
from tile_core.ir.visitor import bound_variables, own_level


def unrolled(var: Var, iterations: range, body: Seq, span: Span | None) -> tuple[Stmt, ...]:
    """Return one copy of `body` per iteration, with `var` replaced by its value.

    Every copy has its own names and allocations; what becomes constant is folded.
    """
    for jump in (s for s in own_level(body) if isinstance(s, (Break, Continue))):
        told = "`break` and `continue` are not possible in a loop that is unrolled explicitly"
        raise ControlFlowError(told, span=jump.span or span, hint="leave out explicit=True")
    copies: list[Stmt] = []
    for value in iterations:
        copy = _copied(body, {var: build_expr.const(value, var.dtype)})
        copies += [copy] if _binds(copy) else copy.body
    return tuple(copies)


def _copied(body: Seq, mapping: dict[Node, Node]) -> Seq:
    """Return `body` with new names for everything it binds, and `mapping` applied."""
    mapping = mapping | {var: replace(var) for var in bound_variables(body)}
    mapping |= {n.buffer: replace(n.buffer) for n in walk(body) if isinstance(n, Alloc)}

    def rule(node: Node) -> Node:
        if node in mapping:
            return mapping[node]
        match node:
            case Binary(op=op, a=a, b=b) if _foldable(a, b):
                return build_expr.binary(op, a, b)
            case Unary(op=op, a=a) if _foldable(a):
                return build_expr.unary(op, a)
            case Select(cond=cond, then=then, otherwise=otherwise, lazy=lazy) if _foldable(cond):
                return build_expr.select(cond, then, otherwise, lazy=lazy)
            case If(cond=Const(value=known), then=then, otherwise=otherwise):
                return then if known else (otherwise or Seq(()))
            case Seq(body=items) if any(isinstance(s, Seq) and not _binds(s) for s in items):
                return replace(node, body=tuple(_flat(items)))
        if isinstance(node, (Expr, Buffer, Region)):
            return node
        return replace(node)  # a statement occurs once in a kernel

    result = rewrite(body, rule)
    assert isinstance(result, Seq)
    return result


def _binds(block: Seq) -> bool:
    """Whether names of `block` would reach further if its statements stood alone."""
    return any(isinstance(s, (Let, Alloc, AnnotateSafeValue)) for s in block.body)


def _flat(items: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for item in items:
        if isinstance(item, Seq) and not _binds(item):
            yield from _flat(item.body)
        else:
            yield item


def _foldable(*operands: Expr) -> bool:
    return any(isinstance(o, Const) for o in operands)
