"""Barriers of the whole grid as the border between two launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

from tile_core.analysis.first_access import FirstAccess, first_of
from tile_core.errors import Note, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import const
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, contains, nodes_of, rewrite, substitute, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    Kernel,
    Launch,
    Let,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    flattened,
    is_statement,
)
from tile_core.ir.visitor import map_launches
from tile_core.passes.grid_state import GridState, is_repeatable
from tile_core.passes.kernel_fission import (
    BranchChoice,
    FissionStep,
    HostLoop,
    Phase,
    PhaseBuilder,
    holds_barrier,
    spans_grid,
    statements,
)
from tile_core.records import dataclass, replace

_MOST_ITERATIONS = 64
"""Iterations of a loop around a barrier of the grid that become launches of their own."""


def split_grid_barriers(
    kernel: Kernel, around: Callable[[Launch], Sequence[Stmt]] | None = None
) -> Kernel:
    """Return `kernel` with a launch in place of each part of a body between grid barriers.

    Before   launch (4): A[bx] = bx;  barrier(scope="grid");  B[bx] = A[3 - bx] + s[0]
    After    alloc s_kept
             launch (4): A[bx] = bx;  s_kept[bx, 0] = …
             launch (4): B[bx] = A[3 - bx] + s_kept[bx, 0]

    Names of pure values are repeated in each launch; tiles, variables and other values that a
    block or a thread needs behind a barrier are kept in global memory. Launches wait for each
    other whatever fits on the machine at a time. A short loop of so many iterations as are known
    becomes launches too; other loops and branches become those of the host.

    Before   launch (4): while x[0] > 0: { x[0] -= 1;  barrier(scope="grid") }
    After    launch (4): goes_on_kept[bx] = x_kept[bx, 0] > 0
             while goes_on_kept[0] != 0:
               launch (4): assert goes_on_kept[bx] == goes_on_kept[0];  x_kept[bx, 0] -= 1
                           goes_on_kept[bx] = x_kept[bx, 0] > 0
             launch (4): assert goes_on_kept[bx] == goes_on_kept[0]

    Where the host has no loops and branches, launches with barriers in them become what `around`
    gives. Returns the same object when no barrier spans the grid.

    Raises
    ------
    UnsupportedOnTarget
        If only some threads of a block reach a barrier, or if a block would have to remember
        something that has no place in memory, such as a barrier.
    """
    of_host = {n.var: None for n in flattened(kernel.body) if isinstance(n, Let)}
    scalars = [p for p in kernel.params if isinstance(p, Var)]
    known = {v: None for v in (*scalars, *symbols_of(kernel))} | of_host

    def split(launch: Launch) -> Stmt:
        if not holds_barrier(launch.body):
            return launch
        unrolled = [*_unrolled(flattened(launch.body))]
        if around is not None and any(holds_barrier(s) and not spans_grid(s) for s in unrolled):
            return Seq(tuple(around(launch)))
        opened = replace(launch, body=Seq(tuple(unrolled)))
        return Seq(tuple(_launches(opened, dict(known))))

    return map_launches(kernel, split)


def _launches(launch: Launch, known: dict[Var, None]) -> list[Stmt]:
    state = GridState(launch)
    steps = PhaseBuilder(state, known).steps(flattened(launch.body)) or (Phase(()),)
    whole = statements(steps)
    state.launch = replace(launch, body=Seq(tuple(whole)))
    shared = [n for item in whole for n in walk(item) if _is_of_all(n)]
    bodies = _remembering(state, steps)

    def made(steps: Sequence[FissionStep]) -> tuple[Stmt, ...]:
        return tuple(one(step) for step in steps)

    def one(step: FissionStep) -> Stmt:
        match step:
            case Phase():
                return _renamed(replace(launch, body=Seq(tuple(bodies[step]))))
            case HostLoop(loop=loop, steps=inner):
                return replace(loop, body=Seq(made(inner)))
            case BranchChoice(branch=branch, then=then, otherwise=otherwise):
                return replace(branch, then=Seq(made(then)), otherwise=Seq(made(otherwise)))

    launches = made(steps)
    return [*shared, *state.allocations(), *launches]


def _unrolled(items: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield statements with the iterations of loops around a barrier one after the other."""
    for item in items:
        bounds = _iterations(item)
        if not isinstance(item, For) or bounds is None:
            yield item
            continue
        for number in bounds:
            fresh: dict[Node, Node] = {item.var: const(number, item.var.dtype)}
            for node in walk(item.body):
                fresh |= {made: replace(made) for made in _made_by(node)}
            yield from _unrolled(flattened(_anew(substitute(item.body, fresh))))


