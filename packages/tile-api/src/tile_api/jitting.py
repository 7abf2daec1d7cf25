"""`tile.jit`: functions that make kernels, compiled once per set of compile-time values."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import Never

from tile_api.cache import KernelCache
from tile_api.compile_request import refuse_unknown
from tile_api.compiling import compile
from tile_api.frontend.source import calling_span, placed
from tile_api.frozen_values import frozen, is_number_of_numpy
from tile_api.kernel import CompiledKernel
from tile_api.keys import CompileKey
from tile_api.settings import environment_of_code
from tile_api.tracebacks import concise
from tile_core.errors import ArgumentCountError, FrontendTypeError, OutputError
from tile_core.ir.stmt import Kernel
from tile_core.needed_packages import needed
from tile_core.records import Uncopied
from tile_launch.dynamo import between_graphs, outside_of_graphs

if TYPE_CHECKING:
    from tile_core.tasks import Executors


class JITKernelFactory(Uncopied):
    """What ``@tile.jit`` makes of a function.

    *Lazy*: the function returns a ``@T.prim_func``; all its arguments are compile-time
    values; calling it returns a compiled kernel. *Eager*: the function's own body holds the
    kernel; calling it with tensors compiles, runs, and returns the `T.empty` outputs.
    Which of the two it is, is decided on the first call.

    Attributes
    ----------
    func
        The decorated function.
    signature
        Its Python signature.
    """

    def __init__(self, func: Callable[..., Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, func)
        self.func = func
        try:
            self.signature = inspect.signature(func)
        except (TypeError, ValueError) as error:
            raise FrontendTypeError(
                f"{func!r} is no function that @tile.jit could decorate",
                span=calling_span(),
                hint="write @tile.jit above a `def`",
            ) from error
        self._options = dict(options)
        self._lock = threading.RLock()
        self._kernels: KernelCache[CompiledKernel] = KernelCache()
        self._mode: str | None = None
        self._eager: Any = None

    @property
    def mode(self) -> str:
        """``"lazy"``, ``"eager"``, or ``"auto"`` before the first call."""
        return self._mode or "auto"

    @property
    def is_eager(self) -> bool:
        """Whether the function is in eager style, decided now if it was not yet."""
        return self.style() == "eager"

    @property
    def options(self) -> dict[str, Any]:
        """A copy of what kernels are compiled with: target, pass_configs, out_idx and so on."""
        return dict(self._options)

    @between_graphs
    @concise
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a compiled kernel (lazy), or run and return the outputs (eager).

        ``__return_kernel=True`` is TileLang's spelling of `compile`.
        """
        if kwargs and kwargs.pop("__return_kernel", False):
            return self.compile(*args, **kwargs)
        if self.style() == "eager":
            return self._eager_function().run(args, kwargs)
        return self._lazy(args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> CompiledKernel:
        """Return the compiled kernel without running it.

        In eager style the sizes named by `T.const` are given as keywords and tensors may be
        left out.
        """
        if self.style() == "eager":
            kernel: CompiledKernel = self._eager_function().compile(args, kwargs)
            return kernel
        return self._lazy(args, kwargs)

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        """Return the traced function, not compiled."""
        if self.style() == "eager":
            return self._eager_function().trace(args, kwargs)
        self._key(args, kwargs)
        return self._traced(args, kwargs)

    def get_kernel_source(self, *args: Any, kernel_only: bool = True, **kwargs: Any) -> str:
        """Return the generated source for these arguments."""
        return self.compile(*args, **kwargs).get_kernel_source(kernel_only)

    def par_compile(
        self,
        configs: Iterable[Any],
        num_workers: int | None = None,
        ignore_error: bool = False,
        executor: Executors | None = None,
    ) -> list[CompiledKernel | None]:
        """Compile for many argument sets (tuples, or dicts of keywords) on several threads.

        Later calls with one of them find the kernel. With `ignore_error` a set that cannot be
        compiled gives None and a warning; `executor` is that of `tile_api.par_compile`.
        """
        sets: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
            ((), dict(c)) if isinstance(c, Mapping) else (tuple(c), {}) for c in configs
        ]
        traced = [self.get_tir(*args, **kwargs) for args, kwargs in sets]
        from tile_api.parallel_compiling import par_compile  # few compile many at a time

        kernels = par_compile(
            traced, num_workers=num_workers, ignore_error=ignore_error, executor=executor,
            **self._options,
        )  # fmt: skip
        for (args, kwargs), kernel in zip(sets, kernels, strict=True):
            if kernel is not None:
                self._keep(args, kwargs, kernel)
        return kernels

    def compile_key(self, *args: Any, **kwargs: Any) -> CompileKey:
        """Return the compile key for these arguments; nothing is compiled.

        In eager style the sizes named by `T.const` may be given as keywords in place of tensors.
        Calls with equal keys run the same kernel: sizes named by `T.dynamic` are in no key.
        """
        from tile_api.compile_keys import compile_key  # few ask for keys

        options = {n: self._options[n] for n in ("target", "pass_configs", "compile_flags")}
        return compile_key(self.get_tir(*args, **kwargs), self._options["out_idx"], **options)

    def as_torch_op(
        self,
        name: str,
        *,
        sizes: Callable[..., Any] | None = None,
        like: object = None,
        mutates_args: Sequence[str] | None = None,
        backward: object = None,
        setup_context: object = None,
        **fixed: Any,
    ) -> Any:
        """Return an operator of torch that compiles a kernel for each set of sizes, at the call.

        Parameters
        ----------
        name, mutates_args, backward, setup_context
            As for `tile_api.kernel.CompiledKernel.as_torch_op`.
        sizes
            In lazy style: ``sizes(*args)`` returns the function's arguments (a tuple, a dict by
            name, or one value) for the operator's.
        like
            An example of what `sizes` returns, or of the sizes named by `T.const`: the
            operator's parameters are read off the kernel for it. In eager style all are 128
            unless it is given.
        fixed
            Further arguments of the function, by name.

        Raises
        ------
        TorchOpNameError, TorchOpSignatureError, TorchOpGradientError
            As for kernels, and if it cannot be told where arguments come from.
        """
        needed("torch", "an operator of torch")
        from tile_api.integrations.torch_factories import factory_op

        gradient = (backward, setup_context)
        return factory_op(self, self._options, name, sizes, like, fixed, mutates_args, *gradient)

    def style(self) -> str:
        """Return ``"lazy"`` or ``"eager"``, deciding now which it is."""
        if self._mode is None:
            from tile_api.frontend.eager import is_eager

            with self._lock:
                mode = "eager" if is_eager(self.func) else "lazy"
                if mode == "eager" and self._options.get("out_idx") is not None:
                    raise OutputError(
                        f"{self.func.__name__} is in eager style, where out_idx has no meaning",
                        span=calling_span(),
                        hint="declare outputs with T.empty and return them",
                    )
                self._mode = mode
        return self._mode

    def tensor_names(self) -> tuple[str, ...]:
        """Return the names of the tensor parameters of a function in eager style."""
        names: tuple[str, ...] = self._eager_function().tensor_names
        return names

    def constants(self, **fixed: Any) -> tuple[str, ...]:
        """Return the sizes named by `T.const` of a function in eager style."""
        names: tuple[str, ...] = self._eager_function().constants(fixed)
        return names

    def compile_keys(self) -> list[CompileKey]:
        """Return the keys of the kernels compiled so far, the most recently used last."""
        kernels = self._kernels.values() if self._eager is None else self._eager.kernels()
        return list(dict.fromkeys(kernel.compile_key() for kernel in kernels))

    # Inside --------------------------------------------------------------------------------

    def _keep(self, args: tuple[Any, ...], kwargs: dict[str, Any], kernel: CompiledKernel) -> None:
        if self.style() == "eager":
            self._eager_function().keep(args, kwargs, kernel)
        else:
            self._kernels.put(self._key(args, kwargs), kernel)

    def _lazy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CompiledKernel:
        key = self._key(args, kwargs)
        known = self._kernels.get(key)
        if known is None:
            known = compile(self._traced(args, kwargs), **self._options)
            self._kernels.put(key, known)
        return known

    @outside_of_graphs
    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = self.func(*args, **kwargs)
        if isinstance(getattr(made, "kernel", made), Kernel):
            return made
        self._refuse_arrays(self.signature.bind(*args, **kwargs).arguments)
        raise FrontendTypeError(
            f"{self.func.__name__} returned {type(made).__name__}, not a @T.prim_func",
            span=calling_span(),
            hint="return the @T.prim_func, or declare tensors at the top of the body: "
            'A: T.Tensor((M, N), "float32")',
        )

    def _refuse_arrays(self, arguments: Mapping[str, Any]) -> None:
        """Say how functions of arrays are written, if one was called as if it were one."""
        name = next((n for n, value in arguments.items() if _is_array(value)), None)
        code = getattr(self.func, "__code__", None)
        if name is not None and "prim_func" not in getattr(code, "co_names", ()):
            raise FrontendTypeError(
                f"{self.func.__name__} was called with an array for {name!r}, and declares no "
                "tensors: @tile.jit does not translate array code",
                span=calling_span(),
                hint=f'begin it with M, N = T.const("M, N") and {name}: T.Tensor((M, N), '
                '"float32"), write the loops under `with T.Kernel(...)`, and return what T.empty '
                "made; or return a @T.prim_func, and call the kernel: f(sizes)(arrays)",
            )

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentCountError(
                f"{self.func.__name__}{self.signature}: {error}",
                span=calling_span(),
                hint="pass every parameter that has no default, by position or by name",
            ) from None
        bound.apply_defaults()
        with placed():
            try:
                return (frozen(bound.arguments), environment_of_code())
            except FrontendTypeError:
                self._refuse_arrays(bound.arguments)
                raise

    def _eager_function(self) -> Any:
        from tile_api.eager import EagerFunction

        with self._lock:
            if self._eager is None:
                self._eager = EagerFunction(self.func, self._options)
            return self._eager

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return what `pickle` writes: the name, as of functions."""
        from tile_api.pickling import reduced  # few programs pickle

        return reduced(self, self.func, self.func, self._options)

    def __repr__(self) -> str:
        return f"<tile.jit {self.func.__name__}, {self.mode}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind to an instance, so that methods can be decorated."""
        return self if instance is None else functools.partial(self, instance)


