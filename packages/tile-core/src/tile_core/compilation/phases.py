"""The phases of one compilation: how long each took, what it said, and how it failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tile_core.crash import guarded
from tile_core.ir.stmt import Kernel
from tile_core.logs import log
from tile_core.pass_manager.instrumentation import timed
from tile_core.remarks import Remark, collected_remarks
from tile_core.target import Target


class Phases:
    """What runs the phases of one compilation.

    `flags` are those of the user for the toolchain, `before` the milliseconds of earlier phases.
    """

    def __init__(
        self, target: Target, flags: Sequence[str] = (), before: Mapping[str, float] | None = None
    ) -> None:
        self.target, self.flags = target, flags
        self.milliseconds = dict(before or {})

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Take the time of the block."""
        start = time.perf_counter()
        with timed(name, "phase"):
            yield
        took = (time.perf_counter() - start) * 1e3
        self.milliseconds[name] = self.milliseconds.get(name, 0.0) + took

    @contextmanager
    def run(self, name: str, kernel: Kernel, source: Callable[[], str] = str) -> Iterator[None]:
        """Take the time of the block, and report what goes wrong in it: see `guarded`."""
        with guarded(kernel, self.target, name, self.flags, source), self.timed(name):
            yield


@contextmanager
def told_remarks() -> Iterator[list[Remark]]:
    """Collect what passes say in the block, and log it where nothing fails."""
    with collected_remarks() as found:
        yield found
    for said in found:
        log("remarks", said.__str__)
