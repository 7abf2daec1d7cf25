"""Copies of statements for another iteration: indices, names and versions of tiles replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, cast

from tile_core.dtypes import dtype_of
from tile_core.errors import TileError
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import AddressOf, Binary, Const, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import (
    Break,
    Check,
    Continue,
    Evaluate,
    For,
    If,
    Leaf,
    Let,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ir.visitor import bound_variables
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import boxes
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable

_INT32 = dtype_of("int32")

_EVENTS = (
    Seq, Let, Store, Evaluate, For, Parallel, Pipelined, While, If, Break, Continue, Check, Leaf,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Versions:
    """Tiles with a leading dimension in the place of tiles that iterations have their own of.

    Each old storage and view has a new one in `tiles`; `counts` tells how many versions each old
    storage has.
    """

    tiles: Mapping[Buffer, Buffer] = field(default_factory=dict)
    counts: Mapping[Buffer, int] = field(default_factory=dict)

    def index(self, buffer: Buffer, turn: Expr) -> Expr:
        """Return which version of `buffer` iteration `turn` has."""
        return turn % self.counts[buffer.storage]


def make_versions(
    buffers: Iterable[Buffer], counts: Mapping[Buffer, int], known: Versions | None = None
) -> Versions:
    """Return new tiles for `counts`, and for those of `buffers` that are views of them.

    Tiles that are `known` already stay.
    """
    made: dict[Buffer, Buffer] = dict(known.tiles) if known is not None else {}

    def version(buffer: Buffer) -> Buffer:
        if buffer not in made:
            origin = version(buffer.origin) if isinstance(buffer.origin, Buffer) else None
            count = counts[buffer.storage]
            made[buffer] = replace(buffer, shape=(count, *buffer.shape), origin=origin)
        return made[buffer]

    for buffer in (*counts, *buffers):
        if buffer.storage in counts:
            version(buffer)
    return Versions(made, dict(counts))


def require_versions(stmts: Iterable[Stmt], storage: Buffer) -> None:
    """Refuse statements that could not work on one of several versions of a tile."""
    stmts = tuple(stmts)
    buffers = {n for s in stmts for n in nodes_of(s, Buffer) if n.storage is storage}
    for buffer in sorted(buffers, key=lambda b: b.name):
        if buffer.strides is not None or buffer.static_shape is None:
            raise NotApplicable(f"{buffer.name!r} has strides, or extents known only at run time")
    versions = make_versions(buffers, {storage: 2})
    turn = Var("turn", _INT32)
    for stmt in stmts:
        try:
            for node in nodes_of(instance(stmt, {}, versions, turn), Leaf):
                node.verify()
        except TileError as refused:
            reason = f"a version of {storage.name!r} cannot be used here: {refused.message}"
            raise NotApplicable(reason) from None


def instance(stmt: Stmt, values: Mapping[Var, Expr], versions: Versions, turn: Expr) -> Stmt:
    """Return `stmt` as an event of its own, in iteration `turn`.

    Variables are replaced by `values`; those bound inside of `stmt` become new ones.
    """
    return cast(Stmt, _Instance(stmt, values, versions, turn).of(stmt))


def value_of(value: Expr, values: Mapping[Var, Expr], versions: Versions, turn: Expr) -> Expr:
    """Return an expression in iteration `turn`."""
    return cast(Expr, _Instance(value, values, versions, turn).of(value))


class _Instance:
    def __init__(
        self, root: Node, values: Mapping[Var, Expr], versions: Versions, turn: Expr
    ) -> None:
        self.versions, self.turn = versions, turn
        self.done: dict[Node, Node] = {}
        self.done.update(values.items())
        self.done.update(versions.tiles.items())
        for var in bound_variables(root):
            self.done.setdefault(var, replace(var))

    def of(self, node: Node) -> Node:
        """Return `node` for the iteration; statements are made anew."""
        known = self.done.get(node)
        if known is not None:
            return known
        if isinstance(node, Buffer):
            return node
        made: Any = self._in_boxes(node).map_children(self.of)
        if isinstance(made, Binary) and made is not node and _are_numbers(made):
            made = binary(made.op, made.a, made.b)
        if isinstance(node, (Load, Store, AddressOf)) and node.buffer in self.versions.tiles:
            made = replace(
                made, indices=(self.versions.index(node.buffer, self.turn), *made.indices)
            )
        elif isinstance(node, Region) and node.buffer in self.versions.tiles:
            starts = (self.versions.index(node.buffer, self.turn), *made.starts)
            made = replace(made, starts=starts, extents=(1, *made.extents))
        if isinstance(node, _EVENTS):
            return cast(Node, replace(made) if made is node else made)
        self.done[node] = made
        return cast(Node, made)

    def _in_boxes(self, node: Node) -> Node:
        """Write out the extents of tiles named by their first element: a version has more axes."""
        if not isinstance(node, (Copy, AtomicTile)):
            return node
        sides = (node.src, node.dst)
        if not any(r.is_element and r.buffer in self.versions.tiles for r in sides):
            return node
        src, dst = (
            box if r.buffer in self.versions.tiles else r
            for r, box in zip(sides, boxes(*sides), strict=True)
        )
        return replace(node, src=src, dst=dst)


def _are_numbers(node: Binary) -> bool:
    return isinstance(node.a, Const) and isinstance(node.b, Const) and node.a.dtype.is_int
