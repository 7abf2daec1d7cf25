"""The C++ text of statements: one memory operation per line, with the user's line beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import PurePath
from typing import Any

from tile_core.codegen.expressions import ExpressionPrinter
from tile_core.codegen.operators import PRODUCT, SUM
from tile_core.codegen.source import Lines
from tile_core.codegen.types import cpp_type, string_literal
from tile_core.errors import InternalError, Span
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import AddressOf, Call, Const, Expr, Load, Var
from tile_core.ir.extrema import is_compared
from tile_core.ir.node import Node, contains, nodes_of, walk
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Check,
    CheckKind,
    Continue,
    Evaluate,
    For,
    If,
    Let,
    LoopKind,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.records import dataclass

SHORT_LOOP, LITTLE_WORK = 16, 128
"""Loops of so few iterations, with so few lines in all, are left to the C++ compiler to judge."""
MUCH_WORK = 1024
"""Loops that pick registers are unrolled up to so many lines: registers have no index."""


@dataclass(slots=True)
class StatementPrinter:
    """Prints the statements of one function.

    `views` are to be named once their storage is, by that storage; `constant` buffers are only
    read.
    """

    expressions: ExpressionPrinter
    lines: Lines
    views: dict[Buffer, list[Buffer]]
    constant: frozenset[Buffer] = frozenset()
    depth: int = 1
    commented: tuple[str, int] | None = None
    declared: list[set[object]] = field(default_factory=lambda: [set()])
    branched_on: tuple[Expr, ...] = ()

    def line(self, text: str, span: Span | None = None) -> None:
        """Append a line; the first of each of the user's lines says which that is."""
        text = "  " * self.depth + text
        if span is not None and (span.file, span.line) != self.commented:
            self.commented = (span.file, span.line)
            text = f"{text}  // {PurePath(span.file).name}:{span.line}"
        self.lines.add(text, span)

    def plain(self, text: str, span: Span | None = None) -> None:
        """Append a line that needs no comment."""
        self.lines.add("  " * self.depth + text, span)

    def statement(self, stmt: Stmt) -> None:
        """Print `stmt`."""
        printer = _PRINTERS.get(type(stmt))
        if printer is None:
            raise InternalError(f"{type(stmt).__name__} is not printed as C++", span=stmt.span)
        printer(self, stmt)

    def block(self, body: Stmt) -> None:
        """Print `body` one level deeper, in a scope of its own."""
        self.depth += 1
        self.declared.append(set())
        self.expressions.names.enter()
        self.statement(body)
        self.expressions.names.leave()
        self.declared.pop()
        self.depth -= 1

    def branch(self, body: Stmt, *conditions: Expr) -> None:
        """Print what is done if conditions hold, or do not."""
        before, self.branched_on = self.branched_on, (*self.branched_on, *conditions)
        self.block(body)
        self.branched_on = before

    def declare(self, thing: object, text: str, span: Span | None) -> None:
        """Print a declaration."""
        self.declared[-1].add(thing)
        self.line(text, span)

    def views_of(self, storage: Buffer) -> None:
        """Name the views of a storage that was just declared."""
        for view in self.views.get(storage, ()):
            const = "const " if view in self.constant else ""
            base = self.expressions.names.of(storage)
            kind = f"{const}{cpp_type(view.dtype)}"
            self.plain(f"auto {self.expressions.names.of(view)} = tile::view<{kind}>({base});")
            self.views_of(view)


def _seq(p: StatementPrinter, stmt: Seq) -> None:
    """Names are unique in a function, so blocks need no braces unless they come twice."""
    if not p.declared[-1].isdisjoint(_declares(stmt)):
        p.plain("{")
        p.block(stmt)
        p.plain("}")
        return
    body = stmt.body
    for position, item in enumerate(body):
        before = body[position - 1] if position else None
        after = body[position + 1] if position + 1 < len(body) else None
        if isinstance(after, Store) and _is_first_value(item, after):
            continue  # declared with its value
        if isinstance(item, Store) and _is_first_value(before, item):
            e, var = p.expressions, item.buffer
            text = f"{cpp_type(var.dtype)} {e.names.of(var)} = {e.text(item.value)};"
            p.declare(var, text, item.span)
            p.views_of(var)
        else:
            p.statement(item)