def _made_by(node: Node) -> tuple[Buffer | Var, ...]:
    """Return the names and tiles that a statement brings about."""
    match node:
        case Let(var=var) | For(var=var) | Pipelined(var=var):
            return (var,)
        case Parallel(vars=several):
            return several
        case Alloc(buffer=buffer):
            return (buffer,)
    return ()


def _iterations(item: Stmt) -> range | None:
    """Return the indices of a loop around a barrier, if there are few and all are known."""
    if not isinstance(item, For) or not holds_barrier(item.body):
        return None
    bounds = [static_value(e) for e in (item.start, item.stop, item.step)]
    if None in bounds or contains(item.body, Break, Continue):
        return None
    iterations = range(*(int(b) for b in bounds if b is not None))
    return iterations if len(iterations) <= _MOST_ITERATIONS else None


@dataclass(frozen=True, slots=True, eq=False)
class _PhaseContext:
    """A phase among the others.

    It may use names of statements `before`, in order; all that may run behind it is `after`, where
    rounds to come are a loop; it stands in the `loops`.
    """

    phase: Phase
    before: tuple[Stmt, ...]
    after: tuple[Stmt, ...]
    loops: tuple[HostLoop, ...]

    @property
    def items(self) -> tuple[Stmt, ...]:
        """The statements of the phase."""
        return self.phase.items


def _places(
    steps: Sequence[FissionStep],
    before: tuple[Stmt, ...] = (),
    after: tuple[Stmt, ...] = (),
    loops: tuple[HostLoop, ...] = (),
) -> Iterator[_PhaseContext]:
    """Yield the places of phases in textual order."""
    for position, step in enumerate(steps):
        rest = (*statements(steps[position + 1 :]), *after)
        match step:
            case Phase(items=items):
                yield _PhaseContext(step, before, rest, loops)
                before = (*before, *items)
            case HostLoop(steps=inner):
                yield from _places(inner, before, (*statements([step]), *rest), (*loops, step))
            case BranchChoice(then=then, otherwise=otherwise):
                yield from _places(then, before, rest, loops)
                yield from _places(otherwise, before, rest, loops)


def _remembering(state: GridState, steps: Sequence[FissionStep]) -> dict[Phase, list[Stmt]]:
    """Return the bodies of launches, each with what it needs of those before."""
    places = [*_places(steps)]
    homes = {id(item): place for place in places for item in place.items}
    kept: dict[Buffer | Var, Stmt] = {}
    for number, place in enumerate(places):
        for thing, maker in _made_in(place.before).items():
            user = next((item for item in place.items if _mentions(item, thing)), None)
            if user is None or not _is_needed(place, thing):
                continue
            again = any(loop not in homes[id(maker)].loops for loop in place.loops)
            if not _may_hold(places if again else places[:number], thing):
                continue
            if not state.can_keep(maker):
                raise _refusal(thing.name, user, maker)
            kept[thing] = maker
    moved = {t: None for t in kept if isinstance(t, Buffer) and state.is_by_element(t)}
    saved = [t for t in kept if t not in moved]
    return {p.phase: state.moved(_with_state(state, p, kept, saved), [*moved]) for p in places}


