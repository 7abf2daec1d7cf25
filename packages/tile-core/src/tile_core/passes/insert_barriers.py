"""Barriers of the block between accesses of different threads that must not pass each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, TypeAlias

from tile_core.analysis.concurrent_accesses import concurrent_accesses
from tile_core.analysis.gemms_in_flight import ends_products, factors_in_memory, products_before
from tile_core.analysis.memory_access import (
    ExecutingThreads,
    MemoryAccess,
    inlined,
    is_plain,
    memory_accesses,
)
from tile_core.analysis.memory_dependence import (
    Loop,
    MemoryDependences,
    PendingAccess,
    SameThread,
    Told,
    never,
)
from tile_core.analysis.thread_dependence import ThreadDependences
from tile_core.analysis.uniformity import Uniformity, is_thread_program
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.effects import Mode, effects_of
from tile_core.ir.expr import Call, Expr, Extent, Var
from tile_core.ir.intrinsics import Effect
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import (
    Break,
    Continue,
    Evaluate,
    For,
    If,
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
    flattened,
)
from tile_core.ir.visitor import LOOPS, bound_variables, expressions_in, map_statements
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.control import Barrier, ClusterSync
from tile_core.ops.copy import Copy
from tile_core.passes.signals import awaits_signal, sends_signal
from tile_core.records import replace

State: TypeAlias = frozenset[PendingAccess]
Path: TypeAlias = tuple[int, ...]

NONE: State = frozenset()
AT_END = -1
"""Stands in a path for the place after the last statement of a loop's body."""

_WATCHED = (Scope.SHARED, Scope.GLOBAL)


def insert_barriers(
    launch: Launch,
    places: Any = None,
    shared: Mapping[Buffer, int] | None = None,
    same_thread: SameThread = never,
    *,
    between_threads: bool = True,
    warp_size: int = 32,
) -> Launch:
    """Return `launch` with a barrier wherever threads of a block would race without one.

    Before   copy A, A_s;  gemm A_s, B_s, C_l;  copy B, A_s
    After    copy A, A_s;  barrier;  gemm A_s, B_s, C_l;  barrier;  copy B, A_s

    An access of memory that threads share waits behind a barrier if an earlier one that it
    conflicts with (read and write, write and write) may be another thread's. Accesses in
    provably different boxes, such as versions of a tile, do not conflict, nor do atomics
    among themselves. What an asynchronous copy writes counts as written where the program waits for
    it, and what a product reads that is left in flight as read there too. Loops are followed around
    to a fixed point; where only what happened before a loop conflicts, the barrier stands before
    it. Branches that threads take apart from each other hold no barrier: it comes before. In
    explicit programs of threads, accesses of shared memory conflict if tables of all threads show
    that two of them may meet at an element, and neither a barrier, one of the warp where the two
    are of one warp, nor a signal that was sent and waited for stands between; on tensors, barriers
    are the program's own affair. So are those between statements for ranges of threads that have
    none in common; inside of a range, barriers are for its threads. A copy of the copy engine that
    a barrier in memory counts waits for what its range did to the tile before; what uses the tile
    waits at that barrier. `places` (flat buffers of `simt.buffer_addresses`) and `shared` (their
    byte offsets) tell where tiles lie: those that share bytes conflict. By default every tile has
    memory of its own. `same_thread` tells whether two accesses of a storage are, element by
    element, the same thread's. Without `between_threads`, accesses that an explicit program of
    threads makes itself get only the barriers that the plan of memory needs.
    """
    flow = Flow(launch, MemoryDependences(_spans(launch, places, shared), same_thread))
    if flow.by_thread and between_threads:
        memory, names = flow.memory, flow.uniform.variables
        memory.threads = ThreadDependences(launch, names, memory.stands_for, warp_size)
    flow.visit(launch.body, (), NONE)
    body = _rebuilt(launch.body, (), flow.decided)
    return launch if body is launch.body else replace(launch, body=body)


def _spans(
    launch: Launch, places: Any, shared: Mapping[Buffer, int] | None
) -> dict[Buffer, tuple[int, int]]:
    if places is None or not shared:
        return {}
    tiles = {
        n.storage: None for n in nodes_of(launch.body, Buffer) if n.storage.scope is Scope.SHARED
    }
    spans = {}
    for tile in tiles:
        flat = places.flat(tile)
        if flat in shared:
            spans[tile] = (shared[flat], shared[flat] + (flat.nbytes or 0))
    return spans


