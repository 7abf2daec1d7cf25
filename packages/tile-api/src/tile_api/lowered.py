"""Kernels that were lowered but not compiled: for reading what would run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.errors import FrontendValueError
from tile_core.ir.node import Node
from tile_core.records import Uncopied, dataclass

if TYPE_CHECKING:
    from tile_api.disk_cache.entry_codec import CachedBuild
    from tile_api.pickling import PickledKernel
    from tile_api.remark_report import RemarkReport
    from tile_core.compilation.results import Lowered
    from tile_core.passes.guards.report import GuardReport
    from tile_core.passes.layout_report import LayoutReport

STAGES = ("tile", "planned", "pipelined", "lowered", "source")
"""Stages of compilation that can be shown: `tile_core.compilation.results.STAGES`."""


def text_at(lowered: Lowered | CachedBuild, stage: str) -> str:
    """Return a kernel at one of `STAGES` as text."""
    if stage not in STAGES:
        raise FrontendValueError(
            f"there is no stage {stage!r}", hint=f"use one of {', '.join(STAGES)}"
        )
    return lowered.text(stage)


@dataclass(frozen=True, slots=True)
class LoweredKernel(Uncopied):
    """A kernel on its way to a machine that need not be here."""

    lowered: Lowered

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the kernel as it travels to other processes, where it is lowered again."""
        from tile_api.pickling import packed_lowered

        return lowered_again, (packed_lowered(self.lowered),)

    def ir(self, stage: str = "tile") -> str:
        """Return the program at a stage of compilation as text: see `CompiledKernel.ir`.

        Raises
        ------
        FrontendValueError
            If there is no such stage.
        """
        return text_at(self.lowered, stage)

    def source(self, tier: str = "expert") -> str:
        """Return the kernel as a program of a tier of the language: see `CompiledKernel.source`."""
        from tile_api.tiers import source_of

        return source_of(self.lowered, tier)

    @property
    def kernel_source(self) -> str:
        """The source for the target: LLVM IR on the CPU, C++ on GPUs."""
        return self.lowered.text("source")

    @property
    def host_source(self) -> str:
        """The text of the program around the kernel: thread-level code."""
        return self.lowered.text("lowered")

    def layouts(self) -> LayoutReport:
        """Return how each tile is stored in scratch, and who asked for that."""
        return self.lowered.layouts()

    def guards(self) -> GuardReport:
        """Return the accesses that run under a condition: see `CompiledKernel.guards`."""
        from tile_api.remark_report import guards_of

        lowered = self.lowered
        return guards_of(lowered.kernel, lowered.target, lowered.options, lowered.host)

    def remarks(self, kind: str | None = None, pass_name: str | None = None) -> RemarkReport:
        """Return what the compiler said about its choices: see `CompiledKernel.remarks`."""
        from tile_api.remark_report import remarks_of

        return remarks_of(self.lowered, kind, pass_name)

    @property
    def device_mod(self) -> Any:
        """The backend's module."""
        return self.lowered.module

    @property
    def host_mod(self) -> Any:
        """The kernel in tile IR after all passes on it."""
        return self.lowered.planned

    @property
    def params(self) -> tuple[Node, ...]:
        """The parameters: `tile_core` buffers and scalar variables, in order."""
        return self.lowered.kernel.params

    @property
    def target(self) -> str:
        """The target in canonical spelling."""
        return str(self.lowered.target)

    def __repr__(self) -> str:
        return f"<lowered kernel {self.lowered.kernel.name} for {self.target}>"


def lowered_again(made: PickledKernel) -> LoweredKernel:
    """Return a kernel that was lowered and packed, lowered again."""
    from tile_core import driver
    from tile_core.plugins.host import default_host

    return LoweredKernel(driver.lower(made.kernel, made.target, default_host(), made.options))
