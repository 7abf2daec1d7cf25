"""Kernels that are lowered, with the protocol of their barriers followed through every order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from tile_core.errors import TileError
from tile_core.ir.node import walk
from tile_core.ir.printer import print_stmt
from tile_core.ir.stmt import Kernel, Launch
from tile_core.pass_manager.manager import PassManager
from tile_core.passes.swizzle_threadblocks import swizzle_threadblocks
from tile_core.simt.pass_contexts import KernelContext
from tile_core.simt.pipeline import LAUNCH, PLAN
from tile_core.testing.protocol.check import violation_of
from tile_core.testing.protocol.program import has_protocol, host_names
from tile_core.testing.protocol.scenarios import scenarios_of
from tile_core.testing.protocol.trace import Endless
from tile_core.testing.protocol.values import Unknown

FOLLOWED = ("kernels", "property", "protocol", "unit/tile_cuda", "unit/tile_hip")
"""Folders of tests whose kernels are followed: each that has a protocol, as it is lowered for what
they ask themselves. New modules need not ask for it. The kernels of `examples/` and of the contract
are among those of `protocol/`."""

NOT_FOLLOWED: dict[str, str] = {
    "unit/tile_cuda/test_expert_hopper.py": "single calls, whose programs lack the other side",
}
"""Modules there whose kernels are not followed, and why not."""


TESTS = Path(__file__).parents[1]


def is_followed(path: Path, name: str, turn: int | None) -> bool:
    """Tell whether a run follows the kernels of the test `name` in the file `path`.

    It does in half of the tests, with each turn in others, and always where protocols are tested.
    """
    if TESTS not in path.parents:
        return False
    module = path.relative_to(TESTS).as_posix()
    is_due = turn is None or (crc32(name.encode()) + turn) % 2 == 0
    folders = tuple(f"{each}/" for each in FOLLOWED if is_due or each == "protocol")
    return module.startswith(folders) and module not in NOT_FOLLOWED


@dataclass(slots=True)
class Followed:
    """Launches with barriers in memory, ranges of threads or clusters, and what was found.

    Parameters
    ----------
    launches
        How many were followed.
    runs
        With how many choices of values.
    wrong
        A report of each that goes wrong, or could not be followed.
    pairs
        Each launch as it was written, and as it runs.
    proved
        Launches that need not be followed again; those that were right are added.
    """

    launches: int = 0
    runs: int = 0
    wrong: list[str] = field(default_factory=list)
    pairs: list[tuple[Launch, Launch]] = field(default_factory=list)
    known: set[Any] = field(default_factory=set)
    kernel: Kernel | None = None
    met: int = 0
    beside: Any = None
    target: str = ""
    proved: set[Any] = field(default_factory=set)

    def begin(self, kernel: Kernel, context: KernelContext) -> None:
        """Remember a program as it is before it is dealt out to threads."""
        self.kernel = swizzle_threadblocks(kernel)  # which block is which is another question
        self.target = str(context.target)
        self.met = 0
        self.beside = context.is_asynchronous

    def go_on(self, made: Launch) -> None:
        """Follow what became of a launch, with its barriers."""
        if has_protocol(made) and self.kernel is not None:
            self.follow(self.met, made)
        self.met += 1  # launches are lowered in the order of the program

    def follow(self, number: int, after: Launch) -> None:
        """Follow a launch with all values, if no equal one has been."""
        assert self.kernel is not None
        before = [n for n in walk(self.kernel.body) if isinstance(n, Launch)][number]
        text = (print_stmt(before), print_stmt(after), str(self.kernel.params), self.target)
        if text in self.known or text in self.proved:
            return
        self.known.add(text)
        self.launches += 1
        self.pairs.append((before, after))
        host = host_names(self.kernel, before)
        scenarios = scenarios_of(before, host)
        if not scenarios:
            self.wrong.append(f"{self.kernel.name} ends with none of the values that were chosen")
        for scenario in scenarios:
            self.runs += 1
            try:
                found = violation_of(
                    before, after, scenario, host=host, is_asynchronous=self.beside
                )
            except (TileError, ArithmeticError, Endless, Unknown) as reason:
                self.wrong.append(f"{self.kernel.name} cannot be followed: {reason!r}")
                return
            if found is not None:
                self.wrong.append(f"{self.kernel.name} in block {scenario.block}: {found}")
                return
        self.proved.add(text)


run_passes = PassManager.run


@contextmanager
def following(proved: set[Any] | None = None) -> Iterator[Followed]:
    """Follow every launch that is lowered inside, but those in `proved`, which grows."""
    followed = Followed(proved=set() if proved is None else proved)

    def run(self: PassManager, phase: str, program: Any, context: Any) -> Any:
        if phase == PLAN:
            followed.begin(program, context)
        made = run_passes(self, phase, program, context)
        if phase == LAUNCH:
            followed.go_on(made)
        return made

    before = PassManager.run
    PassManager.run = run  # type: ignore[method-assign]
    try:
        yield followed
    finally:
        PassManager.run = before  # type: ignore[method-assign]