class _Around:
    """What leaves the iterations of a loop in the middle, and what is asked before each."""

    def __init__(self, cond: Expr | None) -> None:
        self.cond = cond
        self.broken: State = NONE
        self.continued: State = NONE


class Flow:
    """Follows the program and decides, once and for all, before which places a barrier stands."""

    def __init__(self, launch: Launch, memory: MemoryDependences) -> None:
        self.memory = memory
        self.body = launch.body
        self.by_thread = is_thread_program(launch)
        self.running = math.prod(launch.threads)
        self.uniform = Uniformity(launch)
        waits = (n.pending for n in nodes_of(launch.body, CopyWait))
        self.most_closed = 1 + max(waits, default=0)
        self.decided: set[Path] = set()
        self.around: list[_Around] = []
        self.meaning: dict[Var, Expr] = {}
        self.when: tuple[Expr, ...] = ()
        self.known: dict[tuple[Path, str], tuple[MemoryAccess, ...]] = {}

    def visit(self, stmt: Stmt, path: Path, state: State) -> State:
        """Return what is pending after `stmt`, given what is before it."""
        match stmt:
            case Seq(body=body):
                for k, item in enumerate(body):
                    state = self.visit(item, (*path, k), state)
                return state
            case If():
                return self._if(stmt, path, state)
            case OnThreads():
                return self._on_threads(stmt, path, state)
            case For() | Pipelined() | While():
                return self._loop(stmt, path, state)
            case Barrier():
                if is_full(stmt, self.running):
                    return synced(state)
                return _in_warps(state) if stmt.scope == "warp" else _signalled(state, stmt)
            case ClusterSync() | Evaluate(value=Call(function="cluster_sync")):
                return synced(state)
            case CopyCommit():
                return frozenset(_closed(p, self.most_closed) for p in state)
            case CopyWait(pending=pending):
                return frozenset(_waited(p, pending) for p in state)
            case Break():
                self.around[-1].broken |= state
                return NONE
            case Continue():
                around = self.around[-1]
                if around.cond is not None:
                    state = self._values(path, state, around.cond)
                around.continued |= state
                return NONE
        return self._simple(stmt, path, state)

    def _simple(self, stmt: Stmt, path: Path, state: State) -> State:
        if isinstance(stmt, Let) and is_plain(stmt.value):
            self.meaning[stmt.var] = stmt.value
            return state
        state = self._act(path, self._touches(stmt, path, self._executed_by(stmt)), state)
        if isinstance(stmt, (Evaluate, Let)) and effects_of(stmt) & Effect.BLOCK:
            return synced(state)
        if self.by_thread:
            state = _signalled(state, stmt)
        if ends_products(stmt):
            return state.union(map(_begun, self._late_reads(stmt, path)))
        return state

    def _late_reads(self, wait: Stmt, path: Path) -> tuple[MemoryAccess, ...]:
        """Return what products read until `wait` ends them, wherever in a tile that was."""
        key = (path, "late")
        if key not in self.known:
            tiles = dict.fromkeys(factors_in_memory(products_before(self.body, wait)))
            self.known[key] = tuple(
                MemoryAccess(tile, Mode.READ, (None,) * tile.rank, wait, ExecutingThreads.TILE)
                for tile in tiles
            )
        return self.known[key]

    def _executed_by(self, stmt: Stmt) -> ExecutingThreads:
        if isinstance(stmt, (Leaf, Parallel)):
            return ExecutingThreads.TILE
        if self.by_thread:
            return ExecutingThreads.THREAD
        private = isinstance(stmt, Store) and stmt.buffer.scope not in _WATCHED
        return (
            ExecutingThreads.FIRST
            if isinstance(stmt, (Store, Evaluate)) and not private
            else ExecutingThreads.ALL
        )

    def _touches(
        self, root: Node, path: Path, executed_by: ExecutingThreads, part: str = ""
    ) -> tuple[MemoryAccess, ...]:
        key = (path, part)
        if key not in self.known:
            found = memory_accesses(root, executed_by, self.meaning)
            by_thread = executed_by is ExecutingThreads.THREAD
            self.known[key] = self._watched(found, self.when if by_thread else ())
        return self.known[key]

    def _watched(
        self, found: Iterable[MemoryAccess], when: tuple[Expr, ...]
    ) -> tuple[MemoryAccess, ...]:
        """Return the accesses of memory that threads share, which happen `when` all this holds."""
        made = (t for t in found if t.storage.scope in _WATCHED)
        return tuple(replace(t, when=(*when, *t.when)) if when else t for t in made)

    def _act(self, path: Path, made: Iterable[MemoryAccess], state: State) -> State:
        made = tuple(made)
        if path in self.decided:
            state = synced(state)
        elif any(self.memory.conflict(p, t) for t in made for p in state):
            self.decided.add(path)
            state = synced(state)
        return state.union(_begun(t) for t in made if not is_signalled(t))

    def _values(self, path: Path, state: State, *values: Extent) -> State:
        """Return the state after every thread has evaluated `values`."""
        executed_by = ExecutingThreads.THREAD if self.by_thread else ExecutingThreads.ALL
        made = [
            t
            for k, value in enumerate(values)
            if isinstance(value, Expr)
            for t in self._touches(value, path, executed_by, f"value {k}")
        ]
        return self._act(path, made, state)

    def _if(self, stmt: If, path: Path, state: State) -> State:
        if self.uniform.varies(stmt.cond) and self.by_thread:
            return self._act(path, self._apart(stmt, path), state)
        state = self._values(path, state, stmt.cond)
        if _holds_copies_alone(stmt) and (
            path in self.decided
            or not self._is_quiet(lambda: self.visit(stmt.then, (*path, 0), state))
        ):
            self.decided.add(path)
            state = synced(state)
        after = NONE if stmt.otherwise is not None else state
        held, outside = inlined(stmt.cond, self.meaning), self.when
        for k, branch in enumerate((stmt.then, stmt.otherwise)):
            if branch is not None:
                if self.by_thread and isinstance(held, Expr) and is_plain(held):
                    self.when = (*outside, ~held if k else held)
                after |= self.visit(branch, (*path, k), state)
        self.when = outside
        return after

    def _is_quiet(self, follow: Callable[[], object]) -> bool:
        """Whether following a part of the program would meet no conflict; nothing is decided."""
        before = set(self.decided)
        follow()
        quiet = self.decided == before
        self.decided = before
        return quiet

    def _apart(self, stmt: Stmt, path: Path) -> tuple[MemoryAccess, ...]:
        """Return what a statement touches that holds no barrier, as threads run it apart."""
        if (path, "apart") not in self.known:
            found = concurrent_accesses(stmt, self.meaning)
            self.known[path, "apart"] = self._watched(found, self.when)
        return self.known[path, "apart"]

    def _on_threads(self, stmt: OnThreads, path: Path, state: State) -> State:
        """Follow what some threads do, with barriers among them; others hear of it afterwards."""
        if (path, "range") not in self.known:
            here = (stmt.first, stmt.count)
            found = self._touches(stmt.body, path, ExecutingThreads.TILE, "all")
            self.known[path, "range"] = tuple(replace(t, threads=here) for t in found)
        state = self._act(path, self.known[path, "range"], state)
        outside, self.running = self.running, stmt.count
        self.visit(stmt.body, (*path, 0), NONE)
        self.running = outside
        return state

    # Loops -----------------------------------------------------------------------------------

    def _loop(self, stmt: For | Pipelined | While, path: Path, state: State) -> State:
        if self.by_thread and self._runs_apart(stmt):
            return self._act(path, self._apart(stmt, path), state)
        loop = _loop_of(stmt, path)
        asked = (stmt.cond,) if isinstance(stmt, While) else (stmt.start, stmt.stop)
        state = self._values(path, state, *asked)
        inside = frozenset(p for p in state if p.in_flight is not None)
        while True:
            after, _ = self._round(stmt, loop, inside)
            grown = inside.union(self.memory.carried(p, loop) for p in after)
            if grown == inside:
                break
            inside = grown
        if not self._is_quiet(lambda: self._round(stmt, loop, state)):
            self.decided.add(path)
            state = synced(state)
        first = self._round(stmt, loop, state)
        later = self._round(stmt, loop, inside)
        after = frozenset[PendingAccess]().union(*first, *later)
        return state.union(self.memory.left(p, loop) for p in after)

    def _round(
        self, stmt: For | Pipelined | While, loop: Loop, state: State
    ) -> tuple[State, State]:
        """Return what is pending after an iteration, and where the loop was left in its middle."""
        cond = stmt.cond if isinstance(stmt, While) else None
        self.around.append(_Around(cond))
        after = self.visit(stmt.body, (*loop.path, 0), state)
        if cond is not None:
            after = self._values((*loop.path, AT_END), after, cond)
        around = self.around.pop()
        return after | around.continued, around.broken

    def _runs_apart(self, stmt: For | Pipelined | While) -> bool:
        """Whether threads run different numbers of iterations."""
        bounds = expressions_in(stmt)
        return any(map(self.uniform.varies, bounds)) or self.uniform.leaves_apart(stmt.body)


