"""Reductions across the rows of a tile from what its elements are made of: it is stored nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import const
from tile_core.ir.effects import accesses, storages_written
from tile_core.ir.expr import Call, Expr, Load, Var
from tile_core.ir.node import N, Node, contains, nodes_of, rewrite, substitute
from tile_core.ir.stmt import For, Kernel, Parallel, Seq, Stmt, Store, flattened
from tile_core.ops.copy import Copy
from tile_core.ops.loop_builders import accumulator
from tile_core.ops.parallel_form import parallel_nest
from tile_core.ops.reduce import Reduce
from tile_core.ops.serial_forms import expand
from tile_core.ops.signals import SIGNALS
from tile_core.records import dataclass, replace
from tile_core.target import Target
from tile_cpu.passes.buffer_uses import KernelUses, rewrite_sequences
from tile_cpu.passes.row_dependence import is_at
from tile_cpu.passes.row_passes import is_plain


def fuse_columns(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with columns combined as their elements are read or computed.

    Before   copy X[k, n] -> x;  parallel j, i in (8, 2048): y[j, i] = x[j, i] * x[j, i];
             reduce sum y -> t along 0
    After    parallel i in (2048): total = 0;  for r in 8: total += X[k + r, n + i] * …;
             t[i] = total

    Conservative: one statement writes each tile, all of it; nothing reads it but such reductions
    and tiles that only they need; functions are not called twice for one element. Returns the same
    object when nothing fits.
    """
    facts = KernelUses(kernel)
    local = _local_tiles(kernel, facts)
    return rewrite_sequences(kernel, lambda seq, _: _fuse_in_sequence(seq, local))


ROWS = 8
"""Rows read side by side: machines fetch ahead in about so many places."""

LONG_ROW_BITS = 8192
"""Of results that are worth reading and writing again for each few rows."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """What the elements of a tile are made of.

    Parameters
    ----------
    position
        Of the statement that writes them.
    at, value
        The indices of an element, and what it is there.
    """

    position: int
    at: tuple[Var, ...]
    value: Expr


_Tiles = Mapping[Buffer, _Tile]


def _local_tiles(kernel: Kernel, facts: KernelUses) -> set[Buffer]:
    """Return the tiles that are written, all of them, wherever a sequence begins to use them."""
    covered: dict[Buffer, set[Node]] = {}
    for seq in nodes_of(kernel, Seq):
        touched = [accesses(stmt) for stmt in seq.body]
        for tile, one in _tiles(seq).items():
            mine = [[a.node for a in found if a.buffer.storage is tile] for found in touched]
            if not any(mine[: one.position]):
                covered.setdefault(tile, set()).update(node for nodes in mine for node in nodes)
    return {
        tile
        for tile, nodes in covered.items()
        if tile not in facts.viewed and nodes >= facts.touching[tile].keys()
    }


def _fuse_in_sequence(seq: Seq, local: set[Buffer]) -> Seq:
    tiles = {tile: one for tile, one in _tiles(seq).items() if tile in local}
    while wrong := [tile for tile in tiles if not _may_vanish(tile, tiles, seq)]:
        tiles = {tile: one for tile, one in tiles.items() if tile not in wrong}
    if not tiles:
        return seq
    gone = {one.position for one in tiles.values()}
    body: list[Stmt] = []
    for position, stmt in enumerate(seq.body):
        if _combines(stmt, tiles):
            body += [_made_of(part, tiles) for part in _in_groups(stmt)]
        elif position not in gone:
            body.append(stmt)
    return replace(seq, body=tuple(body))


def _in_groups(op: Reduce) -> list[Stmt]:
    """Return loops over columns that combine a few long rows each, if that rounds nothing."""
    dtype = op.dst.buffer.dtype
    rows, columns = op.src.static_extents or (0, 0)
    is_exact = accumulator("total", dtype).dtype == dtype
    if rows <= ROWS or rows % ROWS or columns * dtype.bits < LONG_ROW_BITS or not is_exact:
        return [parallel_nest(expand(op))]

    def some(first: Expr | int, *, clear: bool) -> Stmt:
        src = replace(op.src, starts=(first, 0), extents=(ROWS, columns))
        return parallel_nest(expand(replace(op, src=src, clear=clear)))

    group = Var("g", const(0).dtype)
    rest = some(group * ROWS, clear=False)
    count = const(rows // ROWS)
    return [some(0, clear=op.clear), For(group, const(1), count, const(1), Seq((rest,)))]


def _tiles(seq: Seq) -> dict[Buffer, _Tile]:
    """Return the tiles that single statements of a sequence write."""
    found: dict[Buffer, _Tile] = {}
    for position, stmt in enumerate(seq.body):
        loop = stmt
        if isinstance(stmt, Copy) and not stmt.is_async:
            loop = parallel_nest(expand(stmt))
        body = flattened(loop.body) if isinstance(loop, Parallel) else []
        store = body[0] if len(body) == 1 else None
        if isinstance(loop, Parallel) and isinstance(store, Store) and is_plain(store):
            tile = store.buffer
            extents = tuple(map(static_value, loop.extents))
            is_all = len(extents) == 2 and None not in extents and tile.static_shape == extents
            is_local = not (tile.scope.is_global or tile.scope.is_thread_private or tile.origin)
            is_update = any(n.buffer.storage is tile for n in nodes_of(store.value, Load))
            is_new = is_all and is_local and not is_update
            if is_new and all(map(is_at, store.indices, loop.vars)):
                found[tile] = _Tile(position, loop.vars, store.value)
    return found


def _may_vanish(tile: Buffer, tiles: _Tiles, seq: Seq) -> bool:
    """Tell whether all that read a tile may have what its elements are made of instead."""
    one = tiles[tile]
    touched = [{a.buffer.storage for a in accesses(stmt)} for stmt in seq.body]
    users = [k for k, found in enumerate(touched) if tile in found and k != one.position]
    steps = {other.position for other in tiles.values()}
    if not all(k in steps or _combines(seq.body[k], {tile: one}) for k in users):
        return False
    if not users or users[0] < one.position:
        return False
    value = _made_of(one.value, _before(one, tiles))
    if len(users) > 1 and contains(value, Call):
        return False
    sources = {n.buffer.storage for n in nodes_of(value, Load)}
    later = seq.body[one.position :]
    if any(nodes_of(stmt, *SIGNALS) for stmt in later):  # other ranks may write then, or read
        return False
    return not any(sources & {*storages_written(s)} for s in later)


def _combines(stmt: Stmt, tiles: _Tiles) -> TypeGuard[Reduce]:
    """Tell whether a statement combines the elements of a tile's columns."""
    if not isinstance(stmt, Reduce) or stmt.dim != 0 or stmt.src.buffer not in tiles:
        return False
    return stmt.src.is_whole and stmt.dst.buffer.storage is not stmt.src.buffer


def _made_of(root: N, tiles: _Tiles) -> N:
    """Return `root` with what elements of tiles are made of in place of them."""

    def made(node: Node) -> Node:
        one = tiles.get(node.buffer) if isinstance(node, Load) else None
        if one is None or not isinstance(node, Load):
            return node
        value = _made_of(one.value, _before(one, tiles))
        return substitute(value, dict(zip(one.at, node.indices, strict=True)))

    return rewrite(root, made)


def _before(one: _Tile, tiles: _Tiles) -> _Tiles:
    """Return the tiles that are written before another one: later ones are of the last round."""
    return {tile: other for tile, other in tiles.items() if other.position < one.position}
