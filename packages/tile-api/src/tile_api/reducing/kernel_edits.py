"""Kernels that are made smaller: how much there is to one, and the changes that are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import TypeAlias, TypeVar

from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import AddressOf, Const, Expr, Load, Var
from tile_core.ir.node import Node, substitute, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import (
    For,
    If,
    Kernel,
    Launch,
    Leaf,
    Let,
    LoopKind,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    flattened,
    is_statement,
)
from tile_core.ir.visitor import statements_in

Changes: TypeAlias = "Mapping[Node, Sequence[Stmt]]"
"""For each statement those that take its place: none if it goes."""

Parts: TypeAlias = "Mapping[Node, dict[Node, Node]]"
"""For each statement what takes the place of parts of its own."""

N = TypeVar("N", bound=Node)


def bodies(root: Node) -> Iterator[list[Stmt]]:
    """Yield each list of statements that follow each other, outer ones first."""
    for body in statements_in(root):
        listed = flattened(body)
        yield listed
        for item in listed:
            yield from bodies(item)


def statements(kernel: Kernel) -> list[Stmt]:
    """Return every statement but sequences, outer ones before those they hold."""
    return [item for body in bodies(kernel) for item in body]


def edited(kernel: Kernel, changes: Changes, parts: Parts | None = None) -> Kernel:
    """Return `kernel` with statements, or parts of them, exchanged.

    Sequences in sequences are opened. What takes a place is not looked into.

    Before::

        for s in range(0, 4, 1) serial:
          fill(dst=a)
          gemm(...)

    After, where the product goes::

        for s in range(0, 4, 1) serial:
          fill(dst=a)
    """
    return replace(kernel, body=_one([*_flat(kernel.body, changes, parts or {})]))


def _flat(stmt: Stmt, changes: Changes, parts: Parts) -> Iterator[Stmt]:
    if stmt in changes:
        yield from changes[stmt]
    elif isinstance(stmt, Seq):
        for item in stmt.body:
            yield from _flat(item, changes, parts)
    else:
        yield _inside(stmt, changes, parts)


def _inside(stmt: Stmt, changes: Changes, parts: Parts) -> Stmt:
    def of(child: Node) -> Node:
        return _one([*_flat(child, changes, parts)]) if is_statement(child) else child

    new = stmt.map_children(of)
    if stmt in parts:
        new = with_own(new, parts[stmt])
    if isinstance(new, If) and isinstance(new.otherwise, Seq) and not new.otherwise.body:
        new = replace(new, otherwise=None)
    return new


def _one(items: Sequence[Stmt]) -> Stmt:
    return items[0] if len(items) == 1 else Seq(tuple(items))


def bound(stmt: Node) -> tuple[Var, ...]:
    """Return the variables that a statement brings."""
    match stmt:
        case Let(var=var) | For(var=var) | Pipelined(var=var):
            return (var,)
        case Parallel(vars=variables):
            return variables
        case Launch(block_vars=blocks, thread_vars=threads):
            return (*blocks, *threads)
    return ()


def own_nodes(stmt: Node) -> Iterator[Node]:
    """Yield what a statement holds by itself, whole expressions before their parts.

    Neither statements in it, nor variables that it brings, nor what buffers are made of.
    """
    mine = bound(stmt)
    stack = [c for c in stmt.children() if not is_statement(c) and not _among(c, mine)][::-1]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Buffer):
            stack += node.children()[::-1]


def _among(node: Node, variables: tuple[Var, ...]) -> bool:
    return any(node is var for var in variables)


def with_own(stmt: N, replacements: dict[Node, Node]) -> N:
    """Return a statement with parts of its own exchanged; statements in it stay as they are."""
    mine = bound(stmt)

    def of(child: Node) -> Node:
        if is_statement(child) or _among(child, mine) or isinstance(child, Buffer):
            return child
        return substitute(child, replacements)

    return stmt.map_children(of)


def touched(stmt: Node) -> tuple[dict[Buffer, None], dict[Buffer, None]]:
    """Return the storage that a statement names by itself, in order: as a tile, and in loads."""
    tiles: dict[Buffer, None] = {}
    loads: dict[Buffer, None] = {}
    for node in own_nodes(stmt):
        if isinstance(node, Load):
            loads[node.buffer.storage] = None
        elif isinstance(node, Region | AddressOf):
            tiles[node.buffer.storage] = None
    tiles |= {child.storage: None for child in stmt.children() if isinstance(child, Buffer)}
    return tiles, loads


def used_variables(node: Node) -> set[Var]:
    """Return the variables that a node and everything in it mention, those it brings too."""
    found: set[Var] = set()
    seen: set[Node] = set()
    stack: list[Node] = [node]
    while stack:
        here = stack.pop()
        if here in seen:
            continue
        seen.add(here)
        if isinstance(here, Var):
            found.add(here)
        stack += here.children()
    return found


def number(value: int, like: Expr) -> Const | None:
    """Return a constant of the type of an expression, or None if it is no plain number."""
    dtype = like.dtype
    if dtype.lanes != 1 or not (dtype.is_int or dtype.is_float or dtype.is_bool):
        return None
    return Const(bool(value) if dtype.is_bool else float(value) if dtype.is_float else value, dtype)


Weight: TypeAlias = "tuple[int, ...]"

PLAIN = frozenset({"float32", "int32", "bool"})
"""Element types that no kernel is simpler without."""


def weight(kernel: Kernel) -> Weight:
    """Return numbers to compare in order; steps of a reduction make them smaller.

    Statements; what is declared beside them; tensors and tiles of element types other than
    float32, int32 and bool; hints; nodes; the digits of all sizes and numbers.
    """
    listed = statements(kernel)
    buffers = {n for n in walk(kernel) if isinstance(n, Buffer)}
    declared = len(kernel.params) + len(symbols_of(kernel)) + len(kernel.outputs)
    options = kernel.options
    extra = len(kernel.sources) + len(options.pass_configs) + len(options.compile_flags)
    odd = sum(b.dtype.base not in PLAIN for b in buffers)
    hints = sum(_hints(stmt) for stmt in listed)
    own = [node for stmt in listed for node in own_nodes(stmt)]
    return (
        len(listed),
        declared + extra,
        odd,
        hints,
        len(own),
        sum(_digits([*buffers, *listed, *own])),
    )


def _hints(stmt: Node) -> int:
    """Count what a statement says beyond what it must."""
    match stmt:
        case Leaf():
            return sum(
                f.default is not MISSING and getattr(stmt, f.name) != f.default
                for f in fields(stmt)
                if f.name != "span" and not isinstance(getattr(stmt, f.name), Node)
            )
        case Pipelined():
            return 1 + bool(stmt.num_stages) + bool(stmt.order) + bool(stmt.stage)
        case Parallel():
            return (stmt.coalesced_width is not None) + (stmt.loop_layout is not None)
        case For():
            return int(stmt.kind is not LoopKind.SERIAL)
        case Launch():
            return int(bool(stmt.cluster))
    return 0


def _digits(nodes: Iterable[Node]) -> Iterable[int]:
    for node in nodes:
        match node:
            case Buffer(shape=shape):
                yield sum(e.bit_length() for e in shape if isinstance(e, int))
            case Region(starts=starts, extents=extents):
                yield sum(e.bit_length() for e in (*starts, *extents) if isinstance(e, int))
            case Launch(threads=threads):
                yield sum(n.bit_length() for n in threads)
            case Const(value=value):
                yield _of_number(value)


def _of_number(value: int | float) -> int:
    if isinstance(value, float):
        return int(value == 1.0) if value in (0.0, 1.0) else 2
    return 2 * abs(int(value)).bit_length() - int(value == 1) + int(value < 0)