def _holds_copies_alone(stmt: If) -> bool:
    """Whether asynchronous copies stand behind a branch, and nothing else.

    The barrier they need is in front of the branch then, where it serves what follows, too.
    """
    return stmt.otherwise is None and all(
        (isinstance(s, Copy) and s.is_async) or isinstance(s, Let) for s in flattened(stmt.then)
    )


def _loop_of(stmt: For | Pipelined | While, path: Path) -> Loop:
    bound = frozenset(bound_variables(stmt))
    if isinstance(stmt, While):
        return Loop(path, None, 1, bound)
    return Loop(path, stmt.var, stmt.step, bound)


def is_signalled(touch: MemoryAccess) -> bool:
    """Whether a barrier in memory tells when the access is over: others wait for that."""
    return isinstance(touch.node, BulkCopy) and touch.node.barrier is not None


def is_full(barrier: Barrier, running: int | None = None) -> bool:
    """Whether all threads of the block, or the `running` ones, wait for all others."""
    if barrier.scope == "warp" or barrier.arrives_only:
        return False
    return barrier.count is None or static_value(barrier.count) == running


def synced(state: State) -> State:
    """Return what is still pending after a barrier: copies in flight."""
    return frozenset(p for p in state if p.in_flight is not None)


def _in_warps(state: State) -> State:
    """Return what is still pending after a barrier of the warp: others have not waited."""
    return frozenset(replace(p, in_warp=p.in_flight is None) for p in state)


