"""Compiled kernels: call them, look inside them, measure them."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_api.frames import shortened
from tile_api.kernel_copies import KernelCopies
from tile_api.kernel_files import KernelFiles
from tile_api.kernel_records import KernelRecords
from tile_api.launching import Launcher
from tile_api.lowered import text_at
from tile_core.errors import (
    ArgumentCountError,
    FrontendValueError,
    TileError,
    UnsupportedOnTarget,
)
from tile_core.ir.node import Node
from tile_launch.keywords import in_order

if TYPE_CHECKING:
    from tile_api.arguments import Signature
    from tile_api.disk_cache.entry_codec import RevivedBuild
    from tile_api.integrations.jax_calls import JaxFunction
    from tile_api.keys import CompileKey
    from tile_api.profiler import Profiler
    from tile_api.remarking import RemarkReport
    from tile_core.cost.estimate import Estimate
    from tile_core.driver import Built
    from tile_core.ir.stmt import Kernel
    from tile_core.pass_manager.instrumentation import Event
    from tile_core.passes.guards.report import GuardReport
    from tile_core.passes.layout_report import LayoutReport


class CompiledKernel(KernelFiles, KernelRecords, KernelCopies):
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
    """

    def __init__(
        self,
        built: Built | RevivedBuild,
        source_function: object = None,
        key: Callable[[], CompileKey] | None = None,
        events: tuple[Event, ...] = (),
    ) -> None:
        self._built = built
        self._events = events
        self._key = key
        self._kernel: Kernel = built.kernel
        self._device = built.target.kind
        if built.runs_on_host:
            self._device = "cpu"
        self._launch = Launcher(self._kernel, built.executable, self._device)
        self.prim_func = source_function
        self.latency: float | None = None
        self.ref_latency: float | None = None
        self.config: dict[str, Any] | None = None

    # Calling -------------------------------------------------------------------------------

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Check the arguments, allocate the outputs, run, and return the outputs.

        Arguments of a kind that was checked before (shape, strides, element type, device)
        are not checked again. They may come by name, too, which takes longer.

        Raises
        ------
        LaunchError
            If an argument is not what the kernel was compiled for, a grid extent is not
            positive, or an assumption about sizes does not hold.
        DeviceAssertError
            If an assertion inside the kernel fails.
        """
        try:
            if named:
                names = [self._kernel.params[p].name for p in self._launch.signature.inputs]
                args = in_order(self._kernel.name, names, args, named, ArgumentCountError)
            found = self._launch.quick(*args)
            return self._launch(*args) if found is NotImplemented else found
        except TileError as error:
            raise shortened(error)  # noqa: B904  (it is the same error)

    def raw(self, *args: Any) -> Callable[[], None]:
        """Return a function of no arguments that launches on `args` without further checks.

        `args` holds every parameter in order, outputs too; they are checked now and must
        stay as they are. For measuring, and for calling in a tight loop.
        """
        everything = replace(self._kernel, outputs=())
        checked = Launcher(everything, self._built.executable, self._device).check(args)
        return functools.partial(self._built.executable, *checked.args)

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
        from tile_api.integrations.jax_calls import JaxFunction

        return JaxFunction(self, self._launch, backward)

    # Looking inside ------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """The target in canonical spelling."""
        return str(self._built.target)

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
    def device(self) -> str:
        """Where its tensors are: ``"cpu"``, ``"cuda"`` or ``"hip"``."""
        return self._device

    @property
    def tile_ir(self) -> Kernel:
        """The kernel as traced, with its outputs."""
        return self._kernel

    @property
    def params(self) -> tuple[Node, ...]:
        """The parameters: `tile_core` buffers and scalar variables, in order."""
        return self._kernel.params

    @property
    def signature(self) -> Signature:
        """Which parameters the caller passes, and which of them the kernel may change."""
        return self._launch.signature

    @property
    def out_idx(self) -> list[int]:
        """Positions of the parameters that are returned."""
        return list(self._kernel.outputs)

    @property
    def artifact(self) -> Any:
        """What the backend's toolchain made."""
        return self._built.artifact

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
        from tile_api.compiling import default_host
        from tile_api.guarding import guards_of

        built = self._built
        return guards_of(built.kernel, built.target, built.options, default_host())

    def remarks(self, kind: str | None = None, pass_name: str | None = None) -> RemarkReport:
        """Return what the compiler said about its choices: see `tile_api.remarking.remarks_of`.

        ``print(kernel.remarks("missed"))`` shows what could not be done, and why.
        """
        from tile_api.remarking import remarks_of

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

    @property
    def ptx(self) -> str:
        """The assembly of NVIDIA's virtual machine.

        Targets of kind ``cuda`` have it, without a GPU too; the emulator has not.

        Raises
        ------
        UnsupportedOnTarget
            If this target has none.
        """
        return str(self._of_artifact("ptx"))

    @property
    def sass(self) -> str:
        """The instructions of the NVIDIA GPU itself.

        Raises
        ------
        UnsupportedOnTarget
            If this target has none.
        ToolchainError
            If no disassembler is installed.
        """
        return str(self._of_artifact("sass"))

    @property
    def resources(self) -> Mapping[str, Any]:
        """Registers, spills, memory and occupancy of each launch, by the name of its function.

        The values are `tile_core.simt.resources.Resources`: ``registers``, ``spill_stores``,
        ``stack_bytes``, and ``resident.blocks`` of ``resident.fraction`` of a multiprocessor. Of
        AMD GPUs there are ``matrix_registers`` and ``scalar_registers``, too.

        Raises
        ------
        UnsupportedOnTarget
            If this target has none.
        """
        found: Mapping[str, Any] = self._of_artifact("resources")
        return found

    def _of_artifact(self, name: str) -> Any:
        """Return what the backend's toolchain tells of the machine code, or raise."""
        artifact = self._built.artifact
        if not hasattr(type(artifact), name):
            raise UnsupportedOnTarget(
                f"kernels for {self._built.target} have no {name}",
                hint="compile for an NVIDIA GPU, which need not be here: target='cuda:sm_80'",
            )
        return getattr(artifact, name)

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
        from tile_api.compiling import default_host
        from tile_api.saving import save

        save(self._built, path, targets, default_host())

    # Measuring -----------------------------------------------------------------------------

    def get_profiler(self, tensor_supply_type: Any = None) -> Profiler:
        """Return a profiler that makes inputs of the given kind for this kernel."""
        from tile_api.profiler import Profiler, TensorSupplyType

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

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self._kernel.params)
        return f"<kernel {self._kernel.name}({names}) for {self.target}>"
