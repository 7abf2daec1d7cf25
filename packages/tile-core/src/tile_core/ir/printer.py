"""The text of kernels: stable, for golden tests and cache keys; `parser` inverts it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import TypeAlias

from typing_extensions import assert_never

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr, Extent, Var
from tile_core.ir.names import Names
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.print_expr import print_expr, print_extent, print_region
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Break,
    Check,
    Continue,
    Evaluate,
    For,
    Hint,
    If,
    Kernel,
    Launch,
    Leaf,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_launch.contract import ANY_EXTENT

Line: TypeAlias = "tuple[str, Node]"
"""A line of text, and the statement (or the kernel) whose first lines it is one of."""


def print_kernel(kernel: Kernel) -> str:
    """Return the stable text of `kernel`; equal kernels give equal texts."""
    return "\n".join(text for text, _ in kernel_lines(kernel)) + "\n"


def kernel_lines(kernel: Kernel) -> list[Line]:
    """Return the lines of `print_kernel`, each with the node that it shows."""
    names = Names()
    params = [
        _declare_number(p, names) if isinstance(p, Var) else _declare(p, names)
        for p in kernel.params
    ]
    symbols = ", ".join(_declare_number(v, names) for v in symbols_of(kernel))
    outputs = f" -> {list(kernel.outputs)}" if kernel.outputs else ""
    head = f"kernel {kernel.name}"
    head += f"[{symbols}]" if symbols else ""
    lines = [f"{head}({', '.join(params)}){outputs}:"]
    lines += [f"  source {json.dumps(text)}" for text in kernel.sources]
    lines += [f"  option {k} = {json.dumps(v)}" for k, v in kernel.options.pass_configs]
    lines += [f"  option flag = {json.dumps(f)}" for f in kernel.options.compile_flags]
    return [*((line, kernel) for line in lines), *_block(kernel.body, 1, names)]


def print_stmt(stmt: Stmt, names: Names | None = None) -> str:
    """Return the text of one statement, for messages and dumps."""
    return "\n".join(text for text, _ in stmt_lines(stmt, names))


def stmt_lines(stmt: Stmt, names: Names | None = None) -> list[Line]:
    """Return the lines of `print_stmt`, each with the node that it shows."""
    return _block(stmt, 0, names or Names())


def print_expr_text(expr: Expr) -> str:
    """Return the text of one expression, for messages."""
    return print_expr(expr, Names())


def symbols_of(kernel: Kernel) -> tuple[Var, ...]:
    """Return the symbolic dimensions and strides of the parameters, in order of appearance.

    Scalar parameters are not among them, even where a shape mentions one.
    """
    scalars = {p for p in kernel.params if isinstance(p, Var)}
    found: dict[Var, None] = {}
    for param in kernel.params:
        if isinstance(param, Buffer):
            for extent in (*param.shape, *(param.strides or ())):
                if isinstance(extent, Expr):
                    found |= {v: None for v in nodes_of(extent, Var)}
    return tuple(v for v in found if v not in scalars)


def _extents(extents: tuple[Extent, ...], names: Names) -> str:
    return ", ".join(print_extent(e, names) for e in extents)


def _declare_number(var: Var, names: Names) -> str:
    """Return the declaration of a symbol or a scalar parameter, with what it promises."""
    promised = var.contract or ANY_EXTENT
    text = f"{names.of(var)}: {var.dtype}"
    text += f" min {promised.low}" if promised.low else ""
    text += "" if promised.high is None else f" max {promised.high}"
    return text + (f" multiple_of {promised.multiple_of}" if promised.multiple_of > 1 else "")


def _declare(buffer: Buffer, names: Names) -> str:
    extents = _extents(buffer.shape, names)
    text = f"{names.of(buffer)}: {buffer.scope.value} {buffer.dtype}[{extents}]"
    if buffer.strides is not None:
        text += f" strides [{_extents(buffer.strides, names)}]"
    if buffer.workspace:
        text += " workspace"
    if isinstance(buffer.origin, Buffer):
        text += f" of {names.of(buffer.origin)}"
    elif buffer.origin is not None:
        text += f" at {print_expr(buffer.origin, names)}"
    return text


def _undeclared(stmt: Node, names: Names) -> Iterator[Buffer]:
    """Yield views that `stmt` uses and no line declared yet, bases before views."""
    found: dict[Buffer, None] = {}

    def visit(node: Node) -> None:
        if isinstance(node, Buffer):
            if node in names or node in found:
                return
            for child in node.children():
                visit(child)
            found[node] = None
            return
        if isinstance(node, (Seq, For, Parallel, Pipelined, While, If, OnThreads, Launch)):
            return  # their own lines declare what they use
        for child in node.children():
            visit(child)

    for child in stmt.children() if not isinstance(stmt, (Alloc, Seq)) else ():
        visit(child)
    if isinstance(stmt, Alloc) and isinstance(stmt.buffer.origin, Node):
        visit(stmt.buffer.origin)
    yield from found


def _block(stmt: Stmt, depth: int, names: Names) -> list[Line]:
    """Return the lines of a statement that is the body of something."""
    body = stmt.body if isinstance(stmt, Seq) else (stmt,)
    lines: list[Line] = []
    for item in body:
        for view in _undeclared(item, names):
            lines.append((f"{'  ' * depth}view {_declare(view, names)}", item))
        lines += _lines(item, depth, names)
    return lines or [(f"{'  ' * depth}pass", stmt)]


def _lines(stmt: Stmt, depth: int, names: Names) -> list[Line]:
    pad = "  " * depth

    def p(expr: Expr) -> str:
        return print_expr(expr, names)

    def line(text: str) -> list[Line]:
        return [(f"{pad}{text}", stmt)]

    def nest(head: str, body: Stmt) -> list[Line]:
        return [(f"{pad}{head}:", stmt), *_block(body, depth + 1, names)]

    match stmt:
        case Seq():
            return nest("block", stmt)
        case Let(var=var, value=value):
            text = p(value)
            return line(f"let {names.of(var)}: {var.dtype} = {text}")
        case Alloc(buffer=buffer):
            return line(f"alloc {_declare(buffer, names)}")
        case Store(buffer=buffer, indices=indices, value=value):
            where = ", ".join(p(i) for i in indices)
            return line(f"{names.of(buffer)}[{where}] = {p(value)}")
        case Evaluate(value=value):
            return line(f"eval {p(value)}")
        case For(var=var, start=a, stop=b, step=s, body=body, kind=kind):
            head = f"range({p(a)}, {p(b)}, {p(s)}) {kind.value}"
            return nest(f"for {names.of(var)}: {var.dtype} in {head}", body)
        case Pipelined(var=var, start=a, stop=b, body=body):
            head = f"range({p(a)}, {p(b)}) stages {stmt.num_stages}"
            if stmt.order or stmt.stage:
                head += f" order {list(stmt.order)} stage {list(stmt.stage)}"
            return nest(f"pipelined {names.of(var)}: {var.dtype} in {head}", body)
        case Parallel():
            return nest(_parallel_head(stmt, names), stmt.body)
        case While(cond=cond, body=body):
            return nest(f"while {p(cond)}", body)
        case If(cond=cond, then=then, otherwise=otherwise):
            lines = nest(f"if {p(cond)}", then)
            return lines if otherwise is None else [*lines, *nest("else", otherwise)]
        case OnThreads(first=first, count=count, body=body):
            return nest(f"threads {first} count {count}", body)
        case Break():
            return line("break")
        case Continue():
            return line("continue")
        case Check(cond=cond, message=message, kind=kind):
            return line(f"{kind.value} {p(cond)}, {json.dumps(message)}")
        case Launch():
            return nest(_launch_head(stmt, names), stmt.body)
        case AnnotateLayout(buffer=buffer, layout=layout):
            return line(f"layout {names.of(buffer)} = {layout}")
        case AnnotateSafeValue(buffer=buffer, value=value):
            return line(f"safe_value {names.of(buffer)} = {p(value)}")
        case Hint(name=name, values=values):
            return line(f"hint {name} {json.dumps(list(values))}")
        case Leaf():
            return line(print_operator(stmt, names))
        case _:
            assert_never(stmt)


def _indices(variables: tuple[Var, ...], names: Names) -> str:
    return ", ".join(f"{names.of(v)}: {v.dtype}" for v in variables)


def _parallel_head(loop: Parallel, names: Names) -> str:
    extents = ", ".join(print_expr(e, names) for e in loop.extents)
    width = f" width {loop.coalesced_width}" if loop.coalesced_width is not None else ""
    layout = f" layout {loop.loop_layout}" if loop.loop_layout is not None else ""
    late = " async" if loop.is_async else ""
    return f"parallel {_indices(loop.vars, names)} in ({extents}){width}{late}{layout}"


def _launch_head(launch: Launch, names: Names) -> str:
    grid = ", ".join(print_expr(e, names) for e in launch.grid)
    threads = ", ".join(str(t) for t in launch.threads)
    cluster = f" cluster {list(launch.cluster)}" if launch.cluster else ""
    return (
        f"launch {_indices(launch.block_vars, names)} in ({grid}) "
        f"threads {_indices(launch.thread_vars, names)} in ({threads}){cluster}"
    )


def print_operator(op: Leaf, names: Names) -> str:
    """Return ``@mnemonic(field=value, …)``, leaving out fields that have their default."""
    shown = []
    for field in fields(op):
        value = getattr(op, field.name)
        if field.name == "span" or _is_default(field.default, value):
            continue
        shown.append(f"{field.name}={_print_field(value, names)}")
    return f"@{type(op).mnemonic}({', '.join(shown)})"


def _is_default(default: object, value: object) -> bool:
    """Whether a value says nothing; equal texts may be two objects, as where one was unpickled."""
    return type(default) is type(value) and not isinstance(value, Expr) and default == value


def _print_field(value: object, names: Names) -> str:
    match value:
        case None:
            return "none"
        case Region():
            return print_region(value, names)
        case Buffer():
            return names.of(value)
        case Expr():
            return print_expr(value, names)
        case Enum():
            return value.name
        case bool():
            return "true" if value else "false"
        case DType() | str():
            return json.dumps(str(value))
        case int() | float():
            return repr(value)
        case tuple():
            return f"[{', '.join(_print_field(v, names) for v in value)}]"
        case _:
            return f"<{value}>"
