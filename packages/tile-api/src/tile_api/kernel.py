"""Compiled kernels: call them, look inside them, measure them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_api.arguments import Signature
from tile_api.tensors import empty_output
from tile_core.errors import AssumptionError, EmptyGridError, FrontendValueError
from tile_core.ir.evaluate import evaluate, is_host_evaluable
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node
from tile_core.ir.printer import print_expr_text
from tile_core.ir.stmt import Check, CheckKind, Kernel, Launch, Seq

if TYPE_CHECKING:
    from tile_api.profiler import Profiler
    from tile_core.driver import Built


class CompiledKernel:
    """A kernel ready to run.

    ``kernel(*args)`` takes the parameters in order, without those that are returned. It
    returns None, the one output, or a list of outputs.

    Parameters
    ----------
    built
        What the driver made: target, module, artifact, executable and times.
    source_function
        The traced function, for ``.prim_func``.
    config, latency
        Filled in by tuning.
    """

    def __init__(self, built: Built, source_function: object = None) -> None:
        self._built = built
        self._kernel: Kernel = built.kernel
        self._signature = Signature.of(self._kernel)
        self._host_checks = tuple(host_checks(self._kernel))
        self._device = {"hip": "cuda"}.get(built.target.kind, built.target.kind)
        if built.runs_on_host:
            self._device = "cpu"
        self._lock = threading.Lock()
        self.prim_func = source_function
        self.latency: float | None = None
        self.ref_latency: float | None = None
        self.config: dict[str, Any] | None = None

    # Calling -------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        """Check the arguments, allocate the outputs, run, and return the outputs.

        Raises
        ------
        LaunchError
            If an argument is not what the kernel was compiled for, a grid extent is not
            positive, or an assumption about sizes does not hold.
        DeviceAssertError
            If an assertion inside the kernel fails.
        """
        values = self._signature.check(args, self._device)
        self._check_host_conditions(values)
        outputs = self._allocate(args, values)
        everything = self._interleave(args, outputs)
        self._built.executable(*everything)
        if not outputs:
            return None
        return outputs[0] if len(outputs) == 1 else outputs

    def raw(self, *args: Any) -> Callable[[], None]:
        """Return a function of no arguments that launches on `args` without further checks.

        `args` holds every parameter in order, outputs too; they are checked now and must
        stay as they are. For measuring, and for calling in a tight loop.
        """
        inputs = tuple(args[p] for p in self._signature.inputs)
        self._check_host_conditions(self._signature.check(inputs, self._device))
        return functools.partial(self._built.executable, *args)

    def _check_host_conditions(self, values: Mapping[Var, Any]) -> None:
        for check in self._host_checks:
            if isinstance(check, Launch):
                self._check_grid(check, values)
            elif is_host_evaluable(check.cond, values) and not evaluate(check.cond, values):
                kind = "Assume" if check.kind is CheckKind.ASSUME else "Assert"
                what = check.message or print_expr_text(check.cond)
                raise AssumptionError(
                    f"{kind}: {what} does not hold for these arguments", span=check.span
                )

    def _check_grid(self, launch: Launch, values: Mapping[Var, Any]) -> None:
        for axis, extent in zip("xyz", launch.grid, strict=False):
            if is_host_evaluable(extent, values):
                blocks = evaluate(extent, values)
                if blocks < 1:
                    raise EmptyGridError(
                        f"{self._kernel.name}: the grid's {axis} extent is {blocks}, "
                        "it must be at least 1",
                        span=launch.span,
                        hint="skip the call when a dimension is empty",
                    )

    def _allocate(self, args: tuple[Any, ...], values: Mapping[Var, Any]) -> list[Any]:
        if not self._kernel.outputs:
            return []
        like = next((a for a in args if hasattr(a, "shape")), None)
        shapes = self._signature.output_shapes(values)
        params = (self._kernel.params[p] for p in self._kernel.outputs)
        return [empty_output(s, p.dtype, like) for s, p in zip(shapes, params, strict=True)]

    def _interleave(self, args: tuple[Any, ...], outputs: list[Any]) -> list[Any]:
        everything: list[Any] = [None] * len(self._kernel.params)
        for position, arg in zip(self._signature.inputs, args, strict=True):
            everything[position] = arg
        for position, output in zip(self._kernel.outputs, outputs, strict=True):
            everything[position] = output
        return everything

    # Looking inside ------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """The target in canonical spelling."""
        return str(self._built.target)

    @property
    def params(self) -> tuple[Node, ...]:
        """The parameters: `tile_core` buffers and scalar variables, in order."""
        return self._kernel.params

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
            ``"tile"`` (as traced), ``"planned"`` (after the passes on tile IR),
            ``"lowered"`` (thread-level code) or ``"source"`` (what the toolchain reads).
        """
        stages = {
            "tile": lambda: self._built.text("tile"),
            "planned": lambda: self._built.text("planned"),
            "lowered": lambda: self._built.text("lowered"),
            "source": lambda: self._built.text("source"),
        }
        if stage not in stages:
            raise FrontendValueError(
                f"there is no stage {stage!r}", hint=f"use one of {', '.join(stages)}"
            )
        return str(stages[stage]())

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
        """Print the generated source: ``"kernel"``, ``"host"`` or ``"both"``."""
        import sys

        parts = {"kernel": [self.kernel_source], "host": [self.host_source]}
        texts = parts.get(which, parts["host"] + parts["kernel"])
        sys.stdout.write("\n".join(texts) + "\n")

    def export_sources(self, kernel_path: str | None = None, host_path: str | None = None) -> None:
        """Write the generated sources to files."""
        for path, text in ((kernel_path, self.kernel_source), (host_path, self.host_source)):
            if path is not None:
                Path(path).write_text(text)

    def get_profiler(self, tensor_supply_type: Any = None) -> Profiler:
        """Return a profiler that makes inputs of the given kind for this kernel."""
        from tile_api.profiler import Profiler, TensorSupplyType

        return Profiler(self, tensor_supply_type or TensorSupplyType.Auto)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self._kernel.params)
        return f"<kernel {self._kernel.name}({names}) for {self.target}>"


def host_checks(kernel: Kernel) -> list[Check | Launch]:
    """Return the launches, and the checks that every block reaches unconditionally."""
    found: list[Check | Launch] = []

    def visit(stmt: Node) -> None:
        if isinstance(stmt, Seq):
            for item in stmt.body:
                visit(item)
        elif isinstance(stmt, Launch):
            found.append(stmt)
            visit(stmt.body)
        elif isinstance(stmt, Check) and isinstance(stmt.cond, Expr):
            found.append(stmt)

    visit(kernel.body)
    return found
