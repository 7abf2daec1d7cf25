"""What passes of machines of many threads may ask for, beside the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.machine import SimtMachine
from tile_core.ops.rule import Rule, select
from tile_core.pass_manager.manager import PassContext
from tile_core.passes.pipelines.counted_copies import COUNTED
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.lowering_options import BY_DEFAULT, Choices
from tile_core.target import Target


@dataclass(slots=True, kw_only=True)
class KernelContext(PassContext):
    """Of passes on a whole kernel, up to its layouts.

    `has_engines` tells whether the copy engine may be used: what threads have written before a
    barrier of the grid, they would not see behind it. `is_split` tells whether loops have
    copies of the tiles that were in their way.
    """

    target: Target
    machine: SimtMachine
    rules: Sequence[Rule[Any]]
    choices: Choices = BY_DEFAULT
    has_engines: bool = True
    is_split: bool = False

    @property
    def features(self) -> frozenset[str]:
        """What the machine has."""
        return self.machine.features

    @property
    def shared_bytes(self) -> int:
        """Of a block."""
        return self.machine.shared_bytes

    @property
    def registers(self) -> int | None:
        """Of a multiprocessor, if that is known."""
        limits = self.machine.multiprocessor
        return None if limits is None else limits.registers

    @property
    def is_asynchronous(self) -> Callable[[Any], bool]:
        """Tells whether an MMA is asynchronous to the threads that issue it."""
        return lambda op: select(op, self.target, self.rules).is_asynchronous

    @property
    def specialises(self) -> bool:
        """Whether copies may get threads of their own."""
        return self.choices.specialises and self.has_engines

    @property
    def is_specialised(self) -> bool:
        """Whether copies have threads of their own."""
        return "specialise_warps" in self.changed

    @property
    def folds_pipelines(self) -> bool:
        """Whether the last iterations of pipelines may be iterations of their steady state."""
        return self.choices.folds_pipelines

    @property
    def stages_stores(self) -> bool:
        """Whether results may take the way through shared memory."""
        return self.choices.stages_stores


@dataclass(slots=True, kw_only=True)
class LaunchContext(PassContext):
    """Of passes on one launch, its operators still whole.

    Flat buffers have their byte offsets in `shared`. `orders_threads` tells whether explicit
    programs of threads get the barriers that they need.
    """

    places: Any
    shared: Mapping[Buffer, int]
    orders_threads: bool
    warp_size: int


@dataclass(slots=True, kw_only=True)
class ThreadContext(PassContext):
    """Of passes on the program of one thread.

    `lowering` is the context of operators' rules, at the top of the launch.
    """

    lowering: SimtContext

    @property
    def machine(self) -> SimtMachine:
        """That runs the program."""
        return self.lowering.machine

    @property
    def warp_size(self) -> int:
        """Threads of a warp."""
        return self.machine.warp_size

    @property
    def launch(self) -> Any:
        """With barriers, its operators still whole."""
        return self.lowering.launch

    @property
    def env(self) -> ConstraintSet:
        """What is known about integers at the top of the program."""
        return self.lowering.env

    @property
    def thread(self) -> Var:
        """The number of the thread in its block."""
        return self.lowering.thread

    @property
    def box_variables(self) -> frozenset[Var]:
        """The three indices of a thread."""
        return frozenset(self.lowering.launch.thread_vars)

    @property
    def thread_variables(self) -> frozenset[Var]:
        """What tells the threads of a block apart."""
        return self.box_variables | {self.thread}

    @property
    def fresh_name(self) -> Callable[[str], str]:
        """Makes names that nobody has taken."""
        return self.lowering.names.fresh

    @property
    def warp_name(self) -> str:
        """For the number of a warp."""
        return self.fresh_name("warp")

    @property
    def counts_copies(self) -> bool:
        """Whether waves wait for numbers of copies."""
        return self.machine.has(COUNTED)

    @property
    def has_tile_operators(self) -> bool:
        """Whether the compiler, not the program, says what each thread does."""
        return not self.lowering.by_thread
