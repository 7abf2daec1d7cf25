"""Measure and check compiled kernels; stand-alone timing of any callable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from tile_api.tensors import torch_device
from tile_api.timing.bench import do_bench, do_bench_cudagraph
from tile_api.timing.record import Timing, gbps, tflops
from tile_api.timing.supply import make_tensor
from tile_core.arith.evaluate import evaluate
from tile_core.errors import FrontendTypeError, LaunchError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.free_variables import free_variables

if TYPE_CHECKING:
    from tile_api.callable_kernel import CallableKernel
    from tile_api.timing.roofline import Roofline
    from tile_core.cost.roofline import Peaks

__all__ = [
    "Profiler",
    "TensorSupplyType",
    "Timing",
    "do_bench",
    "do_bench_cudagraph",
    "gbps",
    "tflops",
]


class TensorSupplyType(Enum):
    """What generated inputs look like.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             B[i] = A[i] * 2
    >>> kernel = tile.compile(twice, out_idx=[-1], target="cpu")
    >>> [x] = kernel.get_profiler(TensorSupplyType.One).inputs()
    >>> x.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


class Profiler:
    """Generates inputs for a kernel, compares it with a reference, and times it.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             B[i] = A[i] * 2
    >>> profiler = tile.compile(twice, out_idx=[-1], target="cpu").get_profiler()
    >>> profiler.assert_allclose(lambda A: A * 2)
    >>> profiler.do_bench(warmup=1, rep=1) > 0  # milliseconds
    True
    """

    def __init__(
        self, kernel: CallableKernel, supply: TensorSupplyType = TensorSupplyType.Auto
    ) -> None:
        if not isinstance(supply, TensorSupplyType):
            raise FrontendTypeError(
                f"inputs are made as a TensorSupplyType says, got {supply!r}",
                hint=f"use one of {', '.join(str(kind) for kind in TensorSupplyType)}",
            )
        self.kernel = kernel
        self.supply = supply

    @property
    def func(self) -> CallableKernel:
        """The kernel."""
        return self.kernel

    def __call__(self, *args: Any) -> Any:
        """Run the kernel."""
        return self.kernel(*args)

    def inputs(self, dynamic_symbolic_constraints: dict[str, int] | None = None) -> list[Any]:
        """Return generated arguments, seeded, one per parameter the caller passes.

        Parameters
        ----------
        dynamic_symbolic_constraints
            Values for symbolic dimensions by name; all symbols need one.
        """
        values: dict[Var, int] = {}
        given = dynamic_symbolic_constraints or {}
        made: list[Any] = []
        for position, param in enumerate(self.kernel.params):
            if position in self.kernel.out_idx:
                continue
            if isinstance(param, Var):
                made.append(self._scalar(param, given))
                continue
            assert isinstance(param, Buffer), "a parameter is a tensor or a scalar"
            shape = tuple(self._extent(e, given, values) for e in param.shape)
            tensor = make_tensor(shape, param.dtype, self.supply.name, seed=position)
            made.append(self._moved(tensor))
        return made

    def _moved(self, tensor: Any) -> Any:
        """Return a tensor where the kernel runs."""
        device = self.kernel.device
        return tensor if device == "cpu" else tensor.to(torch_device(device))

    def _scalar(self, param: Var, given: dict[str, int]) -> Any:
        if param.name not in given:
            raise LaunchError(
                f"no value for the scalar parameter {param.name!r}",
                hint=f"pass dynamic_symbolic_constraints={{{param.name!r}: …}}",
            )
        return given[param.name]

    def _extent(self, extent: Any, given: dict[str, int], values: dict[Var, int]) -> int:
        for var in free_variables(extent):
            if var.name not in given:
                raise LaunchError(
                    f"no value for the symbolic dimension {var.name!r}",
                    hint=f"pass dynamic_symbolic_constraints={{{var.name!r}: 1024}}",
                )
            values[var] = given[var.name]
        return int(evaluate(extent, values))

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        dynamic_symbolic_constraints: dict[str, int] | None = None,
        device: object = None,
        early_stop_baseline: float | None = None,
        flush: bool | None = None,
    ) -> Any:
        """Return milliseconds per call of `func` (default: the kernel) on generated inputs.

        Parameters
        ----------
        warmup, rep, backend, quantiles, return_mode, flush, early_stop_baseline
            As for `do_bench`.
        n_warmup, n_repeat
            Numbers of calls, in place of times.
        input_tensors
            In place of generated ones.
        dynamic_symbolic_constraints
            Values for symbolic dimensions by name, for generated inputs.
        device
            Whose clock is used; None: that of the machine the kernel runs on.
        """
        args = input_tensors
        if args is None:
            args = self.inputs(dynamic_symbolic_constraints)
        run = func or self.kernel
        return do_bench(
            lambda: run(*args),
            warmup,
            rep,
            n_warmup,
            n_repeat,
            quantiles=quantiles,
            backend=backend,
            return_mode=return_mode,
            device=torch_device(self.kernel.device) if device is None else device,
            flush=flush,
            early_stop_baseline=early_stop_baseline,
        )

    def roofline(
        self,
        dynamic_symbolic_constraints: dict[str, int] | None = None,
        *,
        flops: float | None = None,
        nbytes: float | None = None,
        peaks: Peaks | None = None,
        machine: str = "",
        timing: Timing | None = None,
        **bench: Any,
    ) -> Roofline:
        """Return what the kernel reaches of what its machine can do; `print` shows a table.

        Parameters
        ----------
        dynamic_symbolic_constraints
            Values for symbolic dimensions by name.
        flops, nbytes
            What a call computes and moves; None: what is counted in the kernel, and each tensor
            once.
        peaks
            What the machine does at most; None: measured on this CPU with as many threads as
            kernels use, and out of a table for GPUs.
        machine
            Which row of the table, such as ``"h200"``.
        timing
            What was measured already; else the kernel is, with `bench` as for `do_bench`.

        Raises
        ------
        UnsupportedOnTarget
            If nobody knows the peaks of the machine.
        """
        from tile_api.timing.roofline import Work, roofline_of

        sizes = dynamic_symbolic_constraints or {}
        work = Work.of(self.kernel, sizes, flops, nbytes)
        if timing is None:
            timing = self.do_bench(
                dynamic_symbolic_constraints=sizes, return_mode="timing", **bench
            )
        return roofline_of(self.kernel, work, timing, peaks, machine)

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """Run `func` (default: the kernel) once on generated inputs."""
        return (func or self.kernel)(*self.inputs())

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Raise `AssertionError` if the kernel's outputs differ from those of `reference_program`.

        Parameters
        ----------
        max_mismatched_ratio
            The share of elements that may differ by more than ``atol + rtol * |expected|``.
        """
        from tile_api.timing.compare import assert_outputs_close

        args = list(input_tensors) if input_tensors is not None else self.inputs()
        expected = reference_program(*args)
        got = self.kernel(*args)
        assert_outputs_close(got, expected, atol, rtol, max_mismatched_ratio)

    def assert_consistent(self, repeat: int = 10) -> None:
        """Raise `AssertionError` if repeated runs on the same inputs differ in any bit."""
        from tile_api.timing.compare import assert_same_bits

        args = self.inputs()
        first = self.kernel(*args)
        for _ in range(repeat):
            assert_same_bits(self.kernel(*args), first)

    def manual_assert_close(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[..., Any] | None = None,
    ) -> None:
        """Pass the kernel's and the reference's outputs to `manual_check_prog`."""
        args = list(input_tensors) if input_tensors is not None else self.inputs()
        if manual_check_prog is None:
            self.assert_allclose(reference_program, args)
            return
        manual_check_prog(self.kernel(*args), reference_program(*args))
