"""Tile IR statements as TIR.

`break`, `continue` and failing checks leave several levels at once, which TVM's code
generator cannot express. One variable of the block, `jump`, says that statements are being
skipped and how far:

====  ==========================================
0     nothing is skipped
1     to the end of this round of the loop
2     to the end of the loop
3     to the end of the block: a check failed
====  ==========================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.expr import Const, Expr, Var
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Break,
    Check,
    CheckKind,
    Continue,
    Evaluate,
    For,
    Hint,
    If,
    Launch,
    Leaf,
    Let,
    LoopKind,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.operator import TileOperator
from tile_core.ops.serial import expand
from tile_core.passes.lower_serially import nested_loops
from tile_cpu.lowering import access, storage
from tile_cpu.lowering.checks import emit_check
from tile_cpu.lowering.context import Context, assigned, loaded, sequence
from tile_cpu.lowering.types import number, scalar_name
from tile_cpu.tir.build import i32, seq
from tile_cpu.tir.nodes import Bind, ForKind, IfThenElse, IntImm, PrimExpr, tirx
from tile_cpu.tir.nodes import Evaluate as TirEvaluate
from tile_cpu.tir.nodes import For as TirFor
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar
from tile_cpu.tir.nodes import While as TirWhile

_MOST_TERMS = 64
"""Of an integer that TVM may look into, all names written out."""

_UNROLL_LIMIT = 64


def emit(ctx: Context, stmt: Stmt) -> TirStmt:
    """Return the TIR of a statement."""
    match stmt:
        case Seq(body=body):
            with ctx.scope():
                return _sequence(ctx, list(body))
        case For() | Pipelined():
            return _loop(ctx, stmt)
        case While():
            return _while(ctx, stmt)
        case Parallel():
            return _parallel(ctx, stmt)
        case If():
            return _if(ctx, stmt)
        case Launch():
            from tile_cpu.lowering.launch import emit_launch

            return emit_launch(ctx, stmt)
        case Let() | Alloc() | AnnotateSafeValue():
            return _sequence(ctx, [stmt])
        case TileOperator():
            return ctx.rule_of(stmt).lower(stmt, ctx)
        case Leaf():
            return ctx.stmt(expand(stmt))
        case AnnotateLayout() | Hint():
            return seq()
    with ctx.statement() as statements:
        last = _simple(ctx, stmt)
    return sequence(statements, last)


def _simple(ctx: Context, stmt: Stmt) -> TirStmt:
    match stmt:
        case Store():
            return access.store(ctx, stmt)
        case Evaluate(value=value):
            return TirEvaluate(ctx.value(value))
        case Break():
            return _jump(ctx, 2)
        case Continue():
            return _jump(ctx, 1)
        case Check():
            return emit_check(ctx, stmt)
    raise InternalError(f"the CPU backend does not know {type(stmt).__name__}")


def _jump(ctx: Context, how_far: int) -> TirStmt:
    if ctx.jump is None:
        raise InternalError("a jump outside a block")
    return assigned(ctx.jump, i32(how_far))


def jumps(stmt: Node) -> bool:
    """Whether running `stmt` may skip what follows it."""
    return any(True for _ in _jumps(stmt, in_loop=False))


def _jumps(stmt: Node, *, in_loop: bool) -> Iterator[Node]:
    match stmt:
        case Break() | Continue():
            if not in_loop:
                yield stmt
        case Check(kind=CheckKind.ASSERT):
            yield stmt
        case Expr():
            return
        case _:
            inside = in_loop or isinstance(stmt, (For, While, Pipelined))
            for child in stmt.children():
                if not isinstance(child, Expr):
                    yield from _jumps(child, in_loop=inside)


def _contains_jump(stmt: Node) -> bool:
    """Whether a loop body contains any jump, of its own or out of the block."""
    return any(True for _ in _jumps(stmt, in_loop=False))


def _sequence(ctx: Context, body: list[Stmt]) -> TirStmt:
    """Emit statements in order; names bound by one are visible in the rest."""
    result: list[TirStmt] = []
    for position, stmt in enumerate(body):
        match stmt:
            case Let(var=var, value=value):
                result += _let(ctx, var, value)
            case Alloc(buffer=buffer):
                result += storage.allocate_buffer(ctx, buffer)
            case AnnotateSafeValue(buffer=buffer, value=value):
                ctx.safe[buffer] = value
            case _:
                result.append(ctx.stmt(stmt))
        if isinstance(stmt, Check):
            ctx.env = ctx.env.assuming(stmt.cond)
        rest = body[position + 1 :]
        if rest and jumps(stmt):
            assert ctx.jump is not None
            going = tirx.EQ(loaded(ctx.jump), i32(0))
            result.append(IfThenElse(going, _sequence(ctx, rest), None))
            break
    return seq(result)


def _let(ctx: Context, var: Var, value: Expr) -> list[TirStmt]:
    with ctx.statement() as statements:
        computed = ctx.value(value)
        kind = scalar_name(computed)
        if isinstance(computed, IntImm):
            ctx.vars[var] = computed
        elif kind.startswith("float") or not _may_be_looked_into(ctx, var, value):
            ctx.vars[var] = ctx.keep(computed, var.name)
        else:
            named = TirVar(var.name, computed.ty)
            ctx.run(Bind(named, computed))
            ctx.vars[var] = named
    ctx.env = ctx.env.with_let(var, value)
    return statements


def _may_be_looked_into(ctx: Context, var: Var, value: Expr) -> bool:
    """Whether TVM, which writes out what names stand for, is done with a value soon.

    Where each name of a chain stands twice in the next, what is written out doubles each time.
    """
    terms = sum(ctx.terms.get(node, 1) for node in walk(value))
    is_short = terms <= _MOST_TERMS
    ctx.terms[var] = terms if is_short else 1
    return is_short


def _if(ctx: Context, stmt: If) -> TirStmt:
    with ctx.statement() as statements:
        cond = ctx.value(stmt.cond)
        with ctx.in_branch(), ctx.scope(ctx.env.assuming(stmt.cond)):
            then = ctx.stmt(stmt.then)
        otherwise = None
        if stmt.otherwise is not None:
            with ctx.in_branch(), ctx.scope(ctx.env.assuming(stmt.cond, holds=False)):
                otherwise = ctx.stmt(stmt.otherwise)
        if otherwise is not None:  # a bare `else` would make TVM negate a comparison of floats
            cond = tirx.NE(ctx.keep(tirx.Cast(i32(0).ty, cond)), i32(0))
    return sequence(statements, IfThenElse(cond, then, otherwise))


def _loop(ctx: Context, stmt: For | Pipelined) -> TirStmt:
    step: Expr | None = stmt.step if isinstance(stmt, For) else None
    unit = step is None or (isinstance(step, Const) and step.value == 1)
    if not unit or _contains_jump(stmt.body):
        return _general_loop(ctx, stmt, step)
    with ctx.statement() as statements:
        kind = str(stmt.var.dtype)
        start, stop = ctx.index(stmt.start, kind), ctx.index(stmt.stop, kind)
        unroll = isinstance(stmt, For) and stmt.kind is LoopKind.UNROLL
        body = counted(ctx, stmt, start, stop, lambda: ctx.stmt(stmt.body), unroll=unroll)
    return sequence(statements, body)


def counted(
    ctx: Context,
    loop: For | Pipelined,
    start: PrimExpr,
    stop: PrimExpr,
    body: Callable[[], TirStmt],
    *,
    unroll: bool = False,
) -> TirStmt:
    """Return ``for loop.var in range(start, stop)`` around what `body` emits."""
    named = TirVar(loop.var.name, start.ty)
    extent = stop - start
    with ctx.scope(ctx.env.with_loop(loop.var, loop.start, loop.stop)):
        ctx.vars[loop.var] = named
        outer, ctx.round = ctx.round, loop.var
        inner = body()
        ctx.round = outer
    short = isinstance(extent, IntImm) and extent.value <= _UNROLL_LIMIT
    kind = ForKind.UNROLLED if unroll and short else ForKind.SERIAL
    if not (isinstance(start, IntImm) and start.value == 0):
        extent = tirx.Max(extent, number(0, scalar_name(extent)))
    return TirFor(named, start, extent, kind, inner)


def _general_loop(ctx: Context, stmt: For | Pipelined, step: Expr | None) -> TirStmt:
    """Emit a loop that counts in steps, or may be left early, with a variable of its own."""
    kind = str(stmt.var.dtype)
    jumping = _contains_jump(stmt.body)
    with ctx.statement() as statements:
        start, stop = ctx.index(stmt.start, kind), ctx.index(stmt.stop, kind)
        stride = number(1, kind) if step is None else ctx.index(step, kind)
        counter = ctx.cell(kind, stmt.var.name)
        ctx.run(assigned(counter, start))
        forward, ahead = tirx.LT(loaded(counter), stop), tirx.GT(loaded(counter), stop)
        if isinstance(stride, IntImm):
            more = forward if stride.value > 0 else ahead
        else:
            positive = tirx.GT(stride, number(0, kind))
            more = tirx.Or(
                tirx.And(positive, forward), tirx.And(tirx.LT(stride, number(0, kind)), ahead)
            )
        with ctx.scope(_stepping(ctx, stmt, step)):
            named = TirVar(stmt.var.name, start.ty)
            ctx.vars[stmt.var] = named
            if all(isinstance(x, IntImm) for x in (start, stop, stride)):
                ctx.rounds[stmt.var] = range(*(int(x.value) for x in (start, stop, stride)))
            body = [Bind(named, loaded(counter)), ctx.stmt(stmt.body)]
        advance = assigned(counter, loaded(counter) + stride)
        if jumping:
            loop = _jumping_loop(ctx, more, body, advance)
        else:
            loop = TirWhile(more, seq(body, advance))
    return sequence(statements, loop)


def _stepping(ctx: Context, stmt: For | Pipelined, step: Expr | None) -> Any:
    """Return what is known of the index inside the loop."""
    if step is None or (isinstance(step, Const) and step.value > 0):
        return ctx.env.with_loop(stmt.var, stmt.start, stmt.stop)
    if isinstance(step, Const):
        low, high = ctx.env.linear(stmt.stop).plus(1), ctx.env.linear(stmt.start)
        return ctx.env.with_bounds(stmt.var, low, high)
    return ctx.env


def _jumping_loop(ctx: Context, more: PrimExpr, body: Any, advance: TirStmt) -> TirStmt:
    """Return ``while more``, minding the block's `jump` variable."""
    assert ctx.jump is not None
    jump = ctx.jump
    here = loaded(jump)
    next_round = IfThenElse(tirx.EQ(here, i32(1)), assigned(jump, i32(0)), None)
    going = tirx.And(more, tirx.EQ(here, i32(0)))
    left = IfThenElse(tirx.EQ(here, i32(2)), assigned(jump, i32(0)), None)
    return seq(TirWhile(going, seq(body, next_round, advance)), left)


