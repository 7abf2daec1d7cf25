"""The ways to lower a kernel that are tried, with fewer stages, until shared memory suffices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_core.errors import OutOfScratch
from tile_core.ir.buffer import Scope
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Kernel, Pipelined
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.passes.cooperative_grids import is_cooperative
from tile_core.records import dataclass, replace
from tile_core.remarks import remark, warn
from tile_core.simt.pass_contexts import KernelContext

NO_ROOM = (
    "results are stored from registers: what threads exchange does not fit into shared memory "
    "beside the rows"
)


Way = tuple[int | None, bool, bool]
"""At most how many stages, whether there is room for rows, whether exchanges come in batches."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A kernel with what is still allowed, and what was given up for it.

    `asked` is the kernel as it was to be lowered, `kernel` the same with perhaps fewer stages:
    at most `stages`, if not None. No pass of `context` has run. `has_room` tells whether shared
    memory may hold the rows of results on their way to tensors.
    """

    asked: Kernel
    kernel: Kernel
    context: KernelContext
    stages: int | None
    has_room: bool

    @property
    def way(self) -> Way:
        """What tells it from the others."""
        return self.stages, self.has_room, self.context.choices.batches_exchanges

    def alike(self, refusal: OutOfScratch) -> Iterator[Way]:
        """Yield the attempts that are refused as this one was.

        Without room for rows the program is the same if it had none; batches change nothing about
        its tiles.
        """
        has_rows = "stage_epilogues" in self.context.changed
        for has_room in {self.has_room, self.has_room and has_rows}:
            for is_batched in {self.way[2], self.way[2] or refusal.is_by_tiles}:
                yield self.stages, has_room, is_batched

    def remark_on_stores(self) -> None:
        """Say that results do not take the way through shared memory, if they might have."""
        if not self.has_room:
            remark("missed", "stage_epilogues", NO_ROOM)

    def warn_of_depth(self) -> None:
        """Warn, at each loop that asked for more, of the stages that it has."""
        if self.stages is not None:
            warn_of_reduced_depth(self.asked, self.stages, self.context.machine)


def attempts(kernel: Kernel, context: KernelContext) -> Iterator[Attempt]:
    """Yield what may fit, best first.

    Loops give up stages before threads exchange what they exchange in batches; at each depth
    results may be stored from registers.
    """
    for is_batched in (context.choices.batches_exchanges, True):
        choices = replace(context.choices, batches_exchanges=is_batched)
        for stages, shallower in depths(kernel, context.machine):
            for through_shared in dict.fromkeys((choices.stages_stores, False)):
                way = KernelContext(
                    target=context.target, machine=context.machine, rules=context.rules,
                    choices=replace(choices, stages_stores=through_shared),
                    has_engines=not is_cooperative(shallower),
                )  # fmt: skip
                has_room = through_shared or not choices.stages_stores
                yield Attempt(kernel, shallower, way, stages, has_room)


def depths(kernel: Kernel, machine: SimtMachine) -> Iterator[tuple[int | None, Kernel]]:
    """Yield what may fit, best first, with the number of stages where it is less than asked for."""
    hopeful = without_hopeless_depths(kernel, machine)
    yield None, hopeful
    yield from with_reduced_depth(hopeful)


def without_hopeless_depths(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with no more stages than would fit if a loop's smallest tile were all.

    Each further attempt takes longer than the one after it: hopeless ones are spared.
    """

    def rule(node: Node) -> Node:
        if not isinstance(node, Pipelined):
            return node
        tiles = {n.dst.buffer.storage for n in nodes_of(node.body, Copy)}
        sizes = [t.nbytes for t in tiles if t.scope is Scope.SHARED and t.nbytes]
        return _limited(1 + machine.shared_bytes // min(sizes), node) if sizes else node

    return rewrite(kernel, rule, (Pipelined,))


def with_reduced_depth(kernel: Kernel) -> Iterator[tuple[int, Kernel]]:
    """Yield `kernel` with one stage less at a time, down to loops that overlap nothing.

    Before   pipelined k with 4 stages: copy, gemm
    After    pipelined k with 3 stages: copy, gemm;  then with 2;  then with 1

    Schedules that the user wrote down stay: they say how many iterations are in flight.
    """
    most = max((loop.num_stages for loop in _adjustable(kernel)), default=0)
    for stages in range(most - 1, 0, -1):
        yield stages, rewrite(kernel, partial(_limited, stages))


def warn_of_reduced_depth(kernel: Kernel, stages: int, machine: SimtMachine) -> None:
    """Warn, at each loop of `kernel` that asked for more, that `stages` are what fits."""
    for loop in _adjustable(kernel):
        if loop.num_stages > stages:
            warn(
                f"{stages} of {loop.num_stages} stages fit into the {machine.shared_bytes} bytes "
                f"of shared memory that {machine.name} gives a block",
                loop.span,
                pass_name="with_reduced_depth",
            )


def _adjustable(kernel: Kernel) -> Iterator[Pipelined]:
    return (n for n in nodes_of(kernel, Pipelined) if not n.order)


def _limited(stages: int, node: Node) -> Node:
    if isinstance(node, Pipelined) and not node.order and node.num_stages > stages:
        return replace(node, num_stages=stages)
    return node
