"""What is told of guards: the user's line, the condition, how often it runs, and the way out."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.arith.affine import Linear
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Expr, Extent, Load
from tile_core.ir.names import Names
from tile_core.ir.node import Node, nodes_of, walk
from tile_core.ir.print_expr import print_expr, print_extent
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import For, Kernel, Launch, Let, Pipelined, Store
from tile_core.passes.guards.facts import ProvingFact, open_margin
from tile_core.passes.guards.registry import Often, RegisteredGuard
from tile_core.records import dataclass
from tile_launch.errors import Span


@dataclass(frozen=True, slots=True)
class KeptGuard:
    """A condition under which an access runs, because it may leave its tensor.

    Parameters
    ----------
    span
        The user's statement.
    tensor, axis
        What may be left, and along which axis.
    condition
        What is asked, in the names of the kernel: the last element that a tile touches.
    often, loops
        How often it is asked, and the names of the sequential loops around it.
    extent
        How far the axis goes, if all that matters is fixed.
    fact
        What would make it unnecessary: ``"m % 128 == 0"``; None if no fact about one size does.
    spelling
        How to promise that: ``'T.dynamic("m", multiple_of=128)'``.
    """

    span: Span | None
    tensor: str
    axis: int
    condition: str
    often: Often
    loops: tuple[str, ...] = ()
    extent: int | None = None
    fact: str | None = None
    spelling: str | None = None

    @property
    def in_steady_loop(self) -> bool:
        """Whether every iteration of a loop asks, not only the last tiles of a tensor."""
        return self.often is Often.EACH_ITERATION

    @property
    def how_often(self) -> str:
        """When it is asked, in words."""
        match self.often:
            case Often.EACH_ITERATION:
                return f"in every iteration of {self.loops[-1]}"
            case Often.ONCE:
                return "once for each access"
        return "only at the edge: the steady loop has none"

    def __str__(self) -> str:
        place = "" if self.span is None else f"{self.span.file}:{self.span.line}: "
        return place + self.told

    @property
    def told(self) -> str:
        """What is checked, how often, and what makes it unnecessary; without the place."""
        way_out = "no fact about one size removes it"
        if self.extent is not None:
            way_out = f"{self.extent} is fixed: tiles that divide it need none"
        if self.fact is not None:
            way_out = f"{self.fact} removes it: {self.spelling}"
        checked = f"{self.tensor}, axis {self.axis}: {self.condition}"
        return f"{checked}, {self.how_often}; {way_out}"


@dataclass(frozen=True, slots=True)
class GuardReport:
    """The guards of a kernel; ``str`` gives a line for each.

    Parameters
    ----------
    together
        What to write instead of each size, if it takes several facts to remove all guards that
        facts can remove.
    """

    guards: tuple[KeptGuard, ...]
    together: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[KeptGuard]:
        return iter(self.guards)

    def __len__(self) -> int:
        return len(self.guards)

    def __getitem__(self, position: int) -> KeptGuard:
        return self.guards[position]

    def __str__(self) -> str:
        lines = [*map(str, self.guards)]
        if self.together:
            lines.append(f"together: {', '.join(self.together)}")
        return "\n".join(lines) or "no guards: every access is proven inside"


def told_guard(
    guard: RegisteredGuard, kernel: Kernel, sizes: bool, fact: ProvingFact | None
) -> KeptGuard:
    """Return what people are told of a guard.

    The `kernel` is as the user wrote it; with `sizes`, some that are known at launch only matter.
    """
    return KeptGuard(
        guard.span,
        guard.tensor.name,
        guard.axis,
        condition_text(guard, kernel),
        guard.often,
        guard.loops,
        None if sizes else static_value(guard.extent),
        None if fact is None else fact.told,
        None if fact is None else fact.spelling,
    )


def condition_text(guard: RegisteredGuard, kernel: Kernel) -> str:
    """Return what `guard` asks, in the words of the kernel where it has one for it.

    Before   bx*128 + r*8 + tid // 16 < m      # T.copy(A[bx*128, k*32], tile)
    After    bx * 128 + 127 < m
    """
    extent = print_extent(guard.extent, Names())
    written = _as_written(guard, kernel)
    if len(written) == 1:
        first, last = written.pop()
        return f"{first} >= 0" if guard.from_below else f"{last} < {extent}"
    known = _named(kernel)
    env = guard.env
    worst = env.lowest_by(open_margin(guard, env), lambda atom: atom in known)
    if worst is None or not worst.is_whole:
        index = print_expr(guard.index, Names())
        return f"{index} >= 0" if guard.from_below else f"{index} < {extent}"
    if guard.from_below:
        return f"{_text(worst)} >= 0"
    whole = env.linear(guard.extent)
    return f"{_text(whole - worst.plus(1))} < {extent}"


def _as_written(guard: RegisteredGuard, kernel: Kernel) -> set[tuple[str, str]]:
    """Return the first and the last index of each access on the guard's line that it may be."""
    found: set[tuple[str, str]] = set()
    for stmt in walk(kernel.body):
        if stmt.span is None or stmt.span != guard.span:
            continue
        regions = [*nodes_of(stmt, Region)]
        for node in walk(stmt):
            match node:
                case Region(buffer=buffer, starts=starts):
                    if _is_meant(buffer, guard):
                        first, extent = as_expr(starts[guard.axis]), _extent(node, guard, regions)
                        found.add((_words(first), _words(first + (extent - 1))))
                case Load(buffer=buffer, indices=indices) | Store(buffer=buffer, indices=indices):
                    if _is_meant(buffer, guard):
                        found.add((_words(indices[guard.axis]),) * 2)
    return found


def _extent(region: Region, guard: RegisteredGuard, all_regions: list[Region]) -> Extent:
    """Return how far a region goes; one written as an element goes as far as the other operand."""
    if not region.is_element:
        return region.extents[guard.axis]
    for other in all_regions:
        axis = guard.axis - region.buffer.rank + other.buffer.rank
        if other is not region and not other.is_element and axis >= 0:
            return other.extents[axis]
    return 1


def _is_meant(buffer: Buffer, guard: RegisteredGuard) -> bool:
    return buffer.name == guard.tensor.name and buffer.rank == guard.tensor.rank


def _words(expr: Expr) -> str:
    return print_expr(expr, Names())


def _named(kernel: Kernel) -> set[Node]:
    """Return the sizes, blocks and sequential loops that the kernel names."""
    found: set[Node] = {*symbols_of(kernel), *kernel.params}
    for node in walk(kernel.body):
        match node:
            case Launch(block_vars=block_vars):
                found |= set(block_vars)
            case For(var=var) | Pipelined(var=var) | Let(var=var):
                found.add(var)
    return found


def _text(form: Linear) -> str:
    """Return a sum as text, its constant last."""
    parts: list[str] = []
    for atom, factor in form.terms:
        name = print_expr(atom.expr, Names(), 11)
        size = abs(int(factor))
        term = name if size == 1 else f"{name} * {size}"
        sign = "-" if factor < 0 else "+"
        parts.append(f" {sign} {term}" if parts else (f"-{term}" if factor < 0 else term))
    constant = int(form.constant)
    if constant or not parts:
        sign = "-" if constant < 0 else "+"
        parts.append(f" {sign} {abs(constant)}" if parts else str(constant))
    return "".join(parts)
