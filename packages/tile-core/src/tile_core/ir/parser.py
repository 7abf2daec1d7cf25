"""Read kernels back from their printed text: ``parse(print_kernel(k))`` equals ``k``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import field

from tile_core.dtypes import dtype_of
from tile_core.errors import ParseError
from tile_core.ir.buffer import Buffer
from tile_core.ir.buffer import Scope as MemoryScope
from tile_core.ir.expr import Expr, Extent, Var
from tile_core.ir.lexer import HINT, Cursor, tokenize
from tile_core.ir.parse_expr import NameScope, parse_expr, parse_extent, parse_indices, parse_list
from tile_core.ir.parse_operator import parse_operator
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
    Kernel,
    KernelOptions,
    Launch,
    Leaf,
    Let,
    LoopKind,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.records import dataclass, replace
from tile_launch.contract import ANY_EXTENT, Contract

LayoutParser = Callable[[str], object]


def parse_kernel(
    text: str, operators: Mapping[str, type[Leaf]], parse_layout: LayoutParser
) -> Kernel:
    """Return the kernel that `text` describes.

    Parameters
    ----------
    operators
        Classes of tile operators by mnemonic.
    parse_layout
        Reads the text of a layout.

    Raises
    ------
    ParseError
        With line and column, if the text is not what the printer writes.
    """
    lines = [
        Line(len(raw) - len(raw.lstrip()), Cursor(tokenize(raw, n), n), raw.strip())
        for n, raw in enumerate(text.splitlines(), 1)
        if raw.strip()
    ]
    if not lines:
        raise ParseError("the text is empty", hint=HINT)
    return _Reader(lines, operators, parse_layout).kernel()


@dataclass(slots=True)
class Line:
    """One line: its indentation in spaces, its tokens and its text."""

    indent: int
    cursor: Cursor
    text: str


@dataclass(slots=True)
class _Reader:
    """Reads lines in order; `scope` holds every name declared so far (names are unique)."""

    lines: list[Line]
    operators: Mapping[str, type[Leaf]]
    parse_layout: LayoutParser
    at: int = 0
    scope: NameScope = field(default_factory=NameScope)

    def kernel(self) -> Kernel:
        c = self.lines[0].cursor
        c.expect("kernel")
        name = c.name()
        if c.accept("["):
            c.items("]", lambda: self._number(c, self._declared(c)))
        c.expect("(")
        self._announce_scalars(c)
        params = c.items(")", lambda: self._parameter(c))
        outputs = self._integers(c) if c.accept("->") else ()
        c.expect(":")
        self.at = 1
        sources, options = self._preamble()
        body = self._block(2)
        return Kernel(name, params, body, outputs, sources, options)

    def _preamble(self) -> tuple[tuple[str, ...], KernelOptions]:
        sources: list[str] = []
        options = KernelOptions()
        while self.at < len(self.lines):
            line = self.lines[self.at]
            head, _, rest = line.text.partition(" ")
            if head == "source":
                sources.append(json.loads(rest))
            elif head == "option":
                key, _, value = rest.partition(" = ")
                if key == "flag":
                    flags = (*options.compile_flags, json.loads(value))
                    options = replace(options, compile_flags=flags)
                else:
                    configs = (*options.pass_configs, (key, json.loads(value)))
                    options = replace(options, pass_configs=configs)
            else:
                break
            self.at += 1
        return tuple(sources), options

    def _parameter(self, c: Cursor) -> Buffer | Var:
        name = self._declared(c)
        if c.here.text in {s.value for s in MemoryScope}:
            return self._buffer(c, name)
        known = self.scope.things.get(name)
        made = self._number(c, name)
        return self._define(known) if isinstance(known, Var) else made

    def _announce_scalars(self, c: Cursor) -> None:
        """Make scalar parameters known to the shapes in front of them."""
        scopes = {s.value for s in MemoryScope}
        for k, (token, colon, kind) in enumerate(
            zip(c.tokens, c.tokens[1:], c.tokens[2:], strict=False)
        ):
            is_declared = k >= c.at and token.kind == kind.kind == "name" and colon.text == ":"
            if is_declared and kind.text not in scopes:
                self._number(Cursor(c.tokens, c.line, k + 2), token.text)

    def _declared(self, c: Cursor) -> str:
        """Read the name that a type follows."""
        name = c.name()
        c.expect(":")
        return name

    def _number(self, c: Cursor, name: str) -> Var:
        """Read the rest of a symbol or a scalar parameter: its type and its contract."""
        dtype = dtype_of(c.name())
        low = c.integer() if c.accept("min") else 0
        high = c.integer() if c.accept("max") else None
        multiple_of = c.integer() if c.accept("multiple_of") else 1
        contract = Contract(low, high, multiple_of)
        return self._define(Var(name, dtype, None if contract == ANY_EXTENT else contract))

    def _define(self, var: Var) -> Var:
        self.scope.things[var.name] = var
        return var

    def _variables(self, c: Cursor, closing: str) -> tuple[Var, ...]:
        return c.items(closing, lambda: self._define(self._variable(c)))

    def _variable(self, c: Cursor) -> Var:
        return Var(self._declared(c), dtype_of(c.name()))

    def _integers(self, c: Cursor) -> tuple[int, ...]:
        c.expect("[")
        return c.items("]", c.integer)

    def _buffer(self, c: Cursor, name: str) -> Buffer:
        scope, dtype = MemoryScope(c.name()), dtype_of(c.name())
        shape = self._extents(c)
        strides = self._extents(c) if c.accept("strides") else None
        workspace = c.accept("workspace")
        origin: Buffer | Expr | None = None
        if c.accept("of"):
            origin = self.scope.buffer(c)
        elif c.accept("at"):
            origin = parse_expr(c, self.scope)
        buffer = Buffer(name, shape, dtype, scope, strides, origin, workspace)
        self.scope.things[name] = buffer
        return buffer

    def _extents(self, c: Cursor) -> tuple[Extent, ...]:
        c.expect("[")
        return c.items("]", lambda: parse_extent(c, self.scope))

    def _block(self, indent: int) -> Stmt:
        body: list[Stmt] = []
        while self.at < len(self.lines) and self.lines[self.at].indent == indent:
            line = self.lines[self.at]
            self.at += 1
            stmt = self._stmt(line.cursor, indent, line.text)
            if stmt is not None:
                body.append(stmt)
            if line.cursor.here.kind != "end":
                raise line.cursor.error(f"unexpected {line.cursor.here.text!r}")
        if self.at < len(self.lines) and self.lines[self.at].indent > indent:
            raise self.lines[self.at].cursor.error("unexpected indentation")
        return body[0] if len(body) == 1 else Seq(tuple(body))

    def _nested(self, c: Cursor, indent: int) -> Stmt:
        c.expect(":")
        return self._block(indent + 2)

    def _stmt(self, c: Cursor, indent: int, text: str) -> Stmt | None:
        if c.accept("@"):
            return parse_operator(c, self.scope, self.operators, self.parse_layout)
        keyword = c.here.text
        if keyword in self.scope.things:
            return self._store(c)
        reader = getattr(self, f"_read_{keyword}", None) if c.here.kind == "name" else None
        if reader is None:
            raise c.error(f"{keyword!r} starts no statement")
        c.next()
        stmt: Stmt | None = reader(c, indent, text)
        return stmt

    def _store(self, c: Cursor) -> Store:
        buffer = self.scope.buffer(c)
        indices = parse_indices(c, self.scope)
        c.expect("=")
        return Store(buffer, indices, parse_expr(c, self.scope))

    def _read_pass(self, c: Cursor, indent: int, text: str) -> None:
        return None

    def _read_view(self, c: Cursor, indent: int, text: str) -> None:
        self._read_alloc(c, indent, text)

    def _read_alloc(self, c: Cursor, indent: int, text: str) -> Alloc:
        return Alloc(self._buffer(c, self._declared(c)))

    def _read_block(self, c: Cursor, indent: int, text: str) -> Seq:
        body = self._nested(c, indent)
        return body if isinstance(body, Seq) else Seq((body,))

    def _read_let(self, c: Cursor, indent: int, text: str) -> Let:
        var = self._variable(c)
        c.expect("=")
        value = parse_expr(c, self.scope)
        return Let(self._define(var), value)

    def _read_eval(self, c: Cursor, indent: int, text: str) -> Evaluate:
        return Evaluate(parse_expr(c, self.scope))

    def _loop_var(self, c: Cursor) -> Var:
        var = self._variable(c)
        c.expect("in")
        c.expect("range")
        c.expect("(")
        return var

    def _read_for(self, c: Cursor, indent: int, text: str) -> For:
        var = self._loop_var(c)
        start, stop, step = parse_list(c, self.scope, ")")
        kind = LoopKind(c.name())
        self._define(var)
        return For(var, start, stop, step, self._nested(c, indent), kind)

    def _read_pipelined(self, c: Cursor, indent: int, text: str) -> Pipelined:
        var = self._loop_var(c)
        start, stop = parse_list(c, self.scope, ")")
        c.expect("stages")
        stages = c.integer()
        order = self._integers(c) if c.accept("order") else ()
        stage = self._integers(c) if c.accept("stage") else ()
        self._define(var)
        return Pipelined(var, start, stop, self._nested(c, indent), stages, order, stage)

    def _read_parallel(self, c: Cursor, indent: int, text: str) -> Parallel:
        variables = self._variables(c, "in")
        c.expect("(")
        extents = parse_list(c, self.scope, ")")
        width = c.integer() if c.accept("width") else None
        is_async = c.accept("async")
        layout = None
        if c.here.text == "layout":
            written = text[text.index(" layout ") + 8 : -1]
            layout, c.at = self.parse_layout(written), len(c.tokens) - 2
        body = self._nested(c, indent)
        return Parallel(variables, extents, body, width, layout, is_async)

    def _read_while(self, c: Cursor, indent: int, text: str) -> While:
        return While(parse_expr(c, self.scope), self._nested(c, indent))

    def _read_if(self, c: Cursor, indent: int, text: str) -> If:
        cond = parse_expr(c, self.scope)
        then = self._nested(c, indent)
        if self.at < len(self.lines):
            line = self.lines[self.at]
            if line.indent == indent and line.text == "else:":
                self.at += 1
                line.cursor.expect("else")
                return If(cond, then, self._nested(line.cursor, indent))
        return If(cond, then)

    def _read_threads(self, c: Cursor, indent: int, text: str) -> OnThreads:
        first = c.integer()
        c.expect("count")
        count = c.integer()
        return OnThreads(first, count, self._nested(c, indent))

    def _read_break(self, c: Cursor, indent: int, text: str) -> Break:
        return Break()

    def _read_continue(self, c: Cursor, indent: int, text: str) -> Continue:
        return Continue()

    def _check(self, c: Cursor, kind: CheckKind) -> Check:
        cond = parse_expr(c, self.scope)
        c.expect(",")
        return Check(cond, json.loads(c.next().text), kind)

    def _read_assert(self, c: Cursor, indent: int, text: str) -> Check:
        return self._check(c, CheckKind.ASSERT)

    def _read_assume(self, c: Cursor, indent: int, text: str) -> Check:
        return self._check(c, CheckKind.ASSUME)

    def _read_launch(self, c: Cursor, indent: int, text: str) -> Launch:
        blocks = self._variables(c, "in")
        c.expect("(")
        grid = parse_list(c, self.scope, ")")
        c.expect("threads")
        threads = self._variables(c, "in")
        c.expect("(")
        sizes = c.items(")", c.integer)
        cluster = self._integers(c) if c.accept("cluster") else ()
        if len(threads) != 3 or len(sizes) != 3:
            raise c.error("a launch has three thread indices and three thread counts")
        body = self._nested(c, indent)
        tx, ty, tz = threads
        x, y, z = sizes
        return Launch(blocks, grid, (tx, ty, tz), (x, y, z), body, cluster)

    def _read_layout(self, c: Cursor, indent: int, text: str) -> AnnotateLayout:
        buffer = self.scope.buffer(c)
        layout = self.parse_layout(text.partition(" = ")[2])
        c.at = len(c.tokens) - 1
        return AnnotateLayout(buffer, layout)

    def _read_safe_value(self, c: Cursor, indent: int, text: str) -> AnnotateSafeValue:
        buffer = self.scope.buffer(c)
        c.expect("=")
        return AnnotateSafeValue(buffer, parse_expr(c, self.scope))

    def _read_hint(self, c: Cursor, indent: int, text: str) -> Hint:
        name = c.name()
        values = json.loads(text.partition(f"hint {name} ")[2])
        c.at = len(c.tokens) - 1
        return Hint(name, tuple(values))
