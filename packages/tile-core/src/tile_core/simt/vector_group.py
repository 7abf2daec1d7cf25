"""A few statements for all lanes: loads of memory first, computation lane by lane, stores last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, const, unary
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Call,
    Expr,
    Load,
    Select,
    StringConst,
    UnaryOp,
)
from tile_core.ir.free_variables import free_variables, structure
from tile_core.ir.node import Node, contains, nodes_of, substitute, walk
from tile_core.ir.stmt import Alloc, Evaluate, Let, Seq, Stmt, Store
from tile_core.ir.visitor import expressions_in
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import counted
from tile_core.simt.lane_strides import Lanes
from tile_core.simt.vector_access import (
    MEMORY,
    Registers,
    Vector,
    load_vector,
    store_vector,
    widest,
    widest_shared,
    within,
)

Guarded = tuple[Load, tuple[Expr, ...]]


def vectorised_group(group: Sequence[Stmt], lanes: Lanes, ctx: SimtContext) -> list[Stmt]:
    """Return statements that do for all lanes what `group` does for one.

    No statement of the group touches memory that an earlier one wrote.
    """
    return _Group(group, lanes, ctx).run()


@dataclass(slots=True)
class _Group:
    """What has been decided about a group so far."""

    group: Sequence[Stmt]
    lanes: Lanes
    ctx: SimtContext
    allocs: list[Stmt] = field(default_factory=list)
    loads: list[Stmt] = field(default_factory=list)
    compute: list[Stmt] = field(default_factory=list)
    stores: list[Stmt] = field(default_factory=list)
    vectors: dict[Load, Vector] = field(default_factory=dict)
    held: dict[object, Registers] = field(default_factory=dict)

    def run(self) -> list[Stmt]:
        """Decide on every access, statement by statement."""
        changed = _registers_written(self.group)
        for load, conditions in _loads(self.group):
            vector = self._wide(load, conditions, changed)
            if vector is not None:
                self.vectors[load] = vector
        for position, stmt in enumerate(self.group):
            if not (isinstance(stmt, Store) and self._moved(stmt, position)):
                self.compute.append(self._computed(stmt))
        lane_loop = self._lane_loop()
        return [*self.allocs, *self.loads, *lane_loop, *self.stores]

    def _wide(
        self, load: Load, conditions: tuple[Expr, ...], changed: set[Buffer]
    ) -> Vector | None:
        """Return the vector of which `load` is one lane, unless it hangs on what changes."""
        for expr in (*load.indices, *conditions):
            read = {n.buffer.storage for n in nodes_of(expr, Load)}
            named = contains(expr, Call) or self._names & set(free_variables(expr))
            if read & changed or named:
                return None
        about = (load.buffer, load.indices[0], conditions, self.lanes, self.ctx, load.span)
        return widest(*about) or widest_shared(*about)

    @property
    def _names(self) -> set[Node]:
        return {s.var for s in self.group if isinstance(s, Let)}

    def _array(self, name_hint: str, dtype: DType, sharing: int = 1) -> Registers:
        buffer = self.ctx.registers(f"{name_hint}_lanes", self.lanes.count // sharing, dtype)
        self.allocs.append(Alloc(buffer))
        return Registers(buffer, const(0, self.lanes.var.dtype))

    # Moves ---------------------------------------------------------------------------------

    def _moved(self, stmt: Store, position: int) -> bool:
        """Move whole vectors where a statement only copies; whether it did."""
        found = _source(stmt.value)
        if found is None or found[0].buffer.dtype != stmt.buffer.dtype:
            return False
        load, otherwise = found
        source = self.vectors.get(load)
        if source is not None and source.sharing > 1:
            return False
        target = self._target(stmt)
        if source is not None and stmt.buffer.scope is Scope.LOCAL:
            into = self._aligned(stmt.buffer, stmt.indices[0], source)
            if into is None or _touches(self.group[:position], stmt.buffer):
                return False
            self.loads.append(load_vector(source, into, self._spread(otherwise, source)))
            return True
        if target is None:
            return False
        if source is not None:
            kept = self._array(load.buffer.name, load.buffer.dtype)
            self.loads.append(load_vector(source, kept, self._spread(otherwise, source)))
            self.stores.append(store_vector(target, kept))
            return True
        if load.buffer.scope is Scope.LOCAL and otherwise is None:
            out = self._aligned(load.buffer, load.indices[0], target)
            if out is None or load.buffer.storage in _registers_written(self.group[position + 1 :]):
                return False
            self.stores.append(store_vector(target, out))
            return True
        return False

    def _spread(self, value: Expr | None, vector: Vector) -> Expr | None:
        """Return a value at the lanes of one part."""
        return None if value is None else substitute(value, {self.lanes.var: vector.part.lane})

    def _aligned(self, buffer: Buffer, index: Expr, vector: Vector) -> Registers | None:
        """Return registers that follow each other lane by lane, from a multiple of the width."""
        step = within(index, self.lanes, vector.part)
        if step is None or step.factor != 1:
            return None
        if vector.part.lanes.env.multiple_of(step.base) % vector.width:
            return None
        first = substitute(index, {self.lanes.var: vector.part.first})
        rest = substitute(index, {self.lanes.var: const(0, self.lanes.var.dtype)})
        env = vector.part.lanes.env
        apart = env.linear(first) - env.linear(rest) - env.linear(vector.part.first)
        return Registers(buffer, rest) if apart.is_number and not apart.constant else None

    # Computation ---------------------------------------------------------------------------

    def _computed(self, stmt: Stmt) -> Stmt:
        """Return what a lane does of `stmt`, between the loads and the stores."""
        stmt = substitute(stmt, self._taken(stmt))
        match stmt:
            case Store() if (target := self._target(stmt)) is not None:
                out = self._array(stmt.buffer.name, stmt.buffer.dtype)
                self.stores.append(store_vector(target, out))
                return Store(out.buffer, (self.lanes.var,), stmt.value, span=stmt.span)
            case Evaluate(value=Call(function=function, args=(AddressOf() as at, value, *order))):
                vector = self._atomic(function, at, order, stmt)
                if vector is not None:
                    out = self._array(at.buffer.name, at.buffer.dtype)
                    self.stores.append(store_vector(vector, out, function))
                    return Store(out.buffer, (self.lanes.var,), value, span=stmt.span)
        return stmt

    def _taken(self, stmt: Stmt) -> dict[Node, Node]:
        """Return where the lanes of loads, and of values guarded by a condition, are kept."""
        taken: dict[Node, Node] = {}
        covered: set[Node] = set()
        for node in walk(stmt):
            found = _source(node) if isinstance(node, (Load, Select)) else None
            if found is None or found[0] not in self.vectors or found[0] in covered:
                continue
            load, otherwise = found
            if otherwise is not None and self.lanes.var in free_variables(otherwise):
                continue
            covered.add(load)
            kept = self._loaded(load, otherwise)
            lane = binary(BinaryOp.FLOORDIV, self.lanes.var, self.vectors[load].sharing)
            taken[node] = Load(kept.buffer, (lane,), span=load.span)
        return taken

    def _loaded(self, load: Load, otherwise: Expr | None) -> Registers:
        """Return the registers that hold the lanes of `load`, loaded once if written alike."""
        vector = self.vectors[load]
        parts = (load.indices[0], vector.condition, otherwise)
        key = (load.buffer, *(None if p is None else structure(p, together=True) for p in parts))
        if key not in self.held:
            self.held[key] = self._array(load.buffer.name, load.buffer.dtype, vector.sharing)
            self.loads.append(load_vector(vector, self.held[key], otherwise))
        return self.held[key]

    def _target(self, stmt: Store) -> Vector | None:
        if stmt.buffer.scope not in MEMORY or _holds_memory(stmt.indices[0], self._names):
            return None
        return widest(stmt.buffer, stmt.indices[0], (), self.lanes, self.ctx, stmt.span)

    def _atomic(
        self, function: str, at: AddressOf, order: Sequence[Expr], stmt: Stmt
    ) -> Vector | None:
        """Return the vector of an atomic sum that the machine can update at once."""
        relaxed = all(isinstance(o, StringConst) and o.value == "relaxed" for o in order)
        family = _FAMILIES.get(at.buffer.dtype)
        if function != "atomic_add" or not relaxed or family is None:
            return None
        if at.buffer.scope is not Scope.GLOBAL or _holds_memory(at.indices[0], self._names):
            return None
        have = [n for n in (2, 4) if self.ctx.machine.has(f"atomic_{family}x{n}")]
        return widest(at.buffer, at.indices[0], (), self.lanes, self.ctx, stmt.span, allowed=have)

    def _lane_loop(self) -> list[Stmt]:
        if not self.compute:
            return []
        body = self.compute[0] if len(self.compute) == 1 else Seq(tuple(self.compute))
        return [counted(self.lanes.var, self.lanes.count, body, span=self.group[0].span)]


_FAMILIES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}


def _registers_written(group: Sequence[Stmt]) -> set[Buffer]:
    return {a.buffer.storage for s in group for a in accesses(s) if a.mode is not Mode.READ}


def _touches(group: Sequence[Stmt], buffer: Buffer) -> bool:
    return any(a.buffer.storage is buffer.storage for s in group for a in accesses(s))


def _holds_memory(index: Expr, names: set[Node]) -> bool:
    """Whether an index is known only once the lane computes it."""
    return any(isinstance(n, (Load, Call)) or n in names for n in walk(index))


def _source(value: Expr) -> tuple[Load, Expr | None] | None:
    """Return what a value moves: one element, and what takes its place where there is none."""
    match value:
        case Load():
            return value, None
        case Select(then=Load() as load, otherwise=other, lazy=True) if not contains(
            other, Load, Call
        ):
            return load, other
    return None


def _loads(group: Sequence[Stmt]) -> Iterator[Guarded]:
    """Yield the loads of memory with the conditions under which they happen.

    A load met under different conditions, or under those of a branch, is left out.
    """
    found: dict[Load, tuple[Expr, ...] | None] = {}
    for stmt in group:
        in_stmt = (pair for expr in expressions_in(stmt) for pair in _in_expr(expr, ()))
        for load, conditions in in_stmt:  # branches stay with their lanes
            if load in found and found[load] != conditions:
                found[load] = None
            else:
                found[load] = conditions
    for load, known in found.items():
        if known is not None:
            yield load, known


def _in_expr(expr: Expr, conditions: tuple[Expr, ...]) -> Iterator[Guarded]:
    match expr:
        case Load(buffer=buffer):
            if buffer.scope in MEMORY:
                yield expr, conditions
        case Select(cond=cond, then=then, otherwise=otherwise, lazy=True):
            yield from _in_expr(cond, conditions)
            yield from _in_expr(then, (*conditions, cond))
            yield from _in_expr(otherwise, (*conditions, unary(UnaryOp.NOT, cond)))
            return
        case Binary(op=BinaryOp.AND | BinaryOp.OR, a=a, b=b):
            yield from _in_expr(a, conditions)
            holds = a if expr.op is BinaryOp.AND else unary(UnaryOp.NOT, a)
            yield from _in_expr(b, (*conditions, holds))
            return
    for child in expr.children():
        if isinstance(child, Expr) and child.children():
            yield from _in_expr(child, conditions)
