"""Statements of programs of threads: a function's text as the code of one thread."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from tile_api.frontend.thread_expressions import INFIX, Thing, ThreadExpressions
from tile_core.dtypes import dtype_of
from tile_core.errors import Span, TileError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Const, Expr, StringConst, Var
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

LOOPS = {kind.value: kind for kind in LoopKind}
_SCOPES = {"alloc_local": Scope.LOCAL, "alloc_var": Scope.VAR}


@dataclass(slots=True)
class ThreadStatements:
    """Reads the statements of one function.

    Parameters
    ----------
    expressions
        Reads what is in them, and knows what names stand for.
    """

    expressions: ThreadExpressions
    told: Span | None = None  # what T.line said last
    is_told: bool = False
    history: dict[str, Thing] = field(default_factory=dict)  # what each name was bound to last

    def span(self, node: ast.stmt) -> Span | None:
        """Return the place of a statement: its own, or the one that `T.line` told."""
        return self.told if self.is_told else self.expressions.span(node)

    @contextmanager
    def scope(self) -> Iterator[dict[str, Thing]]:
        """Forget afterwards what names were bound to meanwhile."""
        names = self.expressions.names
        before = dict(names)
        yield names
        names.clear()
        names.update(before)

    def body(self, statements: Sequence[ast.stmt]) -> Stmt:
        """Return statements in a scope of their own; a single one stands for itself."""
        with self.scope():
            return self.alone(statements)

    def alone(self, statements: Sequence[ast.stmt]) -> Stmt:
        """Return statements; a single one as it is, unless it is a block or `pass` beside it."""
        block = self.block(statements)
        is_one = len(block.body) == 1 and not isinstance(block.body[0], Seq)
        is_kept = any(isinstance(stmt, ast.Pass) for stmt in statements)
        return block.body[0] if is_one and not is_kept else block

    def block(self, statements: Sequence[ast.stmt]) -> Seq:
        """Return statements whose names are seen behind them, too."""
        found = [self.statement(stmt) for stmt in statements]
        return Seq(tuple(stmt for stmt in found if stmt is not None))

    def statement(self, node: ast.stmt) -> Stmt | None:
        """Return one statement; None of what only speaks to the reader."""
        reader = _READERS.get(type(node))
        if reader is None:
            raise self.wrong(node)
        span = self.span(node)
        with self.told_wrong(node):
            made: Stmt | None = reader(self, node)
        if made is None or made.span is not None:
            return made
        return replace(made, span=span)

    @contextmanager
    def told_wrong(self, node: ast.stmt) -> Iterator[None]:
        """Tell of what Python finds wrong with the parts of a statement as of the statement."""
        try:
            yield
        except (KeyError, ValueError, TypeError, IndexError) as error:
            if isinstance(error, TileError):
                raise
            raise self.wrong(node) from error

    def wrong(self, node: ast.stmt) -> Exception:
        """Return the error for a statement that threads do not have."""
        text = ast.unparse(node).splitlines()[0]
        return self.expressions.wrong(
            node,
            f"`{text}` has no meaning in a program of threads",
            "use assignments, calls, `if`, `while`, `with`, and `for` over T.serial or T.unroll",
        )

    def bind(self, name: str, thing: Thing) -> None:
        """Let a name stand for a thing in the rest of the block."""
        self.expressions.names[name] = self.history[name] = thing

    def again(self, name: str, words: dict[str, Any]) -> Thing | None:
        """Return what a name meant before, where a declaration says that it means that again."""
        found = self.history.get(name) if words.get("again") else None
        if found is not None:
            self.expressions.names[name] = found
        return found

    def options(self, call: ast.Call) -> dict[str, Any]:
        """Return the keywords of a declaration, which are constants."""
        e = self.expressions
        return {word.arg or "": e.constant(word.value) for word in call.keywords}

    def called(self, node: ast.expr) -> str:
        """Return the name of the function of the language that is called, or nothing."""
        path = self.expressions.function_of(node.func) if isinstance(node, ast.Call) else ()
        return path[0] if len(path) == 1 else ""


def _docstring_or_call(p: ThreadStatements, node: ast.Expr) -> Stmt | None:
    value = node.value
    if isinstance(value, ast.Constant):
        return None
    match p.called(value):
        case "line":
            assert isinstance(value, ast.Call)
            told = [p.expressions.constant(arg) for arg in value.args]
            p.is_told = True
            p.told = Span(told[0], told[1], 0, 0) if len(told) == 2 else None
            return None
        case "assume":
            assert isinstance(value, ast.Call)
            cond, *rest = map(p.expressions.read, value.args)
            message = rest[0].value if rest and isinstance(rest[0], StringConst) else ""
            return Check(cond, message, CheckKind.ASSUME)
    return Evaluate(p.expressions.read(value))


def _assign(p: ThreadStatements, node: ast.Assign) -> Stmt | None:
    if len(node.targets) != 1:
        raise p.wrong(node)
    target, e = node.targets[0], p.expressions
    if isinstance(target, ast.Subscript):
        buffer, indices = e.element(target)
        return Store(buffer, indices, e.read(node.value, buffer.dtype))
    if not isinstance(target, ast.Name):
        raise p.wrong(node)
    declare = _DECLARATIONS.get(p.called(node.value))
    if declare is not None:
        assert isinstance(node.value, ast.Call)
        declared: Stmt | None = declare(p, target.id, node.value, p.span(node))
        return declared
    known = e.names.get(target.id)
    if isinstance(known, Buffer) and known.scope is Scope.VAR:
        return Store(known, (const(0),), e.read(node.value, known.dtype))
    return _named(p, target.id, e.read(node.value), target.id)


def _named(p: ThreadStatements, bound: str, value: Expr, name: str) -> Let:
    var = Var(name, value.dtype)
    p.bind(bound, var)
    return Let(var, value)


def _augmented(p: ThreadStatements, node: ast.AugAssign) -> Stmt:
    e, op = p.expressions, INFIX.get(type(node.op))
    if op is None:
        raise p.wrong(node)
    reading = copy(node.target)
    reading.ctx = ast.Load()
    buffer, indices = e.element(node.target)
    return Store(buffer, indices, e.pair(op, node.value, reading, node.value))


def _let(p: ThreadStatements, bound: str, call: ast.Call, span: Span | None) -> Stmt:
    """Read ``T.let(value, name="x")``: a name that the printed program spells otherwise."""
    known = p.options(call)
    value = p.expressions.read(call.args[0])
    var = p.again(bound, known)
    if isinstance(var, Var):
        return Let(var, value, span=span)
    return _named(p, bound, value, known.get("name", bound))


def _allocate(p: ThreadStatements, bound: str, call: ast.Call, span: Span | None) -> Stmt:
    """Read ``T.alloc_local(shape, dtype)`` and ``T.alloc_var(dtype)``."""
    e, words = p.expressions, p.options(call)
    scope = Scope(words["scope"]) if "scope" in words else _SCOPES[p.called(call)]
    *shape, dtype = call.args
    extents = e.extents(shape[0]) if shape else (1,)
    before = p.again(bound, words)
    if isinstance(before, Buffer):
        return Alloc(before, span=span)
    buffer = Buffer(
        words.get("name", bound), extents, dtype_of(e.constant(dtype)), scope, span=span
    )
    p.bind(bound, buffer)
    return Alloc(buffer)


def _view(p: ThreadStatements, bound: str, call: ast.Call, span: Span | None) -> None:
    """Read ``T.view(buffer, 0, shape, dtype)``, or of an address in place of a buffer."""
    words = p.options(call)
    base, offset, shape, dtype = call.args
    if p.expressions.constant(offset) != 0:
        raise p.expressions.wrong(
            offset,
            "a view begins where its buffer begins",
            "write 0; the views of shared memory are given to T.launch, by their bytes",
        )
    if p.again(bound, words) is None:
        made = viewed(p.expressions, base, shape, dtype, words.get("name", bound), span)
        p.bind(bound, replace(made, scope=Scope(words["scope"])) if "scope" in words else made)


def viewed(
    e: ThreadExpressions, base: ast.expr, shape: ast.expr, dtype: ast.expr, name: str,
    span: Span | None, origin: Any = None,
) -> Buffer:  # fmt: skip
    """Return a buffer of the same bytes as another one, or of what lies at an address."""
    if origin is None:
        origin = e.thing(base) if isinstance(base, ast.Name) else e.read(base)
    if not isinstance(origin, (Buffer, Expr)):
        raise e.wrong(base, "this is neither a buffer nor an address", "name one of the two")
    scope = origin.scope if isinstance(origin, Buffer) else Scope.GLOBAL
    return Buffer(
        name, e.extents(shape), dtype_of(e.constant(dtype)), scope, origin=origin,
        workspace=isinstance(origin, Buffer) and origin.workspace, span=span,
    )  # fmt: skip


def _workspace(p: ThreadStatements, bound: str, call: ast.Call, span: Span | None) -> Stmt:
    """Read ``T.alloc_global(shape, dtype)``, which stands before launches."""
    e, words = p.expressions, p.options(call)
    shape, dtype = call.args
    buffer = Buffer(
        words.get("name", bound), e.extents(shape), dtype_of(e.constant(dtype)), Scope.GLOBAL,
        workspace=True, span=span,
    )  # fmt: skip
    e.names[bound] = buffer
    return Alloc(buffer)


_DECLARATIONS: dict[str, Callable[..., Any]] = {
    "let": _let,
    "alloc_local": _allocate,
    "alloc_var": _allocate,
    "alloc_global": _workspace,
    "view": _view,
}


def _for(p: ThreadStatements, node: ast.For) -> Stmt:
    kind = LOOPS.get(p.called(node.iter))
    if kind is None or not isinstance(node.target, ast.Name) or node.orelse:
        raise p.wrong(node)
    assert isinstance(node.iter, ast.Call)
    words = p.options(node.iter)
    bounds = [p.expressions.read(arg) for arg in node.iter.args]
    first = next((b for b in bounds if not isinstance(b, Const)), bounds[0]).dtype
    bounds = [
        const(b.value, first) if isinstance(b, Const) and b.dtype == "int32" else b for b in bounds
    ]
    start, stop = (const(0, first), bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) > 2 else const(1, first)
    span = p.span(node)
    bound = node.target.id
    with p.scope():
        known = p.again(bound, words)
        var = known if isinstance(known, Var) else Var(words.get("name", bound), start.dtype)
        p.bind(bound, var)
        body = p.alone(node.body)
        return For(var, start, stop, step, body, kind, span=span)


def _while(p: ThreadStatements, node: ast.While) -> Stmt:
    span = p.span(node)
    return While(p.expressions.read(node.test), p.body(node.body), span=span)


def _if(p: ThreadStatements, node: ast.If) -> Stmt:
    cond, span = p.expressions.read(node.test), p.span(node)
    then = p.body(node.body)
    if not node.orelse:
        return If(cond, then, None, span=span)
    (first, *rest) = node.orelse
    if isinstance(first, ast.If) and not rest and first.col_offset == node.col_offset:  # `elif`
        return If(cond, then, p.statement(first), span=span)
    otherwise = p.body(node.orelse)
    if isinstance(otherwise, If):  # not `elif`
        otherwise = Seq((otherwise,))
    return If(cond, then, otherwise, span=span)


def _with(p: ThreadStatements, node: ast.With) -> Stmt:
    (item,) = node.items
    if p.called(item.context_expr) != "block":
        raise p.wrong(node)
    span = p.span(node)
    with p.scope():
        return replace(p.block(node.body), span=span)


def _assert(p: ThreadStatements, node: ast.Assert) -> Stmt:
    message = p.expressions.constant(node.msg) if node.msg is not None else ""
    return Check(p.expressions.read(node.test), message, CheckKind.ASSERT)


_READERS: dict[type[ast.stmt], Callable[[ThreadStatements, Any], Stmt | None]] = {
    ast.Expr: _docstring_or_call,
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.For: _for,
    ast.While: _while,
    ast.If: _if,
    ast.With: _with,
    ast.Assert: _assert,
    ast.Pass: lambda p, node: None,
    ast.Break: lambda p, node: Break(),
    ast.Continue: lambda p, node: Continue(),
}