def _signalled(state: State, stmt: Stmt) -> State:
    """Return the state after a statement that tells other threads, or waits to be told."""
    if sends_signal(stmt):
        state = frozenset(_told(p, Told.NOT, Told.SENT) for p in state)
    if awaits_signal(stmt):
        state = frozenset(_told(p, Told.SENT, Told.HEARD) for p in state)
    return state


def _told(pending: PendingAccess, before: Told, after: Told) -> PendingAccess:
    is_told = pending.told is before and pending.in_flight is None
    return replace(pending, told=after) if is_told else pending


def _begun(touch: MemoryAccess) -> PendingAccess:
    return PendingAccess(touch, in_flight=0 if touch.is_async else None)


def _closed(pending: PendingAccess, most: int) -> PendingAccess:
    count = pending.in_flight
    if count is None:
        return pending
    return replace(pending, in_flight=min(count + 1, most))


def _waited(pending: PendingAccess, still_open: int) -> PendingAccess:
    """Return the access after waiting until `still_open` groups are left."""
    count = pending.in_flight
    return pending if count is None or count <= still_open else replace(pending, in_flight=None)


# The program with its barriers -----------------------------------------------------------------


def _rebuilt(stmt: Stmt, path: Path, decided: set[Path]) -> Stmt:
    if not any(where[: len(path)] == path for where in decided):
        return stmt
    inner = _rebuilt_inside(stmt, path, decided)
    if path not in decided:
        return inner
    return Seq((Barrier(span=stmt.span), inner), span=stmt.span)


def _rebuilt_inside(stmt: Stmt, path: Path, decided: set[Path]) -> Stmt:
    positions = count()
    made = map_statements(stmt, lambda inner: _rebuilt(inner, (*path, next(positions)), decided))
    if isinstance(made, Seq):
        return replace(made, body=tuple(_flat(made.body)))
    if (*path, AT_END) in decided and isinstance(made, LOOPS):
        items = made.body.body if isinstance(made.body, Seq) else (made.body,)
        return replace(made, body=Seq((*items, Barrier(span=stmt.span)), span=stmt.span))
    return made


def _flat(items: Iterable[Stmt]) -> Iterable[Stmt]:
    """Put a barrier and its statement into the sequence around them."""
    for item in items:
        if isinstance(item, Seq) and item.body and isinstance(item.body[0], Barrier):
            yield from item.body
        else:
            yield item