def _is_first_value(declared: Stmt | None, store: Store) -> bool:
    """Whether `store` gives the variable that was just declared its first value."""
    if not isinstance(declared, Alloc) or declared.buffer.scope is not Scope.VAR:
        return False
    return declared.buffer is store.buffer and not any(
        node.storage is store.buffer for node in nodes_of(store.value, Buffer)
    )


def _declares(stmt: Seq) -> list[object]:
    found: list[object] = []
    for item in stmt.body:
        match item:
            case Let(var=var):
                found.append(var)
            case Alloc(buffer=buffer):
                found.append(buffer)
    return found


def _let(p: StatementPrinter, stmt: Let) -> None:
    e, var = p.expressions, stmt.var
    text = f"const {cpp_type(var.dtype)} {e.names.of(var)} = {e.text(stmt.value)};"
    p.declare(var, text, stmt.span)
    if var.dtype.is_int:
        e.bounds.name(var, stmt.value)
        e.bounds.bind(var, *e.bounds.of(stmt.value))


def _alloc(p: StatementPrinter, stmt: Alloc) -> None:
    buffer = stmt.buffer
    name, kind = p.expressions.names.of(buffer), cpp_type(buffer.dtype)
    if buffer.scope is Scope.VAR:
        p.declare(buffer, f"{kind} {name};", stmt.span)
    else:
        p.declare(buffer, f"tile::frag<{kind}, {_count(buffer)}> {name};", stmt.span)
    p.views_of(buffer)


def _count(buffer: Buffer) -> int:
    shape = buffer.static_shape
    if shape is None or len(shape) != 1:
        raise InternalError(f"{buffer.name!r} is no flat register array", span=buffer.span)
    return shape[0]


def _store(p: StatementPrinter, stmt: Store) -> None:
    e = p.expressions
    value = e.text(stmt.value)
    if any(is_compared(stmt.value, cond) for cond in p.branched_on):
        value = f"tile::opaque({value})"
    p.line(f"{e.element(stmt.buffer, stmt.indices)} = {value};", stmt.span)


def _evaluate(p: StatementPrinter, stmt: Evaluate) -> None:
    if not isinstance(stmt.value, Const):
        p.line(f"{p.expressions.text(stmt.value)};", stmt.span or stmt.value.span)


def _for(p: StatementPrinter, stmt: For) -> None:
    e, var = p.expressions, stmt.var
    start, stop, step = e.bounds.of(stmt.start), e.bounds.of(stmt.stop), e.bounds.of(stmt.step)
    stop_text, step_text = _once(p, stmt, "stop"), _once(p, stmt, "step")
    if step[0] > 0:
        e.bounds.bind(var, start[0], stop[1] - 1)
    elif step[1] < 0:
        e.bounds.bind(var, stop[0] + 1, start[1])
    e.names.enter()
    name = e.names.of(var)
    if step == (1, 1):
        advance = f"++{name}"
    elif step[0] == step[1] and step[0] < 0:
        advance = f"{name} -= {-step[0]}"
    else:
        advance = f"{name} += {step_text}"
    if step[0] > 0:
        goes_on = f"{name} < {stop_text}"
    elif step[1] < 0:
        goes_on = f"{name} > {stop_text}"
    else:
        goes_on = f"{step_text} > 0 ? {name} < {stop_text} : {name} > {stop_text}"
    unroll = _unrolling(stmt, start, stop, step)
    if unroll:
        p.plain(unroll, stmt.span)
    first = f"{cpp_type(var.dtype)} {name} = {e.text(stmt.start)}"
    p.line(f"for ({first}; {goes_on}; {advance}) {{", stmt.span)
    p.block(stmt.body)
    p.plain("}")
    e.names.leave()


def _once(p: StatementPrinter, loop: For, part: str) -> str:
    """Return the end or the step of a loop, named before if iterations could change it."""
    expr: Expr = getattr(loop, part)
    e = p.expressions
    if not contains(expr, Load, Call):
        return e.text(expr, SUM if part == "stop" else PRODUCT)
    name = e.names.fresh(f"{loop.var.name}_{part}")
    p.line(f"const {cpp_type(expr.dtype)} {name} = {e.text(expr)};", loop.span)
    return name


