"""Tile IR statements as TIR.

`break`, `continue` and failing checks leave several levels at once, which TVM's code
generator cannot express. One variable of the block, `jump`, says that statements are being
skipped and how far:

====  ==========================================
0     nothing is skipped
1     to the end of this iteration of the loop
2     to the end of the loop
3     to the end of the block: a check failed
====  ==========================================
"""

from __future__ import annotations

from tile_core.errors import InternalError
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import walk
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
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.operator import TileOperator
from tile_core.ops.serial_forms import expand
from tile_core.ops.signals import Signal, WaitSignal
from tile_core.passes.lower_serially import nested_loops
from tile_cpu.lowering import access, storage
from tile_cpu.lowering.arithmetic import negated
from tile_cpu.lowering.context import Context, assigned, loaded
from tile_cpu.lowering.failures import failure
from tile_cpu.lowering.launch import emit_launch
from tile_cpu.lowering.loops import emit_loop, emit_while, jumps
from tile_cpu.lowering.overflow import learn
from tile_cpu.lowering.signals import emit_signal
from tile_cpu.lowering.types import scalar_name
from tile_cpu.lowering.vectorise import vectorised
from tile_cpu.tir.build import i32, seq
from tile_cpu.tir.nodes import Bind, IfThenElse, IntImm, tirx
from tile_cpu.tir.nodes import Evaluate as TirEvaluate
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar

_MOST_TERMS = 64
"""Of an integer that TVM may look into, all names written out."""


def emit(ctx: Context, stmt: Stmt) -> TirStmt:
    """Return the TIR of a statement."""
    match stmt:
        case Seq(body=body):
            with ctx.scope():
                return _sequence(ctx, list(body))
        case For() | Pipelined():
            return emit_loop(ctx, stmt)
        case While():
            return emit_while(ctx, stmt)
        case Parallel():
            return _parallel(ctx, stmt)
        case If():
            return _if(ctx, stmt)
        case Launch():
            return emit_launch(ctx, stmt)
        case Let() | Alloc() | AnnotateSafeValue():
            return _sequence(ctx, [stmt])
        case Signal() | WaitSignal():
            pass
        case TileOperator():
            return ctx.rule_of(stmt).lower(stmt, ctx)
        case Leaf():
            return ctx.lower_stmt(expand(stmt))
        case AnnotateLayout() | Hint():
            return seq()
    with ctx.statement() as statements:
        last = _simple(ctx, stmt)
    return seq(statements, last)


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
        case Signal() | WaitSignal():
            return emit_signal(ctx, stmt)
    raise InternalError(f"the CPU backend does not know {type(stmt).__name__}")


def _jump(ctx: Context, how_far: int) -> TirStmt:
    if ctx.jump is None:
        raise InternalError("a jump outside a block")
    return assigned(ctx.jump, i32(how_far))


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
                result.append(ctx.lower_stmt(stmt))
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
    learn(ctx, var, value)
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
        with ctx.branching_on(stmt.cond), ctx.scope(ctx.env.assuming(stmt.cond)):
            then = ctx.lower_stmt(stmt.then)
        otherwise = None
        if stmt.otherwise is not None:
            with ctx.branching_on(stmt.cond), ctx.scope(ctx.env.assuming(stmt.cond, holds=False)):
                otherwise = ctx.lower_stmt(stmt.otherwise)
        if otherwise is not None:  # a bare `else` would make TVM negate a comparison of floats
            cond = tirx.NE(ctx.keep(tirx.Cast(i32(0).ty, cond)), i32(0))
    return seq(statements, IfThenElse(cond, then, otherwise))


def _parallel(ctx: Context, stmt: Parallel) -> TirStmt:
    """Emit a data-parallel loop: vectors where its body allows, else scalar loops."""
    if stmt.vars and not jumps(stmt.body):
        fast = vectorised(ctx, stmt)
        if fast is not None:
            return fast
    return ctx.lower_stmt(nested_loops(stmt))


def emit_check(ctx: Context, check: Check) -> TirStmt:
    """Return the test of an assertion; an assumption costs nothing."""
    if check.kind is CheckKind.ASSUME or ctx.env.proves(check.cond):
        return seq()
    failed = negated(ctx, ctx.value(check.cond))
    return IfThenElse(failed, failure(ctx, check), None)
