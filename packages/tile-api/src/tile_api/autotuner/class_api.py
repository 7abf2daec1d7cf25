"""TileLang's class: the same search, put together call by call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import Self, Unpack

from tile_api.autotuner.decorator import AutotunedFactory
from tile_api.autotuner.options import OPTION_NAMES, TuneKeywords, TuneOptions
from tile_api.jitting import JITKernelFactory, jit
from tile_api.kernel import CompiledKernel
from tile_core.errors import TuningError

_COMPILE = (
    "out_idx",
    "target",
    "target_host",
    "execution_backend",
    "verbose",
    "pass_configs",
    "compile_flags",
)


@dataclass(frozen=True, slots=True)
class AutotuneResult:
    """What `AutoTuner.run` found.

    Parameters
    ----------
    latency, ref_latency
        Milliseconds of a call, and of one of the reference if there is one.
    config
        The chosen values.
    libcode
        The kernel's source.
    func
        The traced function.
    kernel
        The kernel, compiled.
    """

    latency: float
    config: Mapping[str, Any]
    ref_latency: float | None
    libcode: str
    func: Any
    kernel: CompiledKernel


class AutoTuner:
    """A function that makes kernels, the configurations, and how to compile and measure.

    Parameters
    ----------
    fn
        Returns a ``@T.prim_func`` for values of its parameters; ``@tile.jit`` may be above it.
    configs
        As for `tile_api.autotune`.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> def ones(block=32):
    ...     @T.prim_func
    ...     def main(A: T.Tensor((64,), "float32")):
    ...         with T.Kernel(T.ceildiv(64, block), threads=32) as bx:
    ...             for i in T.Parallel(block):
    ...                 A[bx * block + i] = 1.0
    ...     return main
    >>> tuner = tile.AutoTuner.from_kernel(ones, [{"block": 32}, {"block": 64}])
    >>> found = tuner.set_compile_args(out_idx=[-1], target="cpu").run(budget="model")
    >>> found.config["block"] in (32, 64), found.kernel().sum()
    (True, np.float32(64.0))
    """

    def __init__(self, fn: Callable[..., Any], configs: object) -> None:
        self.fn, self.configs = fn, configs
        self._compile: dict[str, Any] = {}
        self._options = TuneOptions(cache_input_tensors=True)
        self._arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    @classmethod
    def from_kernel(cls, kernel: Callable[..., Any], configs: object) -> Self:
        """Return a tuner for a function that makes kernels."""
        return cls(kernel, configs)

    def set_compile_args(
        self,
        out_idx: Any = None,
        target: Any = None,
        execution_backend: str | None = None,
        target_host: Any = None,
        verbose: bool | None = None,
        pass_configs: Mapping[Any, object] | None = None,
        **options: Any,
    ) -> Self:
        """Say how to compile: what `tile_api.compile` takes beside the function.

        Raises
        ------
        TuningError
            If there is no such option.
        """
        given = {
            "out_idx": out_idx,
            "target": target,
            "execution_backend": execution_backend,
            "target_host": target_host,
            "verbose": verbose,
            "pass_configs": pass_configs,
            **options,
        }
        _require_known(given, _COMPILE, "set_compile_args")
        self._compile = {name: value for name, value in given.items() if value is not None}
        return self

    def set_profile_args(self, *, backend: str = "event", **options: Unpack[TuneKeywords]) -> Self:
        """Say how to measure and check: attributes of `TuneOptions`.

        Parameters
        ----------
        backend
            Accepted for compatibility: kernels are measured by one clock.
        options
            Those of `tile_api.autotune`.

        Raises
        ------
        TuningError
            If there is no such option.
        """
        _require_known(options, OPTION_NAMES, "set_profile_args")
        self._options = replace(self._options, **options)
        return self

    def set_kernel_parameters(self, *args: Any, **kwargs: Any) -> Self:
        """Say which arguments the function gets beside those that are tuned."""
        self._arguments = (args, kwargs)
        return self

    def run(
        self,
        warmup: float = 25,
        rep: float = 100,
        timeout: float = 180,
        use_pipeline: bool = False,
        enable_grouped_compile: bool = False,
        group_compile_size: int = 2,
        benchmark_devices: object = None,
        benchmark_multi_gpu: bool = False,
        early_stop: bool = False,
        early_stop_factor: float = 2.0,
        *,
        budget: object = None,
    ) -> AutotuneResult:
        """Tune, unless a table knows the result.

        Parameters
        ----------
        warmup, rep
            Milliseconds.
        timeout
            Seconds for a step of one candidate.
        use_pipeline, enable_grouped_compile, group_compile_size
            Accepted for compatibility: candidates are compiled while others are measured.
        benchmark_devices, benchmark_multi_gpu
            Accepted for compatibility: candidates are measured on one machine.
        early_stop, early_stop_factor
            Stop measuring a candidate that takes this many times as long as the best.
        budget
            As for `tile_api.autotune`.

        Raises
        ------
        TileError
            As `tile_api.autotuner.tune.tune`.
        """
        chosen = self._options.budget if budget is None else budget
        options = replace(self._options, warmup=warmup, rep=rep, timeout=timeout, budget=chosen)
        if early_stop:
            options = replace(options, early_stop=True, early_stop_factor=early_stop_factor)
        args, kwargs = self._arguments
        found = AutotunedFactory(self._factory(), self.configs, options).tune(*args, **kwargs)
        told = found.latency, found.config.given, found.ref_latency
        return AutotuneResult(*told, found.kernel.get_kernel_source(), found.func, found.kernel)

    def _factory(self) -> JITKernelFactory:
        if isinstance(self.fn, JITKernelFactory):
            return JITKernelFactory(self.fn.func, {**self.fn.options, **self._compile})
        made = jit(self.fn, **self._compile)
        assert isinstance(made, JITKernelFactory), "jit decorates functions"
        return made


def _require_known(options: Mapping[str, Any], known: Any, method: str) -> None:
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TuningError(
            f"AutoTuner.{method} has no option {unknown[0]!r}", hint=f"it has {', '.join(known)}"
        )
