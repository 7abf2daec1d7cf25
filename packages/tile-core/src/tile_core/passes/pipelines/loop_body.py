"""The body of a pipelined loop as statements that can be moved one by one."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import field
from typing import TypeAlias

from tile_core.analysis.memory_access import MemoryAccess, is_plain, memory_accesses
from tile_core.analysis.memory_dependence import MemoryDependences
from tile_core.errors import Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import Mode, effects_of, storages_written
from tile_core.ir.expr import Call, Expr, Load, Unary, UnaryOp, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Break,
    Check,
    Continue,
    Hint,
    If,
    Let,
    Pipelined,
    Seq,
    Stmt,
)
from tile_core.ir.visitor import own_level
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.control import Barrier, Breakpoint
from tile_core.ops.copy import Copy
from tile_core.ops.printing import Print
from tile_core.ops.signals import SIGNALS
from tile_core.records import dataclass
from tile_core.remarks import NotApplicable

_OUTWARD = Effect.OUTPUT | Effect.STATE | Effect.BLOCK | Effect.WARP


@dataclass(frozen=True, slots=True, eq=False)
class BranchPredicate:
    """A branch around a statement: the statement runs if `cond` holds."""

    cond: Expr
    span: Span | None


Prefix: TypeAlias = "tuple[Let | BranchPredicate, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One statement of a body that is moved as a whole.

    The `prefix` are names that may be given again wherever the statement goes, and branches around
    it, outermost first. The `entry` tells which statement of the source it is a part of; None for a
    name that has no entry in schedules written by hand.
    """

    stmt: Stmt
    prefix: Prefix
    entry: int | None
    touches: tuple[MemoryAccess, ...] = ()
    defines: frozenset[Var] = frozenset()
    uses: frozenset[Var] = frozenset()

    @property
    def span(self) -> Span | None:
        """The user's line."""
        return self.stmt.span

    @property
    def acts(self) -> bool:
        """Whether the order of such statements shows outside of memory."""
        return isinstance(self.stmt, (Print, Breakpoint, Barrier, Check, *SIGNALS)) or any(
            (n.function.startswith("extern:") or bool(effect_of(n.function) & _OUTWARD))
            for n in nodes_of(self.stmt, Call)
        )

    @property
    def copy(self) -> Copy | None:
        """The copy from global into shared memory that this is, if it is one."""
        op = self.stmt
        return op if isinstance(op, Copy) and _fills_a_tile(op) else None

    def writes(self, storage: Buffer) -> bool:
        """Whether it may change elements of `storage`."""
        return any(t.storage is storage and t.mode.value != "read" for t in self.touches)


@dataclass(frozen=True, slots=True)
class PipelineBody:
    """A loop's body taken apart.

    The `pieces` are in program order; allocations and hints may stand `outside`, before the loop;
    `moving` are the loop's index and all names given in the body.
    """

    pieces: tuple[Piece, ...]
    outside: tuple[Stmt, ...]
    moving: frozenset[Var]


def _fills_a_tile(op: Copy) -> bool:
    return (op.src.buffer.scope, op.dst.buffer.scope) == (Scope.GLOBAL, Scope.SHARED)


@dataclass(slots=True)
class _Taken:
    written: frozenset[Buffer]
    pieces: list[Piece] = field(default_factory=list)
    outside: list[Stmt] = field(default_factory=list)
    named: set[Var] = field(default_factory=set)
    entries: int = 0


def take_apart(loop: Pipelined) -> PipelineBody:
    """Return the statements of the loop's body.

    Names of values that are the same whenever they are computed are given again wherever
    they are needed; a name of a value that the loop changes is a statement like others. A
    branch that holds a copy into a tile is written around each of its statements. A body that waits
    for copies itself, is left in its middle, or says how tensors are read from there on is
    `NotApplicable`.
    """
    _refuse_forms(loop)
    written = {t.storage for t in memory_accesses(loop.body) if t.mode is not Mode.READ}
    taken = _Taken(frozenset(written))
    _take(loop.body, (), taken, None)
    names = {n.var for n in nodes_of(loop.body, Let)}
    pieces = tuple(described(p, taken.named) for p in taken.pieces)
    return PipelineBody(pieces, tuple(taken.outside), frozenset({*names, loop.var}))


