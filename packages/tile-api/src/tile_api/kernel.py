"""Compiled kernels: call them, look inside them, measure them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_api.kernel_files import KernelFiles
from tile_api.lowered import text_at
from tile_core.errors import FrontendValueError
from tile_core.needed_packages import needed

if TYPE_CHECKING:
    from tile_api.integrations.jax_calls import JaxFunction
    from tile_api.keys import CompileKey
    from tile_api.pickling import PickledKernel
    from tile_api.remark_report import RemarkReport
    from tile_api.timing.profiler import Profiler
    from tile_api.tracing import Timings
    from tile_core.cost.estimate import Estimate
    from tile_core.passes.guards.report import GuardReport
    from tile_core.passes.layout_report import LayoutReport


class CompiledKernel(KernelFiles):
    """A kernel ready to run.

    ``kernel(*args)`` takes the parameters in order or by name, without those that are returned.
    It returns None, the one output, or a list of outputs.

    Parameters
    ----------
    built
        What the driver made: target, module, artifact, executable and times.
    source_function
        The traced function, for ``.prim_func``.
    key
        Tells the compile key.
    events
        What happened while it was made.
    config, latency
        Filled in by tuning.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             B[i] = A[i] * 2
    >>> kernel = tile.compile(twice, out_idx=[-1], target="cpu")
    >>> kernel(A=np.ones(4, "float32"))
    array([2., 2., 2., 2.], dtype=float32)
    >>> "parallel i" in kernel.ir("tile")
    True
    """

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """Run `func` (default: this kernel) once on generated inputs."""
        return self.get_profiler().run_once(func)

    def as_torch_op(
        self,
        name: str,
        mutates_args: Sequence[str] | None = None,
        backward: object = None,
        setup_context: object = None,
    ) -> Any:
        """Return the kernel as an operator of torch, which traces, compiles and exports it.

        Shapes of outputs follow from those of the arguments, symbols included. Called twice for
        kernels that may stand in for each other, it returns the same operator; called for a
        kernel with the same parameters on another kind of device, it adds that device.

        Parameters
        ----------
        name
            ``"namespace::operator"``; it is then also ``torch.ops.namespace.operator``.
        mutates_args
            Names of the arguments that change. None means those that the kernel may write.
        backward
            ``backward(ctx, *gradients)`` as for ``torch.library.register_autograd``, or another
            kernel: a parameter named after an argument or an output takes that, ``dC`` or
            ``grad_C`` takes the gradient of output ``C``, and outputs ``dA`` or ``grad_A`` are
            the gradients of argument ``A``.
        setup_context
            ``setup_context(ctx, inputs, output)`` beside a `backward` that is a function.

        Returns
        -------
        torch.library.CustomOpDef
            Call it as the kernel is called.

        Raises
        ------
        TorchOpNameError
            If `name` is malformed or taken.
        TorchOpSignatureError
            If a parameter is an address, or `mutates_args` is wrong.
        TorchOpGradientError
            If `backward` does not fit.
        """
        needed("torch", "an operator of torch")
        from tile_api.integrations.torch_ops import kernel_op

        return kernel_op(self._launch, self, name, mutates_args, backward, setup_context)

    def as_jax(self, backward: object = None) -> JaxFunction:
        """Return the kernel as a function of JAX's arrays, which ``jax.jit`` and others trace.

        Outputs are returned, then the updated value of each argument that the kernel may change:
        JAX's arrays do not change. In a traced program the kernel is a callback on the host.

        Parameters
        ----------
        backward
            ``backward(arguments, results, gradients)`` returns a gradient for each argument, or
            None; or a kernel whose parameters are named as for `as_torch_op`.

        Raises
        ------
        JaxCallError
            If JAX cannot call the kernel, or `backward` does not fit.
        """
        needed("jax", "a function of JAX")
        from tile_api.integrations.jax_calls import JaxFunction

        return JaxFunction(self, self._launch, backward)

    # Looking inside ------------------------------------------------------------------------

    def compile_key(self) -> CompileKey:
        """Return what the kernel is a function of; print it, or compare it with another.

        Kernels with equal keys may stand in for each other. See `tile_api.keys.CompileKey`.

        Raises
        ------
        FrontendValueError
            If the kernel was put together by hand and not compiled.
        """
        if self._key is None:
            raise FrontendValueError(
                f"kernel {self._kernel.name} has no compile key",
                hint="compile it: tile.compile(func, target=...)",
            )
        return self._key()

    @property
    def phases_ms(self) -> Mapping[str, float]:
        """Milliseconds spent in each phase of compilation."""
        return self._built.phases_ms

    def ir(self, stage: str = "tile") -> str:
        """Return the program at a stage of compilation as text.

        Parameters
        ----------
        stage
            ``"tile"`` (as traced), ``"planned"`` (after the backend's passes on tile IR),
            ``"pipelined"`` (tile IR with copies in flight, and with producers and consumers,
            where the target has any), ``"lowered"`` (thread-level code) or ``"source"`` (what
            the toolchain reads).

        Raises
        ------
        FrontendValueError
            If there is no such stage.
        """
        return text_at(self._built, stage)

    def source(self, tier: str = "expert") -> str:
        """Return the kernel as a program of a tier of the language, which runs as a file.

        Parameters
        ----------
        tier
            ``"developer"``: the kernel in the language of tiles, whatever it was written in. Traced
            again, it has the same compile key. ``"expert"``: the program of one thread of the
            kernel's GPU. Compiled again, it gives the same C++. Its ``T.line`` say where the
            kernel's own statements were written.

        Raises
        ------
        FrontendValueError
            If there is no such tier.
        UnsupportedOnTarget
            If the kernel is not for a GPU, where threads are asked for.
        UnsupportedForm
            If part of it cannot be written so.
        """
        from tile_api.tiers import source_of

        return source_of(self._built, tier)

    def layouts(self) -> LayoutReport:
        """Return how each tile is stored in scratch, and who asked for that.

        ``print(kernel.layouts())`` shows a line per tile with the function from coordinates
        to places and the operator and line it comes from; ``kernel.layouts()["A_shared"].draw()``
        is a picture.

        Raises
        ------
        UnsupportedOnTarget
            If the target does not infer layouts.
        """
        return self._built.layouts()

    def guards(self) -> GuardReport:
        """Return the accesses that run under a condition because they may leave their tensor.

        ``print(kernel.guards())`` shows for each the line, the condition, how often it is asked,
        and the fact that would remove it with the way to promise that. The kernel is lowered
        again for this, once for each such fact: it was seen to remove the guard.
        """
        from tile_api.remark_report import guards_of

        built = self._built
        return guards_of(built.kernel, built.target, built.options, built.host)

    def remarks(self, kind: str | None = None, pass_name: str | None = None) -> RemarkReport:
        """Return what the compiler said about its choices: see `tile_api.remark_report.remarks_of`.

        ``print(kernel.remarks("missed"))`` shows what could not be done, and why.
        """
        from tile_api.remark_report import remarks_of

        return remarks_of(self._built, kind, pass_name)

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """Return the generated source: LLVM IR on the CPU, C++ on GPUs."""
        return self.ir("source")

    @property
    def kernel_source(self) -> str:
        """The generated source."""
        return self.get_kernel_source()

    def get_host_source(self) -> str:
        """Return the text of the program around the kernel: thread-level code as lowered."""
        return self.ir("lowered")

    @property
    def host_source(self) -> str:
        """The text of the program around the kernel."""
        return self.get_host_source()

    @property
    def asm(self) -> str:
        """The machine's assembly, where the backend can show it."""
        return self._built.asm()

    def show_source(self, which: str = "kernel") -> None:
        """Print the generated source: ``"kernel"``, ``"host"`` or ``"both"``.

        Raises
        ------
        FrontendValueError
            For anything else.
        """
        import sys

        parts = {"kernel": ("source",), "host": ("lowered",), "both": ("lowered", "source")}
        if which not in parts:
            raise FrontendValueError(
                f"there is no source {which!r}", hint=f"use one of {', '.join(parts)}"
            )
        sys.stdout.write("\n".join(self.ir(stage) for stage in parts[which]) + "\n")

    def print_source_code(self, which: str = "kernel", file: str | None = None) -> None:
        """Print the generated source, or write it to `file`; deprecated name of `show_source`."""
        warnings.warn("use show_source", DeprecationWarning, stacklevel=2)
        if file is None:
            self.show_source(which)
        else:
            self.export_sources(**{f"{which}_path": file})

    def export_sources(self, kernel_path: str | None = None, host_path: str | None = None) -> None:
        """Write the generated sources to files.

        Raises
        ------
        FrontendValueError
            If neither path is given.
        """
        if kernel_path is None and host_path is None:
            raise FrontendValueError(
                "export_sources needs kernel_path, host_path, or both",
                hint="write kernel.export_sources(kernel_path='kernel.ll')",
            )
        for path, stage in ((kernel_path, "source"), (host_path, "lowered")):
            if path is not None:
                Path(path).write_text(self.ir(stage))

    def save(self, path: str | os.PathLike[str], targets: Sequence[object] | None = None) -> None:
        """Write a bundle: a file that `tile_launch.load` runs without compiler, TVM or torch.

        Parameters
        ----------
        path
            Of the file, by convention ``*.tile``. It is replaced at once or not at all.
        targets
            Machines to compile variants for, which need not be here, such as
            ``["cuda:sm_80", "hip:gfx942", "cpu"]``; None means the kernel's own.

        Raises
        ------
        UnsupportedOnTarget
            If kernels for a target cannot be saved.
        ToolchainError
            If a compiler is missing or fails.
        OSError
            If the file cannot be written.
        """
        from tile_api.save_bundle import save

        save(self._built, path, targets)

    @property
    def phases(self) -> Timings:
        """What making this kernel took, phase by phase and pass by pass; print it.

        A kernel that was found in a cache tells how it was found. See `phases_ms` for how long
        its compilation took.
        """
        from tile_api.tracing import timings_of

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
        from tile_api.report import ReportRequest, write_report

        built = self._built
        report = ReportRequest(
            self._kernel, built.target, built.options, built.host, counters, sizes or {}
        )
        write_report(report, path)

    # Measuring -----------------------------------------------------------------------------

    def get_profiler(self, tensor_supply_type: Any = None) -> Profiler:
        """Return a profiler that makes inputs of the given kind for this kernel."""
        from tile_api.timing.profiler import Profiler, TensorSupplyType

        return Profiler(self, tensor_supply_type or TensorSupplyType.Auto)

    def estimate(self, **sizes: Any) -> Estimate:
        """Return the time that a model of the machine expects, and what it is made of.

        Parameters
        ----------
        sizes
            Values of symbols in the shapes of tensors, by name: ``m=1024``.

        Raises
        ------
        FrontendValueError
            If a size is missing.
        """
        from tile_api.cost import estimate

        return estimate(self._kernel, self._built.target, **sizes)

    def update_tuner_result(
        self, latency: float, config: Mapping[str, Any] | None, ref_latency: float | None
    ) -> CompiledKernel:
        """Note what tuning found: milliseconds, the chosen values, and the reference's time."""
        self.latency, self.ref_latency = latency, ref_latency
        self.config = dict(config) if config is not None else None
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """Return what tuning found: ``latency``, ``config`` and ``ref_latency``.

        Raises
        ------
        FrontendValueError
            If the kernel was not tuned.
        """
        if self.latency is None:
            raise FrontendValueError(
                f"kernel {self._kernel.name} was not tuned",
                hint="compile it with an autotuner first",
            )
        return {"latency": self.latency, "config": self.config, "ref_latency": self.ref_latency}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the kernel as it travels to other processes: see `tile_api.pickling`."""
        from tile_api.pickling import packed

        key = None if self._key is None else self._key()
        return unpacked, (packed(self._built, key, self.prim_func), self._own_attributes())

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self._kernel.params)
        return f"<kernel {self._kernel.name}({names}) for {self.target}>"

    def _repr_html_(self) -> str:
        """Return what notebooks show; `report` makes a whole page."""
        from tile_api.report.kernel_facts import facts_of_kernel
        from tile_api.report.parts.facts import table_of_facts

        return str(table_of_facts(facts_of_kernel(self._kernel, str(self.target))))


def unpacked(made: PickledKernel, told: Mapping[str, Any]) -> CompiledKernel:
    """Return a packed kernel, loaded or compiled again; `told` are attributes beside its code."""
    from tile_api.build_or_load import build_or_load  # which loads the caches
    from tile_api.disk_cache.entry import decode
    from tile_api.disk_cache.lookup import cache_request
    from tile_api.frontend.source import placed
    from tile_api.settings import Settings
    from tile_core.pass_manager.instrumentation import recorded, timed
    from tile_core.plugins.host import default_host

    entry = None if made.entry is None else decode(made.entry)
    with recorded() as recording, timed("tile.compile", "call") as about, placed():
        wanted = cache_request(made.kernel, made.target, made.options, default_host())
        about |= wanted.names
        built = build_or_load(wanted, Settings.from_environment(), entry=entry)
    kernel = CompiledKernel(built, made.source, lambda: wanted.key, tuple(recording.events))
    vars(kernel).update(told)
    return kernel