def _while(ctx: Context, stmt: While) -> TirStmt:
    """Emit a loop whose condition is computed before the first round and after each."""
    with ctx.statement() as statements:
        go = ctx.cell("int32", "go")
        test = _tested(ctx, stmt.cond, go)
        ctx.run(test)
        more = tirx.NE(loaded(go), i32(0))
        with ctx.scope():
            body = ctx.stmt(stmt.body)
        again = _tested(ctx, stmt.cond, go)
        if _contains_jump(stmt.body):
            loop = _jumping_loop(ctx, more, body, again)
        else:
            loop = TirWhile(more, seq(body, again))
    return sequence(statements, loop)


def _tested(ctx: Context, cond: Expr, go: Any) -> TirStmt:
    with ctx.statement() as statements:
        value = ctx.value(cond)
    return sequence(statements, assigned(go, tirx.Cast(i32(0).ty, value)))


def _parallel(ctx: Context, stmt: Parallel) -> TirStmt:
    """Emit a data-parallel loop: vectors where its body allows, else scalar loops."""
    if stmt.vars and not _contains_jump(stmt.body):
        from tile_cpu.lowering.vectorise import vectorised

        fast = vectorised(ctx, stmt)
        if fast is not None:
            return fast
    return ctx.stmt(nested_loops(stmt))