def _refuse_forms(loop: Pipelined) -> None:
    for node in nodes_of(loop.body, CopyCommit, CopyWait, Copy, AnnotateSafeValue):
        match node:
            case CopyCommit() | CopyWait():
                raise NotApplicable("the loop itself waits for copies", node.span)
            case Copy(is_async=True):
                raise NotApplicable("the loop itself starts asynchronous copies", node.span)
            case AnnotateSafeValue():
                raise NotApplicable("a safe value is set inside of it", node.span)
    for node in own_level(loop.body):
        if isinstance(node, (Break, Continue)):
            raise NotApplicable("its iterations can be left in the middle", node.span)


def _take(stmt: Stmt, prefix: Prefix, taken: _Taken, entry: int | None) -> Prefix:
    """Add the pieces of `stmt`; return the prefix of what follows it in its sequence."""
    match stmt:
        case Seq(body=body):
            inner = prefix
            for item in body:
                inner = _take(item, inner, taken, entry)
            return prefix if entry is not None else inner
        case Alloc() | Hint() | AnnotateLayout():
            taken.outside.append(stmt)
            return prefix
        case Let():
            if _is_repeatable(stmt.value, taken):
                return (*prefix, stmt)
            taken.named.add(stmt.var)
            taken.pieces.append(Piece(stmt, prefix, entry))
            return prefix
    if entry is None:
        entry = taken.entries
        taken.entries += 1
    if isinstance(stmt, If) and _is_divisible(stmt, taken):
        _take_branches(stmt, prefix, taken, entry)
    else:
        taken.pieces.append(Piece(stmt, prefix, entry))
    return prefix


def _is_repeatable(value: Expr, taken: _Taken) -> bool:
    """Whether a value is the same at every time of one iteration."""
    if effects_of(value) is not Effect.NONE or free_variables(value).keys() & taken.named:
        return False
    if any(n.function.startswith("extern:") for n in nodes_of(value, Call)):
        return False
    read = {n.buffer.storage for n in nodes_of(value, Load)}
    memory = MemoryDependences()  # tensors at addresses may be others
    return not any(memory.share_bytes(a, b) for a in read for b in taken.written)


def _is_divisible(stmt: If, taken: _Taken) -> bool:
    """Whether a branch holds a copy into a tile, and no name that only it could see."""
    if not any(_fills_a_tile(n) for n in nodes_of(stmt, Copy)):
        return False
    written = storages_written(stmt)
    own_condition = {n.buffer.storage for n in nodes_of(stmt.cond, Load)}
    named = any(not _is_repeatable(n.value, taken) for n in nodes_of(stmt, Let))
    return not named and not own_condition & written.keys()


def _take_branches(stmt: If, prefix: Prefix, taken: _Taken, entry: int) -> None:
    cond = stmt.cond
    if not _is_repeatable(cond, taken):
        let = Let(Var("holds", cond.dtype), cond, span=stmt.span)
        taken.named.add(let.var)
        taken.pieces.append(Piece(let, prefix, entry))
        cond = let.var
    _take(stmt.then, (*prefix, BranchPredicate(cond, stmt.span)), taken, entry)
    if stmt.otherwise is not None:
        negated = Unary(UnaryOp.NOT, cond, cond.dtype)
        _take(stmt.otherwise, (*prefix, BranchPredicate(negated, stmt.span)), taken, entry)


def described(piece: Piece, named: Set[Var]) -> Piece:
    """Return the piece with what it touches and names, and without names it does not need.

    The names in `named` are those that pieces of the body give.
    """
    prefix = _needed(piece)
    meaning = {e.var: e.value for e in prefix if isinstance(e, Let) and is_plain(e.value)}
    found = [*memory_accesses(piece.stmt, meaning=meaning)]
    used = set(nodes_of(piece.stmt, Var))
    for element in prefix:
        value = element.value if isinstance(element, Let) else element.cond
        found += memory_accesses(value, meaning=meaning)
        used |= free_variables(value).keys()
    defines = frozenset({piece.stmt.var}) if isinstance(piece.stmt, Let) else frozenset[Var]()
    return Piece(
        piece.stmt, prefix, piece.entry, tuple(found), defines, frozenset(used & named) - defines
    )


def _needed(piece: Piece) -> Prefix:
    used, kept = set(nodes_of(piece.stmt, Var)), list[Let | BranchPredicate]()
    for element in reversed(piece.prefix):
        if isinstance(element, Let):
            if element.var not in used:
                continue
            used |= free_variables(element.value).keys()
        else:
            used |= free_variables(element.cond).keys()
        kept.append(element)
    return tuple(reversed(kept))