def _is_array(value: Any) -> bool:
    is_described = hasattr(value, "shape") and hasattr(value, "dtype")
    return is_described and not is_number_of_numpy(value) and not isinstance(value, type)


def jit(
    func: Callable[..., Any] | None = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    target: object = None,
    target_host: object = None,
    execution_backend: str | None = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, object] | None = None,
    debug_root_path: str | None = None,
    compile_flags: str | Sequence[str] | None = None,
    **unknown: Never,
) -> Any:
    """Decorate a function that makes a kernel; use it bare or with keywords.

    Parameters
    ----------
    out_idx
        Positions of parameters that are allocated and returned (lazy style only).
    target, pass_configs, compile_flags, verbose
        As for `tile_api.compile`.
    target_host, execution_backend, debug_root_path
        Accepted for compatibility: there is one runtime.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @tile.jit(out_idx=[-1])
    ... def double(n):
    ...     @T.prim_func
    ...     def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    ...         with T.Kernel(1, threads=32):
    ...             for i in T.Parallel(n):
    ...                 B[i] = A[i] * 2
    ...     return main
    >>> import numpy as np
    >>> double(4)(np.arange(4, dtype="float32"))
    array([0., 2., 4., 6.], dtype=float32)
    """
    refuse_unknown(jit, unknown)
    options = {
        "out_idx": out_idx,
        "target": target,
        "target_host": target_host,
        "execution_backend": execution_backend,
        "verbose": verbose,
        "pass_configs": pass_configs,
        "compile_flags": compile_flags,
    }
    if func is None:
        return lambda decorated: JITKernelFactory(decorated, options)
    if not callable(func):
        raise FrontendTypeError(
            f"tile.jit decorates functions, got {type(func).__name__}",
            span=calling_span(),
            hint="options are keywords: @tile.jit(out_idx=[-1])",
        )
    return JITKernelFactory(func, options)
