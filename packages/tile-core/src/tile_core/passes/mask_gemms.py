"""Masks of MMAs, made where something is hidden."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping

from tile_core.analysis.uniformity import is_thread_program
from tile_core.arith.affine import linear_in
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.build_expr import binary, select, unary
from tile_core.ir.effects import accesses
from tile_core.ir.expr import Binary, BinaryOp, Call, Const, Expr, Load, Select, Unary, UnaryOp, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, nodes_of, rewrite, substitute, walk
from tile_core.ir.stmt import (
    If,
    Kernel,
    Launch,
    Let,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    flattened,
)
from tile_core.ops.gemm import Gemm
from tile_core.passes.overlap.gemm_loop_body import IsAsynchronous
from tile_core.records import dataclass, replace


def mask_gemms(kernel: Kernel, is_asynchronous: IsAsynchronous) -> Kernel:
    """Return `kernel` with masks behind their MMAs, and only where they hide something.

    Before   parallel i, j:  S[i, j] = (q + i >= k + j ? 0 : -inf)
             gemm Q, K, S
    After    gemm Q, K, S  (what was in S is dropped)
             if q < k + 127:  parallel i, j:  S[i, j] = (q + i >= k + j ? S[i, j] : S[i, j] - inf)

    An MMA that begins with zeros needs nobody to write them, and most tiles are far from
    what a mask hides: the diagonal of causal attention, the end of the keys. Nothing but zero and
    infinity is moved behind an MMA: with them the order of additions makes no difference.
    Masks that stand behind their MMA already are skipped in the same way. Threads would wait for a
    mask before they can issue an MMA that `is_asynchronous`.
    """

    def rule(node: Node) -> Node:
        return _masked(node, is_asynchronous) if isinstance(node, Seq) else node

    scheduled = {n.body for n in nodes_of(kernel, Pipelined) if n.order}
    done: dict[Node, Node] = {}
    for launch in nodes_of(kernel.body, Launch):
        if is_thread_program(launch) or any(n in scheduled for n in walk(launch)):
            continue
        body = rewrite(launch.body, rule)
        if body is not launch.body:
            done[launch] = replace(launch, body=body)
    return substitute(kernel, done) if done else kernel


@dataclass(frozen=True, slots=True)
class _Mask:
    """A loop over a register tile that leaves some elements as they are.

    All of the `tile` is masked; `hidden` holds where at least one element is not left as it is; the
    loop stands `behind` what makes the tile.
    """

    tile: Buffer
    hidden: Expr
    behind: Parallel


def _masked(seq: Seq, is_asynchronous: IsAsynchronous) -> Seq:
    """Return a sequence with the masks of its MMAs behind them."""
    products = [n for n in seq.body if isinstance(n, Gemm) and is_asynchronous(n)]
    if not products:
        return seq
    made: list[Stmt] = []
    waiting: dict[Gemm, _Mask] = {}
    for position, item in enumerate(seq.body):
        mask = _mask_of(item)
        follows = None if mask is None else _starts_from(mask, seq.body[position + 1 :], products)
        if mask is not None and follows is not None:
            waiting[follows] = mask
        elif isinstance(item, Gemm) and item in waiting:
            mask = waiting[item]
            made += [replace(item, clear=Const(True, item.clear.dtype)), _where_hidden(mask)]
        elif (late := _late_mask_of(item)) and any(p.c.buffer is late.tile for p in products):
            made.append(_where_hidden(late))
        else:
            made.append(item)
    return seq if tuple(made) == seq.body else replace(seq, body=tuple(made))


def _where_hidden(mask: _Mask) -> Stmt:
    return If(mask.hidden, mask.behind, span=mask.behind.span)


def _starts_from(mask: _Mask, rest: tuple[Stmt, ...], products: list[Gemm]) -> Gemm | None:
    """Return the MMA that adds to the masked tile before anything else touches it."""
    for item in rest:
        if not any(a.buffer.storage is mask.tile.storage for a in accesses(item)):
            continue
        if not isinstance(item, Gemm) or item not in products or static_value(item.clear) != 0:
            return None
        whole = item.c.buffer is mask.tile and item.c.is_whole
        reads = {item.a.buffer.storage, item.b.buffer.storage}
        return item if whole and mask.tile.storage not in reads else None
    return None


def _mask_of(stmt: Stmt) -> _Mask | None:
    """Return the mask that a loop of zeros and infinities is to accumulators added to it."""
    found = _whole_tile(stmt)
    if found is None:
        return None
    loop, lets, store, value = found
    here: Expr = Load(store.buffer, store.indices)
    if _constant(value.then) == 0 and math.isinf(_constant(value.otherwise)):
        shown, added = True, (here, here + value.otherwise)
    elif _constant(value.otherwise) == 0 and math.isinf(_constant(value.then)):
        shown, added = False, (here + value.then, here)
    else:
        return None
    kept = replace(store, value=select(value.cond, *added, lazy=False))
    return _found(loop, lets, kept, value.cond, negated=shown)


def _late_mask_of(stmt: Stmt) -> _Mask | None:
    """Return the mask that leaves some elements of a tile as they are."""
    found = _whole_tile(stmt)
    if found is None:
        return None
    loop, lets, store, value = found
    kept = [_is_element(side, store) for side in (value.then, value.otherwise)]
    if kept[0] == kept[1]:
        return None
    return _found(loop, lets, store, value.cond, negated=kept[0])


def _found(
    loop: Parallel, lets: tuple[Let, ...], store: Store, cond: Expr, *, negated: bool
) -> _Mask | None:
    values: dict[Node, Node] = {}
    for let in lets:
        values[let.var] = substitute(let.value, values)
    box = {v: static_value(e) or 1 for v, e in zip(loop.vars, loop.extents, strict=True)}
    hidden = tile_predicate(substitute(cond, values), box, negated=negated)
    if isinstance(hidden, Const):
        return None
    return _Mask(store.buffer, hidden, replace(loop, body=Seq((*lets, store))))


def _whole_tile(stmt: Stmt) -> tuple[Parallel, tuple[Let, ...], Store, Select] | None:
    """Return a loop that selects each element of a register tile, with its names and its store."""
    if not isinstance(stmt, Parallel):
        return None
    *lets, store = flattened(stmt.body)
    if not isinstance(store, Store) or store.buffer.scope is not Scope.FRAGMENT:
        return None
    extents = tuple(static_value(e) for e in stmt.extents)
    if not store.buffer.dtype.is_float or store.buffer.static_shape != extents:
        return None
    if len(store.indices) != len(stmt.vars) or not all(map(operator.is_, store.indices, stmt.vars)):
        return None
    names = tuple(let for let in lets if isinstance(let, Let))
    if len(names) != len(lets) or not isinstance(store.value, Select):
        return None
    return stmt, names, store, store.value


def _is_element(side: Expr, store: Store) -> bool:
    """Whether a value is what the element held before."""
    return (
        isinstance(side, Load)
        and side.buffer is store.buffer
        and all(a is b for a, b in zip(side.indices, store.indices, strict=True))
    )


def _constant(side: Expr) -> float:
    return float(side.value) if isinstance(side, Const) else math.nan


_OPPOSITE = {
    BinaryOp.LT: BinaryOp.GE,
    BinaryOp.GE: BinaryOp.LT,
    BinaryOp.GT: BinaryOp.LE,
    BinaryOp.LE: BinaryOp.GT,
    BinaryOp.EQ: BinaryOp.NE,
    BinaryOp.NE: BinaryOp.EQ,
}

_SMALLER_LEFT = (BinaryOp.LT, BinaryOp.LE)
_ORDER = (*_SMALLER_LEFT, BinaryOp.GT, BinaryOp.GE)


def tile_predicate(cond: Expr, box: Mapping[Var, int], *, negated: bool = False) -> Expr:
    """Return a condition without the variables of `box` that holds if `cond` does anywhere in it.

    It may hold where `cond` does nowhere, never the other way round. An order of linear
    expressions is decided by a corner of the box: ``k + j < n`` for some j of 128 if
    ``k < n``. What is true of two things is asked of each; what no corner decides is taken to be
    true: the constant. Only what all threads of a block know is asked: index variables and
    scalars, no elements of tiles and tensors.

    Each variable of the `box` counts from 0 to its number. If `negated`, elements are sought for
    which `cond` does not hold.
    """
    match cond:
        case Unary(op=UnaryOp.NOT, a=inner):
            return tile_predicate(inner, box, negated=not negated)
        case Binary(op=BinaryOp.AND | BinaryOp.OR as op, a=a, b=b):
            both = (op is BinaryOp.AND) is not negated
            sides = (tile_predicate(side, box, negated=negated) for side in (a, b))
            return binary(BinaryOp.AND if both else BinaryOp.OR, *sides)
        case Binary(op=op, a=a, b=b) if op in _OPPOSITE:
            return _compared(_OPPOSITE[op] if negated else op, a, b, box)
    if not _is_common(cond) or free_variables(cond).keys() & box.keys():
        return _TRUE
    return unary(UnaryOp.NOT, cond) if negated else cond


_TRUE = Const(True, dtype_of("bool"))


def _compared(op: BinaryOp, a: Expr, b: Expr, box: Mapping[Var, int]) -> Expr:
    """Return whether two values compare so at the corner of the box that is best for it."""
    if not _is_common(a) or not _is_common(b):
        return _TRUE
    corner: dict[Node, Node] = {}
    for var in box.keys() & (free_variables(a).keys() | free_variables(b).keys()):
        left, right = linear_in(a, var), linear_in(b, var)
        if left is None or right is None or op not in _ORDER:
            return _TRUE
        grows = right[0] - left[0] if op in _SMALLER_LEFT else left[0] - right[0]
        corner[var] = Const(box[var] - 1 if grows > 0 else 0, var.dtype)
    return binary(op, _folded(a, corner), _folded(b, corner))


def _folded(expr: Expr, values: dict[Node, Node]) -> Expr:
    """Return the expression with variables replaced, sums of constants added up."""
    if isinstance(expr, Binary):
        return binary(expr.op, _folded(expr.a, values), _folded(expr.b, values))
    return substitute(expr, values)


def _is_common(expr: Expr) -> bool:
    """Whether all threads of a block have the same value of an integer, but for the box."""
    for node in walk(expr):
        if isinstance(node, Call) or (
            isinstance(node, Load) and node.buffer.scope is not Scope.VAR
        ):
            return False
    return True
