"""What a compilation hands over: a kernel that was lowered, and one that was built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tile_core.compilation.options import BuildOptions
from tile_core.crash import guarded
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.plugins.backend import Backend
from tile_core.plugins.host import PluginHost
from tile_core.records import dataclass
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.passes.layout_report import LayoutReport
    from tile_core.remarks import Remark

STAGES = ("tile", "planned", "pipelined", "lowered", "source")
"""The program as traced, after passes on tile IR, with copies in flight, in threads, as text."""


class Referable:
    """What can be referred to weakly although it has slots."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True)
class Lowered(Referable):
    """A kernel as far as no toolchain and no machine is needed.

    `kernel` is as traced, `planned` after the passes on tile IR; `options` have the target's rules;
    `module` is what the backend's `lower` returned; `remarks` are in the order of saying.
    """

    kernel: Kernel
    planned: Kernel
    target: Target
    backend: Backend
    options: BuildOptions
    module: Any
    phases_ms: Mapping[str, float]
    remarks: tuple[Remark, ...]
    host: PluginHost

    def text(self, stage: str) -> str:
        """Return the program as text: one of the stages of `STAGES`."""
        if stage in ("tile", "planned"):
            return print_kernel(self.kernel if stage == "tile" else self.planned)
        if stage == "pipelined":  # what rules lowered, where the backend changed more tile IR
            return print_kernel(getattr(self.module, "kernel", self.planned))
        if stage == "lowered":
            return str(self.module)
        with guarded(self.kernel, self.target, "print", self.options.compile_flags):
            return self.backend.source(self.module, self.target)

    def layouts(self) -> LayoutReport:
        """Return how each tile of the kernel is stored, and who asked for that.

        Raises
        ------
        UnsupportedOnTarget
            If the backend does not infer layouts.
        """
        found = getattr(self.module, "layouts", None)
        if found is None:
            raise UnsupportedOnTarget(
                f"{self.backend.name} kernels have no layouts to show",
                hint="compile a program of tiles for a machine that stores them, such as "
                "target='cpu'",
            )
        report: LayoutReport = found.report()
        return report


@dataclass(frozen=True, slots=True)
class Built(Lowered):
    """A compiled and loaded kernel, with what each stage handed over.

    `artifact` and `executable` are what the backend's `compile` and `load` returned.
    """

    artifact: Any
    executable: Callable[..., None]

    @property
    def runs_on_host(self) -> bool:
        """Whether the kernel works on tensors in host memory: the CPU, and every emulator."""
        return self.target.runs_on_host

    def asm(self) -> str:
        """Return the machine's assembly.

        Raises
        ------
        UnsupportedOnTarget
            If the backend's artifact cannot show it.
        """
        show = getattr(self.artifact, "asm", None)
        if show is None:
            raise UnsupportedOnTarget(
                f"{self.backend.name} kernels have no assembly to show",
                hint="print the source: kernel.get_kernel_source()",
            )
        return str(show())
