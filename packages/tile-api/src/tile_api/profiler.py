"""Measure and check compiled kernels; stand-alone timing of any callable."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from tile_api.supply import make_tensor
from tile_core.errors import FrontendValueError, LaunchError
from tile_core.ir.buffer import Buffer
from tile_core.ir.evaluate import evaluate, free_variables
from tile_core.ir.expr import Var

if TYPE_CHECKING:
    from tile_api.kernel import CompiledKernel


class TensorSupplyType(Enum):
    """What generated inputs look like."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


_RETURN_MODES: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
}


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    backend: str = "event",
    return_mode: str = "mean",
    device: object = None,
    grad_to_none: object = None,
) -> float | list[float]:
    """Return how long one call of `fn` takes, in milliseconds of wall-clock time.

    Parameters
    ----------
    warmup, rep
        Milliseconds to spend before and during measurement; `_n_warmup` and `_n_repeat`
        fix the number of calls instead.
    quantiles
        Return these quantiles (0..1) instead of one number.
    return_mode
        ``"mean"``, ``"median"``, ``"min"``, ``"max"`` or ``"all"``.
    fast_flush, backend, device, grad_to_none
        Accepted for compatibility; on the CPU calls are timed with the system's clock.

    Raises
    ------
    FrontendValueError
        If `return_mode` is not known.
    """
    if return_mode not in (*_RETURN_MODES, "all"):
        raise FrontendValueError(
            f"return_mode {return_mode!r} is not known",
            hint=f"use one of {', '.join((*_RETURN_MODES, 'all'))}",
        )
    fn()  # compiles, loads, and fills caches
    start = time.perf_counter()
    fn()
    estimate = max(1e-7, time.perf_counter() - start)
    for _ in range(_n_warmup or max(1, min(10_000, int(warmup / 1e3 / estimate)))):
        fn()
    times: list[float] = []
    for _ in range(_n_repeat or max(3, min(100_000, int(rep / 1e3 / estimate)))):
        start = time.perf_counter()
        fn()
        times.append((time.perf_counter() - start) * 1e3)
    if quantiles is not None:
        found = [_quantile(sorted(times), q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    return times if return_mode == "all" else _RETURN_MODES[return_mode](times)


def _quantile(ordered: Sequence[float], q: float) -> float:
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


class Profiler:
    """Generates inputs for a kernel, compares it with a reference, and times it."""

    def __init__(
        self, kernel: CompiledKernel, supply: TensorSupplyType = TensorSupplyType.Auto
    ) -> None:
        self.kernel = kernel
        self.supply = supply

    @property
    def func(self) -> CompiledKernel:
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
            made.append(make_tensor(shape, param.dtype, self.supply.name, seed=position))
        return made

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
    ) -> float | list[float]:
        """Return milliseconds per call of `func` (default: the kernel) on generated inputs."""
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
            return_mode=return_mode,
        )

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """Run `func` (default: the kernel) once on generated inputs."""
        return (func or self.kernel)(*self.inputs())

    def assert_allclose(
        self,
        reference: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Raise `AssertionError` if the kernel's outputs differ from those of `reference`.

        Parameters
        ----------
        max_mismatched_ratio
            The share of elements that may differ by more than ``atol + rtol * |expected|``.
        """
        from tile_api.compare import assert_outputs_close

        args = list(input_tensors) if input_tensors is not None else self.inputs()
        expected = reference(*args)
        got = self.kernel(*args)
        assert_outputs_close(got, expected, atol, rtol, max_mismatched_ratio)

    def assert_consistent(self, repeat: int = 10) -> None:
        """Raise `AssertionError` if repeated runs on the same inputs differ in any bit."""
        from tile_api.compare import assert_outputs_close

        args = self.inputs()
        first = self.kernel(*args)
        for _ in range(repeat):
            assert_outputs_close(self.kernel(*args), first, 0.0, 0.0, 0.0)

    def manual_assert_close(
        self,
        reference: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[..., Any] | None = None,
    ) -> None:
        """Pass the kernel's and the reference's outputs to `manual_check_prog`."""
        args = list(input_tensors) if input_tensors is not None else self.inputs()
        if manual_check_prog is None:
            self.assert_allclose(reference, args)
            return
        manual_check_prog(self.kernel(*args), reference(*args))
