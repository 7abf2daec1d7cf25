"""What is told of how a kernel came about: its report, its times, and a trace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile_api.disk_cache.entry_codec import RevivedBuild
    from tile_api.phases import Timings
    from tile_core.driver import Built
    from tile_core.ir.stmt import Kernel
    from tile_core.pass_manager.instrumentation import Event


class KernelRecords:
    """How compiled kernels tell of their making; see `tile_api.kernel.CompiledKernel`."""

    __slots__ = ()

    if TYPE_CHECKING:
        _built: Built | RevivedBuild
        _kernel: Kernel
        _events: tuple[Event, ...]

    @property
    def phases(self) -> Timings:
        """What making this kernel took, phase by phase and pass by pass; print it.

        A kernel that was found in a cache tells how it was found. See `phases_ms` for how long
        its compilation took.
        """
        from tile_api.phases import timings_of

        return timings_of(self._events)

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write `phases` as a trace that Chrome, Perfetto and Speedscope show.

        `tile_api.tracing.to_file` does so for all that happens in a block.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        from tile_api.tracing import write_trace

        write_trace(self._events, path)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        counters: bool = False,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        """Write a page on this kernel, for a browser: one file that needs no network.

        It shows the program after each pass with what changed, the layouts and the pipeline
        drawn, what the kernel needs of the machine, and how long each pass took. The kernel is
        compiled anew for it.

        Parameters
        ----------
        counters
            Run the kernel once in the emulator, on small integers, and tell what the accesses of
            each line cost.
        sizes
            Values of symbolic dimensions and scalar parameters for that, by name.

        Raises
        ------
        TileError
            If counters are asked for and the kernel cannot be emulated.
        OSError
            If the file cannot be written.
        """
        from tile_api.compiling import default_host
        from tile_api.report import Wish, write_report

        built, host = self._built, default_host()
        wish = Wish(self._kernel, built.target, built.options, host, counters, sizes or {})
        write_report(wish, path)
