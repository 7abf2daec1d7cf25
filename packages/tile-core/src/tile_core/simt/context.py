"""What the rules of machines of many threads may look at while they lower an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tile_core.arith.constraints import ConstraintSet
from tile_core.dtypes import dtype_of
from tile_core.errors import Span, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr
from tile_core.ir.cache_hints import FEATURE, hint
from tile_core.ir.expr import AddressOf, Expr, Extent, Load, Var
from tile_core.ir.stmt import Launch, Stmt
from tile_core.layout import row_major
from tile_core.machine import SimtMachine
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass, replace
from tile_core.simt.buffer_addresses import BufferAddresses
from tile_core.simt.subbyte_store_pairing import NO_RUNS, Runs
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.layout import Fragment, Layout
    from tile_core.ops.rule import Rule
    from tile_core.simt.program import TensorMap


@dataclass(slots=True)
class Names:
    """Gives out names that the user has not taken; printers tell equal ones apart."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, name_hint: str) -> str:
        """Return `name_hint`, numbered if it is taken."""
        name, count = name_hint, 0
        while name in self.taken:
            count += 1
            name = f"{name_hint}_{count}"
        return name


@dataclass(frozen=True, slots=True)
class SimtContext:
    """The state of lowering at one place of one launch.

    Parameters
    ----------
    thread
        Index of the thread in its block, from 0 to ``threads - 1``; a variable.
    threads
        How many threads run what is being lowered.
    env
        What is known about integers at this place.
    places
        Where elements lie; `load` and `address` ask it.
    names
        Fresh names.
    workspaces
        Shared tiles that lowering itself asked for, each placed by the memory plan.
    lower
        Lowers any statement in a given context: what `lower_stmt` calls.
    guarded
        Whether accesses of tensors that may be outside are skipped.
    by_thread
        The program names its threads: what it says outside of tiles, every thread does.
    ranges
        First and count of the threads that were left to themselves, and their workspaces.
    barriers
        What barriers for parts of the threads are for.
    first
        Number in the block of the thread whose `thread` is 0.
    maps
        Tensor maps that the host passes, by the variable that stands for each.
    safe_values
        What loads outside of a tensor give, where it is not zero.
    eviction
        What the program asks of the cache with the tensors that are accessed.
    runs
        Which neighbours the thread runs here, of elements that share a byte.
    exchange_bytes
        What shared memory has left for one workspace; None as long as batches are not tried.
    """

    target: Target
    machine: SimtMachine
    launch: Launch
    thread: Var
    threads: int
    env: ConstraintSet
    places: BufferAddresses
    names: Names
    lower: Callable[[Stmt, SimtContext], Stmt]
    guarded: bool = True
    by_thread: bool = False
    workspaces: list[Buffer] = field(default_factory=list)
    ranges: dict[tuple[int, int], list[Buffer]] = field(default_factory=dict)
    barriers: dict[tuple[object, ...], int] = field(default_factory=dict)
    first: int = 0
    maps: dict[Var, TensorMap] = field(default_factory=dict)
    safe_values: dict[Buffer, Expr] = field(default_factory=dict)
    eviction: str | None = None
    runs: Runs = NO_RUNS
    exchange_bytes: int | None = None

    @property
    def lane(self) -> Expr:
        """Index of the thread in its warp."""
        return self.thread % self.machine.warp_size

    @property
    def warp(self) -> Expr:
        """Index of the thread's warp in the block."""
        return self.thread // self.machine.warp_size

    def knowing(self, env: ConstraintSet) -> SimtContext:
        """Return the context at a place where more is known."""
        return replace(self, env=env)

    def assuming(self, condition: Expr, *, holds: bool = True) -> SimtContext:
        """Return the context at a place where `condition` holds, or does not."""
        return self.knowing(self.env.assuming(condition, holds=holds))

    def cache_hint(self, buffer: Buffer) -> tuple[int, ...]:
        """Return the arguments of an access of `buffer` that say the cache hint."""
        can = buffer.storage.scope.is_global and self.machine.has(FEATURE)
        return hint(self.eviction) if can else ()

    def layout_of(self, buffer: Buffer) -> Layout:
        """Return the layout of a shared tile, in the shape of `buffer`."""
        return self.places.layout(buffer)

    def fragment_of(self, buffer: Buffer) -> Fragment:
        """Return which thread holds each element of a fragment, and in which register."""
        return self.places.fragment(buffer)

    def rule_of(self, op: TileOperator) -> Rule[Any]:
        """Return the one rule chosen for `op`."""
        rule: Rule[Any] = self.places.layouts.rule_of(op)
        return rule

    def lower_stmt(self, stmt: Stmt) -> Stmt:
        """Return any tile IR statement as a program of one thread."""
        return self.lower(stmt, self)

    def fresh_var(self, name_hint: str, dtype: str = "int32") -> Var:
        """Return a new scalar, such as a loop index."""
        return Var(self.names.fresh(name_hint), dtype_of(dtype))

    def registers(self, name_hint: str, count: int, dtype: str) -> Buffer:
        """Return a new flat array in the registers of each thread; `Alloc` it where it is used."""
        return Buffer(self.names.fresh(name_hint), (count,), dtype_of(dtype), Scope.LOCAL)

    def workspace(self, name_hint: str, count: int, dtype: str) -> Buffer:
        """Return a new flat shared array for the use of one operator; it needs no `Alloc`.

        Its contents are the operator's own between two barriers that the operator places. All
        workspaces begin at the same byte, so an operator that needs two uses parts of one.
        """
        made = Buffer(self.names.fresh(name_hint), (count,), dtype_of(dtype), Scope.SHARED)
        self.workspaces.append(made)
        return made

    def workspaces_of(self, first: int, count: int) -> list[Buffer]:
        """Return the workspaces of a range of threads: others run beside it."""
        return self.ranges.setdefault((first, count), [])

    def named_barrier(self, use: tuple[object, ...], span: Span | None = None) -> int:
        """Return the number of the block's barrier for one `use`, the same each time.

        Numbers are given from the highest down: those that a program names itself stay free.

        Raises
        ------
        UnsupportedOnTarget
            If there are more uses than barriers.
        """
        there = self.machine.barriers
        number = there - 1 - self.barriers.setdefault(use, len(self.barriers))
        if number < 1:
            few = f"more than the {there - 1} barriers" if there > 1 else "barriers"
            none = "" if there > 1 else f", and {self.machine.name} has none"
            raise UnsupportedOnTarget(
                f"the block needs {few} for parts of its threads{none}",
                span=span,
                hint="let fewer ranges of threads wait for each other"
                if there > 1
                else "let all threads of the block wait for each other",
            )
        return number

    def scratch_tile(
        self, name_hint: str, shape: tuple[int, ...], dtype: str, layout: Layout | None = None
    ) -> Buffer:
        """Return a new shared tile for the use of one operator, stored by rows or as `layout`.

        As `workspace`, but addressed by coordinates like the tiles of the kernel.
        """
        made = Buffer(self.names.fresh(name_hint), shape, dtype_of(dtype), Scope.SHARED)
        self.places.layouts.known[made] = layout or row_major(shape)
        self.workspaces.append(self.places.flat(made))
        return made

    def tensor_map(self, wanted: TensorMap) -> Var:
        """Return the variable that stands for a tensor map; equal maps share one."""
        for var, known in self.maps.items():
            if known.tensor is wanted.tensor and known.says(wanted):
                return var
        var = Var(self.names.fresh(wanted.name), dtype_of("handle"))
        self.maps[var] = replace(wanted, name=var.name)
        return var

    def load(self, buffer: Buffer, *indices: Extent) -> Load:
        """Return the element at `indices` of a tile IR buffer, read physically and unguarded."""
        return Load(self.places.flat(buffer), (self.places.offset(buffer, indices),))

    def address(self, buffer: Buffer, *indices: Extent, access: str = "rw") -> AddressOf:
        """Return the physical address of an element of a tile IR buffer; not guarded."""
        return AddressOf(
            self.places.flat(buffer), (as_expr(self.places.offset(buffer, indices)),), access
        )
