"""The ways to lower a kernel that are tried, until what it needs fits into shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.ir.stmt import Kernel
from tile_core.passes.cooperative_grids import is_cooperative
from tile_core.records import dataclass, replace
from tile_core.remarks import remark
from tile_core.simt.lowering_options import Choices
from tile_core.simt.pass_contexts import KernelContext
from tile_core.simt.pipeline_depth import depths, warn_of_reduced_depth

NO_ROOM = (
    "results are stored from registers: what threads exchange does not fit into shared memory "
    "beside the rows"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A kernel with what is still allowed, and what was given up for it.

    Parameters
    ----------
    asked
        The kernel as it was to be lowered.
    kernel
        The same, perhaps with fewer stages.
    context
        Of its passes, none of which has run.
    stages
        How many stages loops have at most; None: as many as they ask for.
    has_room
        Whether shared memory may hold the rows of results on their way to tensors.
    """

    asked: Kernel
    kernel: Kernel
    context: KernelContext
    stages: int | None
    has_room: bool

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
                way = _context(shallower, context, replace(choices, stages_stores=through_shared))
                has_room = through_shared or not choices.stages_stores
                yield Attempt(kernel, shallower, way, stages, has_room)


def _context(kernel: Kernel, like: KernelContext, choices: Choices) -> KernelContext:
    return KernelContext(
        target=like.target, machine=like.machine, rules=like.rules, choices=choices,
        has_engines=not is_cooperative(kernel),
    )  # fmt: skip
