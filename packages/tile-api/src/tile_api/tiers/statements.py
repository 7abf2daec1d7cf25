"""Statements of thread-level code as Python: what `thread_statements` reads back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from tile_api.tiers.line_breaks import broken
from tile_api.tiers.thread_names import ThreadNames
from tile_api.tiers.thread_text import no_form, written
from tile_core.errors import Span
from tile_core.ir import stmt as s
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Expr, Extent, Load
from tile_core.ir.node import Node, nodes_of


class StatementText:
    """The lines of a program under way.

    Attributes
    ----------
    names
        What things are called where the next line stands.
    lines
        The text so far.
    """

    def __init__(self) -> None:
        self.names = ThreadNames()
        self.lines: list[str] = []
        self._body: s.Stmt = s.Seq(())  # of the launch at hand
        self._place: Span | None = None  # what T.line said last
        self._is_told = False
        self._shown: tuple[str, int] | None = None  # what comments of C++ showed last
        self._seen: set[Buffer] = set()  # in statements so far

    def begin(self, launch: s.Launch, given: Sequence[Buffer | Any]) -> None:
        """Begin a launch, whose threads are given some buffers."""
        self.names.expect(launch.body)
        self.tell(launch, 1)
        self._body, self._shown = launch.body, None
        self._seen = {thing for thing in given if isinstance(thing, Buffer)}

    def line(self, depth: int, text: str) -> None:
        """Append a line of text, broken where it is too long."""
        self.lines += broken(text, depth)

    def written(self, expr: Extent) -> str:
        """Return an expression in the names that are seen here."""
        return written(expr, self.names.of)

    def shape(self, extents: Sequence[Extent]) -> str:
        """Return extents as a tuple."""
        inside = ", ".join(map(self.written, extents))
        return f"({inside},)" if len(extents) == 1 else f"({inside})"

    def block(self, body: s.Stmt, depth: int) -> None:
        """Append the statements of a body."""
        for stmt in body.body if isinstance(body, s.Seq) else (body,):
            self.statement(stmt, depth)

    def _inner(self, body: s.Stmt, depth: int) -> None:
        start = len(self.lines)
        with self.names.scope():
            if self._shows_first(body):
                self.line(depth, "pass")  # the block counts: texts of IR show in which one
            self.block(body, depth)
        if len(self.lines) == start:
            self.line(depth, "pass")

    def _shows_first(self, body: s.Stmt) -> bool:
        """Whether a block of one statement is the first to show a view of shared memory."""
        if not isinstance(body, s.Seq) or len(body.body) != 1 or isinstance(body.body[0], s.Seq):
            return False
        shown = {b for child in _own(body.body[0]) for b in nodes_of(child, Buffer)}
        return not shown <= self._seen

    def tell(self, stmt: s.Stmt, depth: int) -> None:
        """Say where a statement was written, if that is another place than before."""
        span = stmt.span
        if span is None and isinstance(stmt, s.Evaluate):
            span = stmt.value.span
        key = None if span is None else (span.file, span.line)
        told = None if self._place is None else (self._place.file, self._place.line)
        if key is None:
            if self._is_told and (told is None or told == self._shown):
                return
        elif key == told:
            self._shown = key
            return
        self._place, self._is_told = span, True
        self._shown = key or self._shown
        text = "" if span is None else f'"{PurePath(span.file).name}", {span.line}'
        self.line(depth, f"T.line({text})")

    def statement(self, stmt: s.Stmt, depth: int) -> None:
        """Append a statement, and what has to stand in front of it."""
        if not isinstance(stmt, s.Seq):
            for part in _own(stmt):
                self._tensors_at(part, depth)
            self.tell(stmt, depth)
            self._seen |= {b for child in _own(stmt) for b in nodes_of(child, Buffer)}
        w = self.written
        match stmt:
            case s.Seq():
                self.line(depth, "with T.block():")
                self._inner(stmt, depth + 1)
            case s.Let(var=var, value=value):
                text = w(value)
                name, words = self.names.bind(var)
                if value.dtype != var.dtype:
                    raise no_form(f"{var.name!r} of another type than its value")
                self.line(depth, f"{name} = T.let({text}{extra(words)})" if words else
                           f"{name} = {text}")  # fmt: skip
            case s.Alloc(buffer=buffer):
                self._alloc(buffer, depth)
                self.views_of(buffer, depth)
            case s.Store(buffer=buffer, indices=indices, value=value):
                place = self._written_place(buffer, indices)
                self.line(depth, f"{place} = {w(value)}")
            case s.Evaluate(value=value):
                self.line(depth, w(value))
            case s.For():
                self._for(stmt, depth)
            case s.While(cond=cond, body=body):
                self.line(depth, f"while {w(cond)}:")
                self._inner(body, depth + 1)
            case s.If():
                self._if(stmt, depth, "if")
            case s.Break():
                self.line(depth, "break")
            case s.Continue():
                self.line(depth, "continue")
            case s.Check(cond=cond, message=message, kind=kind):
                if kind is s.CheckKind.ASSUME:
                    self.line(depth, f"T.assume({w(cond)}, {message!r})")
                else:
                    self.line(depth, f"assert {w(cond)}, {message!r}")
            case _:
                raise no_form(f"a statement of kind {type(stmt).__name__}")

    def _written_place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        return self.written(Load(buffer, indices))

    def _alloc(self, buffer: Buffer, depth: int) -> None:
        name, words = self.names.bind(buffer)
        if buffer.origin is not None or buffer.strides is not None:
            raise no_form(f"the buffer {buffer.name!r}")
        if buffer.scope is Scope.VAR:
            self.line(depth, f'{name} = T.alloc_var("{buffer.dtype}"{extra(words)})')
        elif buffer.scope in (Scope.LOCAL, Scope.REDUCER):
            if buffer.scope is not Scope.LOCAL:
                words = {**words, "scope": buffer.scope.value}
            shape = self.shape(buffer.shape)
            self.line(depth, f'{name} = T.alloc_local({shape}, "{buffer.dtype}"{extra(words)})')
        else:
            raise no_form(f"an allocation in {buffer.scope.value}")

    def views_of(self, base: Buffer, depth: int) -> None:
        """Declare the views of a buffer, and the views of these."""
        for view in dict.fromkeys(nodes_of(self._body, Buffer)):
            if view.origin is base:
                self._view(view, self.names.of(base), depth)
                self.views_of(view, depth)

    def _view(self, view: Buffer, base: str, depth: int) -> None:
        name, words = self.names.bind(view)
        if isinstance(view.origin, Expr) and view.scope is not Scope.GLOBAL:
            words = {**words, "scope": view.scope.value}
        shape = self.shape(view.shape)
        self.line(depth, f'{name} = T.view({base}, 0, {shape}, "{view.dtype}"{extra(words)})')

    def _tensors_at(self, part: Node, depth: int) -> None:
        """Declare tensors at addresses where they are first seen."""
        for buffer in dict.fromkeys(nodes_of(part, Buffer)):
            if isinstance(buffer.origin, Expr) and buffer not in self.names:
                self._view(buffer, self.written(buffer.origin), depth)

    def _for(self, loop: s.For, depth: int) -> None:
        w = self.written
        bounds = [w(loop.start), w(loop.stop), w(loop.step)]
        dtype = loop.var.dtype
        if any(e.dtype != dtype for e in (loop.start, loop.stop, loop.step)):
            raise no_form(f"the loop over {loop.var.name!r}")
        if bounds[2] == w(const(1, dtype)):
            bounds.pop()
            if bounds[0] == w(const(0, dtype)):
                bounds.pop(0)
        with self.names.scope():
            name, words = self.names.bind(loop.var)
            self.line(
                depth, f"for {name} in T.{loop.kind.value}({', '.join(bounds)}{extra(words)}):"
            )
            self._inner(loop.body, depth + 1)

    def _if(self, stmt: s.If, depth: int, word: str) -> None:
        self.line(depth, f"{word} {self.written(stmt.cond)}:")
        self._inner(stmt.then, depth + 1)
        match stmt.otherwise:
            case None:
                return
            case s.If() as otherwise:
                self._tensors_at(otherwise.cond, depth)
                self._if(otherwise, depth, "elif")
            case otherwise:
                self.line(depth, "else:")
                self._inner(otherwise, depth + 1)


def _own(stmt: s.Stmt) -> list[Node]:
    """Return what a statement itself speaks of, without blocks in it."""
    blocks = (s.Seq, s.For, s.While, s.If)
    return [child for child in stmt.children() if not isinstance(child, blocks)]


def extra(words: dict[str, Any]) -> str:
    """Return what a call says by name, behind its other operands."""
    return "".join(f", {key}={quoted(value)}" for key, value in words.items())


def quoted(value: object) -> str:
    """Return the text of a constant, strings between double quotes as everywhere."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