def _waits(body: Stmt) -> bool:
    """Whether iterations wait for data that others bring: unrolling them wins nothing."""
    return any(n.function in _WAITS for n in nodes_of(body, Call))


_WAITS = (f"{PREFIX}mbarrier_wait", f"{PREFIX}mbarrier_wait_cluster")


def _unrolling(
    loop: For, start: tuple[int, int], stop: tuple[int, int], step: tuple[int, int]
) -> str:
    """Return what is said about unrolling: run-time and long loops stay loops."""
    if loop.kind is not LoopKind.SERIAL:
        return "TILE_UNROLL"
    is_static = all(static_value(x) is not None for x in (loop.start, loop.stop, loop.step))
    if not is_static or _waits(loop.body):
        return "TILE_NO_UNROLL"
    iterations = len(range(start[0], stop[0], step[0]))
    work = iterations * _work(loop.body)
    if work <= MUCH_WORK and _reads_registers_by(loop.body, loop.var):
        return "TILE_UNROLL"
    return "" if iterations <= SHORT_LOOP and work <= LITTLE_WORK else "TILE_NO_UNROLL"


def _reads_registers_by(root: Node, var: Var) -> bool:
    """Whether an element of a register array is picked by a value that depends on `var`."""
    for node in nodes_of(root, Load, Store, AddressOf):
        parts = (part for index in node.indices for part in walk(index))
        if node.buffer.scope.is_thread_private and any(part is var for part in parts):
            return True
    return False


def _work(stmt: Node) -> int:
    """Return about how many lines one iteration of a loop runs, unrolled loops in full."""
    if isinstance(stmt, For):
        ends = [static_value(x) for x in (stmt.start, stmt.stop, stmt.step)]
        iterations = len(range(*ends)) if None not in ends else 1  # type: ignore[arg-type]
        return iterations * _work(stmt.body)
    if isinstance(stmt, (Seq, If, While)):
        return sum(_work(child) for child in stmt.children() if not isinstance(child, Expr))
    return 1


def _while(p: StatementPrinter, stmt: While) -> None:
    p.line(f"while ({p.expressions.text(stmt.cond)}) {{", stmt.span)
    p.block(stmt.body)
    p.plain("}")


def _if(p: StatementPrinter, stmt: If) -> None:
    p.line(f"if ({p.expressions.text(stmt.cond)}) {{", stmt.span)
    p.branch(stmt.then, stmt.cond)
    conditions, otherwise = [stmt.cond], stmt.otherwise
    while isinstance(otherwise, If):
        p.plain(f"}} else if ({p.expressions.text(otherwise.cond)}) {{", otherwise.span)
        conditions.append(otherwise.cond)
        p.branch(otherwise.then, *conditions)
        otherwise = otherwise.otherwise
    if otherwise is not None and not (isinstance(otherwise, Seq) and not otherwise.body):
        p.plain("} else {")
        p.branch(otherwise, *conditions)
    p.plain("}")


def _jump(p: StatementPrinter, stmt: Break | Continue) -> None:
    p.line("break;" if isinstance(stmt, Break) else "continue;", stmt.span)


def _check(p: StatementPrinter, stmt: Check) -> None:
    cond = p.expressions.text(stmt.cond)
    if stmt.kind is CheckKind.ASSUME:
        why = " ".join(stmt.message.split()).rstrip("\\")  # which would comment out the next line
        p.plain(f"// {cond} holds: {why or 'assumed'}", stmt.span)
    else:
        p.line(f"tile::assert_that({cond}, {string_literal(stmt.message)});", stmt.span)


_PRINTERS: dict[type, Callable[[StatementPrinter, Any], None]] = {
    Seq: _seq,
    Let: _let,
    Alloc: _alloc,
    Store: _store,
    Evaluate: _evaluate,
    For: _for,
    While: _while,
    If: _if,
    Break: _jump,
    Continue: _jump,
    Check: _check,
}