def _with_state(
    state: GridState,
    place: _PhaseContext,
    kept: Mapping[Buffer | Var, Stmt],
    saved: Sequence[Buffer | Var],
) -> list[Stmt]:
    """Return the statements of a phase between what brings tiles back and what keeps them."""
    known = _made_in(place.before)
    ahead = [
        item
        for item in place.before
        if is_repeatable(item) and not (isinstance(item, Let) and item.var in known)
    ]
    ahead += [item for item in place.before if _is_own(item) and _uses(place.items, item.buffer)]
    ahead += [
        state.restored(t)
        for t in saved
        if t in known and _uses(place.items, t) and _is_needed(place, t)
    ]
    behind = [
        state.saved(t)
        for t in saved
        if _uses(place.after, t)
        and (kept[t] in place.items if isinstance(t, Var) else _writes(place.items, t))
    ]
    own = [item for item in place.items if not _is_of_all(item)]
    return [*(_anew(item) for item in ahead), *own, *behind]


def _made_in(items: Sequence[Stmt]) -> dict[Buffer | Var, Stmt]:
    """Return what statements make that cannot simply be made again, with who makes it."""
    found: dict[Buffer | Var, Stmt] = {}
    for item in items:
        if _is_own(item):
            found[item.buffer] = item
        elif isinstance(item, Let) and not (
            is_repeatable(item) and found.keys().isdisjoint(walk(item.value))
        ):
            found[item.var] = item
    return found


def _is_needed(place: _PhaseContext, thing: Buffer | Var) -> bool:
    """Whether a phase, or one after it, may need what was there before."""
    if isinstance(thing, Var):
        return True
    return first_of([*place.items, *place.after], thing) is FirstAccess.READ


def _is_own(item: Node) -> TypeGuard[Alloc]:
    """Whether a statement makes a tile of the block, or a variable of its threads."""
    return isinstance(item, Alloc) and not item.buffer.scope.is_global


def _is_of_all(item: Node) -> TypeGuard[Alloc]:
    """Whether a statement makes memory for the whole grid: that is made once, in front."""
    return isinstance(item, Alloc) and item.buffer.scope.is_global


def _anew(stmt: Stmt) -> Stmt:
    """Return the same statement for another place in the program."""
    return rewrite(stmt, lambda node: replace(node) if is_statement(node) else node)


def _mentions(item: Node, thing: Buffer | Var) -> bool:
    return any(n is thing or (isinstance(n, Buffer) and n.storage is thing) for n in walk(item))


def _uses(part: Sequence[Stmt], thing: Buffer | Var) -> bool:
    return any(_mentions(item, thing) for item in part)


def _may_hold(places: Sequence[_PhaseContext], thing: Buffer | Var) -> bool:
    """Whether something was put there before."""
    return isinstance(thing, Var) or any(_writes(place.items, thing) for place in places)


def _writes(part: Sequence[Stmt], tile: Buffer) -> bool:
    return any(
        a.buffer.storage is tile and a.mode is not Mode.READ
        for item in part
        for a in accesses(item)
    )


def _refusal(name: str, user: Node, maker: Node) -> UnsupportedOnTarget:
    return UnsupportedOnTarget(
        f"{name!r} is kept across a barrier of the whole grid, and blocks that run one after "
        "another cannot do that",
        span=user.span,
        notes=(Note("it is made here", maker.span),) if maker.span else (),
        hint="put the barrier at the top level of the kernel, and what must outlive it into "
        "T.alloc_global or a tensor",
    )


def _renamed(launch: Launch) -> Launch:
    """Return the launch with indices and names of its own."""
    bound: list[Var] = [*launch.block_vars, *launch.thread_vars]
    bound += [n.var for n in nodes_of(launch.body, Let)]
    fresh: dict[Node, Node] = {v: replace(v) for v in bound}
    fresh |= {n.buffer: replace(n.buffer) for n in walk(launch.body) if _is_own(n)}
    return substitute(launch, fresh)
