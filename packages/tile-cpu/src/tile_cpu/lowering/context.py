"""What is known while a kernel is being emitted: names, places, facts, pending statements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from tile_core.arith.bounds import Ranges
from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Extent, Var
from tile_core.ir.node import Node
from tile_core.ir.stmt import Check, Stmt
from tile_core.layout import Layout
from tile_core.ops.operator import TileOperator
from tile_core.ops.rule import Rule
from tile_core.records import dataclass
from tile_core.target import Target
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.gemm.operands import PackedB
from tile_cpu.lowering.buffer_addresses import FlatBuffer
from tile_cpu.tir.build import allocate, bind, dtype_of_expr, i32, scratch
from tile_cpu.tir.nodes import BufferLoad, BufferStore, IntImm, PrimExpr, TirBuffer
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar


@dataclass(slots=True)
class Frame:
    """Statements to run before the one being emitted, and values already computed by them."""

    parent: Frame | None = None
    statements: list[TirStmt] = field(default_factory=list)
    known: dict[Expr, PrimExpr] = field(default_factory=dict)

    def find(self, expr: Expr) -> PrimExpr | None:
        """Return the value of `expr` if this frame or one around it computed it."""
        frame: Frame | None = self
        while frame is not None:
            if expr in frame.known:
                return frame.known[expr]
            frame = frame.parent
        return None


@dataclass(frozen=True, slots=True)
class Lane:
    """The loop index that became the lanes of vectors."""

    var: Var  # in a vector it is base, base + 1, …
    base: PrimExpr
    lanes: int
    count: PrimExpr | None = None  # lanes before it are inside the loop; None if all are


@dataclass(frozen=True, slots=True)
class Settings:
    """What does not change while one kernel is emitted."""

    machine: CpuMachine
    target: Target
    rules: Mapping[TileOperator, Rule[Any]]  # the one chosen for each operator
    retyped: frozenset[Buffer]  # storages that are read under more than one element type
    guarded: bool  # global accesses that are not provably in range
    extern_names: Mapping[str, str]  # symbols of C functions that the kernel brings, by C name
    layouts: Mapping[Buffer, Layout]  # of storages that are not stored row by row without gaps
    users: Mapping[Buffer, tuple[Node, ...]]  # for each storage, the nodes that access it


class Context(ABC):
    """The state of emission, with lexical scopes.

    `Emitter` adds what turns expressions and statements into TIR; helpers take it by this
    type.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.vars: dict[Var, PrimExpr] = {}
        self.terms: dict[Node, int] = {}  # of what names of integers stand for, written out
        self.places: dict[Buffer, FlatBuffer] = {}
        self.pointers: dict[Buffer, Any] = {}
        self.safe: dict[Buffer, Expr] = {}
        self.env = ConstraintSet()
        self.frame = Frame()
        self.lane: Lane | None = None
        self.iterations: dict[Var, range] = {}  # of loops that count in steps
        self._ranges = Ranges(self.env)
        self.vectors: frozenset[Var] = frozenset()  # names that differ between lanes
        self.first_values: dict[Var, PrimExpr] = {}  # of those, in the first lane
        self.lane_cells: dict[Buffer, TirBuffer] = {}  # private memory, a vector per element
        self.hoisted: Mapping[Expr, PrimExpr] = {}  # values computed in front of the loop
        self.sums: Mapping[Any, TirBuffer] = {}  # of each combination along the lanes
        self.ahead: tuple[Var, int] | None = None  # fetch for its next iteration, into which cache
        self.iteration: Var | None = None  # the index of the sequential loop around
        self.stretch = 0  # elements of the vector loop at hand, if it is read ahead
        self.only_reads = False  # whether that loop stores nothing but sums
        self.trusted: frozenset[Node] = frozenset()  # accesses proven by a test up front
        self.speculative: ConstraintSet | None = None  # what is known without conditions on lanes
        self.lane_mask: PrimExpr | None = None  # the lanes whose conditions hold
        # The same of all conditions of an expression.
        self.ahead_of_conditions: ConstraintSet | None = None
        self.low_bits: set[Var] = set()  # names of integers of which bits were cut
        self.branched_on: tuple[Expr, ...] = ()  # conditions of the statements around
        self.is_in_branch = False  # whether a condition decides on the statement at hand
        self.block_entry: list[TirStmt] = []
        self.jump: TirBuffer | None = None
        self.status: TirBuffer | None = None
        self.checks: list[Check] = []
        self.helpers: dict[str, str] = {}
        self.prints = False
        self.rank: Var | None = None  # the parameter that tells which rank of a group this is
        self.streamed: frozenset[Buffer] = frozenset()  # stored past the caches
        self.stand_ins: dict[TileOperator, TileOperator] = {}  # for operators that have rules
        self.packed: dict[TileOperator, PackedB] = {}  # second factors in panels, by product
        self.streams = False  # some store of the block goes past the caches

    @property
    def certain(self) -> ConstraintSet:
        """What is known whatever conditions on lanes say."""
        return self.speculative or self.env

    @property
    def ranges(self) -> Ranges:
        """What integers can be, within their types, by what is known at this place."""
        if self._ranges.source is not self.env:
            self._ranges = Ranges(self.env)
        return self._ranges

    @property
    def machine(self) -> CpuMachine:
        """The machine compiled for."""
        return self.settings.machine

    @property
    def target(self) -> Target:
        """The target compiled for."""
        return self.settings.target

    def rule_of(self, op: TileOperator) -> Rule[Any]:
        """Return the one rule chosen for `op`.

        Raises
        ------
        InternalError
            If `op` came into being after rules were chosen, and stands in for no other.
        """
        rule = self.settings.rules.get(self.stand_ins.get(op, op))
        if rule is None:
            raise InternalError(f"no rule was chosen for {op.mnemonic!r}", span=op.span)
        return rule

    def keep(self, value: PrimExpr, name: str = "t") -> PrimExpr:
        """Return a cheap expression equal to `value`, which is computed once, here."""
        cell = self.cell(dtype_of_expr(value), name)
        self.run(BufferStore(cell, value, [i32(0)]))
        return BufferLoad(cell, [i32(0)])

    def keep_index(self, value: PrimExpr) -> PrimExpr:
        """Return a name for an integer, computed once, here; TVM may still look into it."""
        if isinstance(value, (IntImm, TirVar)):
            return value
        named, statement = bind("n", value)
        self.run(statement)
        return named

    def cell(self, dtype: str, name: str = "t") -> TirBuffer:
        """Return a fresh variable that LLVM will keep in a register."""
        cell = scratch([1], dtype, name)
        self.run(allocate(cell, on_stack=True))
        return cell

    def run(self, statement: TirStmt) -> None:
        """Run `statement` before the one being emitted."""
        self.frame.statements.append(statement)

    @contextmanager
    def branch(self) -> Iterator[list[TirStmt]]:
        """Collect statements that must run only in one branch of the current expression."""
        before, self.frame = self.frame, Frame(parent=self.frame)
        try:
            yield self.frame.statements
        finally:
            self.frame = before

    @contextmanager
    def condition(self) -> Iterator[None]:
        """Emit a part of an expression that counts only under a condition of that expression."""
        before = self.ahead_of_conditions
        self.ahead_of_conditions = before or self.env
        try:
            yield
        finally:
            self.ahead_of_conditions = before

    @contextmanager
    def in_branch(self, *, is_one: bool = True) -> Iterator[None]:
        """Emit statements on which a condition decides, if `is_one`."""
        before, self.is_in_branch = self.is_in_branch, self.is_in_branch or is_one
        try:
            yield
        finally:
            self.is_in_branch = before

    @contextmanager
    def branching_on(self, cond: Expr) -> Iterator[None]:
        """Emit statements of an `if`."""
        before, self.branched_on = self.branched_on, (*self.branched_on, cond)
        try:
            with self.in_branch():
                yield
        finally:
            self.branched_on = before

    @contextmanager
    def statement(self) -> Iterator[list[TirStmt]]:
        """Collect the statements of one tile IR statement; values do not outlive it."""
        before, self.frame = self.frame, Frame()
        try:
            yield self.frame.statements
        finally:
            self.frame = before

    @contextmanager
    def scope(self, env: ConstraintSet | None = None) -> Iterator[None]:
        """Forget, at the end, what was bound and learnt inside; start from `env` if given."""
        before = (dict(self.vars), dict(self.places), dict(self.safe), self.env)
        if env is not None:
            self.env = env
        try:
            yield
        finally:
            self.vars, self.places, self.safe, self.env = before

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Emit something that may turn out to be impossible; an error leaves no trace of it.

        What was named, hoisted or assumed while it was tried must not be found by what is
        emitted in its place: those definitions are dropped with the statements.
        """
        before = {name: _copied(value) for name, value in self.__dict__.items()}
        frame, length, known = self.frame, len(self.frame.statements), dict(self.frame.known)
        try:
            yield
        except Exception:
            self.__dict__.update(before)
            del frame.statements[length:]
            frame.known = known
            raise

    @abstractmethod
    def value(self, expr: Expr) -> PrimExpr:
        """Return the TIR value of `expr`, in its value type."""

    @abstractmethod
    def lower_stmt(self, stmt: Stmt) -> TirStmt:
        """Return the TIR of `stmt`, such as an operator's expansion to loops."""

    @abstractmethod
    def unrounded(self, expr: Expr) -> PrimExpr:
        """Return the value of `expr` for a place that rounds it to its type anyway."""

    @abstractmethod
    def index(self, extent: Extent, dtype: str = "int32") -> PrimExpr:
        """Return an integer of tile IR as a TIR value of type `dtype`."""

    @abstractmethod
    def place(self, buffer: Buffer) -> FlatBuffer:
        """Return where `buffer` lies; views are placed on first use."""


def _copied(value: Any) -> Any:
    """Return a copy of a table or list that emission changes in place, else `value`."""
    return value.copy() if isinstance(value, (dict, list)) else value


def loaded(cell: TirBuffer) -> PrimExpr:
    """Return the value of a variable made by `Context.cell`."""
    return BufferLoad(cell, [i32(0)])


def assigned(cell: TirBuffer, value: PrimExpr) -> TirStmt:
    """Return the assignment of a variable made by `Context.cell`."""
    return BufferStore(cell, value, [i32(0)])
