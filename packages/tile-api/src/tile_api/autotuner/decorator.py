"""`tile.autotune`: functions that find their own best configuration at the first call."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from typing_extensions import Unpack

from tile_api.autotuner.arguments import (
    agreeing,
    bound_arguments,
    bucket_of,
    described,
    is_complete,
    missing_argument,
    rounded_tensors,
    sizes_of,
)
from tile_api.autotuner.configs import Config, listed_configs, pruned
from tile_api.autotuner.identity import identity_of
from tile_api.autotuner.options import (
    OPTION_NAMES,
    Task,
    TuneKeywords,
    TuneOptions,
    get_autotune_inputs,
)
from tile_api.autotuner.tune import Tuned, chosen_function, tune
from tile_api.cache import KernelCache
from tile_api.frontend.source import calling_span
from tile_api.frozen_values import frozen, is_number_of_numpy
from tile_api.jitting import JITKernelFactory, jit
from tile_api.settings import environment_of_code
from tile_core.errors import ArgumentCountError, TuningError
from tile_core.records import Uncopied
from tile_core.spelling import nearest


class AutotunedFactory(Uncopied):
    """What ``@tile.autotune`` makes of a function decorated with ``@tile.jit``.

    It is called as the function is. Parameters that configurations set may be left out: the first
    call with arguments of a bucket then tunes, unless a table knows the result.
    """

    def __init__(
        self,
        factory: JITKernelFactory,
        configs: object,
        options: TuneOptions,
        key: object = None,
        prune: object = None,
        prune_by: object = None,
        left_out: Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, factory.func)
        self.factory, self.configs, self.options = factory, configs, options
        self._key, self._prune, self._prune_by = key, prune, prune_by
        self._left_out = tuple(left_out)
        self._lock = threading.RLock()
        self._results: KernelCache[tuple[Tuned | None]] = KernelCache()

    @property
    def func(self) -> Callable[..., Any]:
        """The decorated function."""
        return self.factory.func

    @property
    def signature(self) -> inspect.Signature:
        """Its Python signature."""
        return self.factory.signature

    @property
    def mode(self) -> str:
        """``"lazy"``, ``"eager"``, or ``"auto"`` before the first call."""
        return self.factory.mode

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the best kernel (lazy style), or run it and return the outputs (eager).

        ``__return_kernel=True`` is TileLang's spelling of `compile`.
        """
        if kwargs and kwargs.pop("__return_kernel", False):
            return self.compile(*args, **kwargs)
        tuned = self._result(args, kwargs)
        if tuned is None:
            return self.factory(*args, **kwargs)
        if not self.factory.is_eager:
            return tuned.kernel
        return tuned.kernel(*self._tensors(bound_arguments(self.func, args, kwargs)))

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """Return the best kernel without running it; tune if that was not done before."""
        tuned = self._result(args, kwargs)
        return self.factory.compile(*args, **kwargs) if tuned is None else tuned.kernel

    def tune(self, *args: Any, **kwargs: Any) -> Tuned:
        """Return the result of tuning for these arguments, with what became of each candidate.

        Raises
        ------
        TuningError
            If the call gives all that is tuned.
        """
        tuned = self._result(args, kwargs)
        if tuned is None:
            raise TuningError(
                f"the call of {self.func.__name__} leaves nothing to tune",
                span=calling_span(),
                hint="leave out the parameters that configurations set",
            )
        return tuned

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        """Return the traced function of the values given, or of the best configuration.

        That is the best known one, or the one that the cost model expects to be; nothing is run.
        """
        task = self._task(args, kwargs)
        return self.factory.get_tir(*args, **kwargs) if task is None else chosen_function(task)

    def with_configs(self, configs: object) -> AutotunedFactory:
        """Return the same function with other configurations."""
        return self._like(configs, self.options)

    def with_options(self, options: TuneOptions) -> AutotunedFactory:
        """Return the same function, measured in another way."""
        return self._like(self.configs, options)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return what `pickle` writes: the name, as of functions."""
        stated = (self._key, self._prune, self._prune_by, self._left_out)
        from tile_api.pickling import reduced  # few programs pickle

        return reduced(self, self.func, self.factory, self.configs, self.options, *stated)

    def __repr__(self) -> str:
        return f"<tile.autotune {self.func.__name__}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind to an instance, so that methods can be decorated."""
        return self if instance is None else functools.partial(self, instance)

    def _like(self, configs: object, options: TuneOptions) -> AutotunedFactory:
        return AutotunedFactory(
            self.factory, configs, options, self._key, self._prune, self._prune_by, self._left_out
        )

    # Inside --------------------------------------------------------------------------------

    def _result(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tuned | None:
        """Return the result for a call, tuning if it is the first of its kind.

        None means that there is nothing to tune. A call like an earlier one costs a look-up.
        """
        key = (
            tuple([_frozen(v) for v in args]),
            tuple([(n, _frozen(v)) for n, v in kwargs.items()]),
            environment_of_code(),
        )
        known = self._results.get(key)
        if known is not None:
            return known[0]
        with self._lock:
            known = self._results.get(key)
            if known is None:
                task = self._task(args, kwargs)
                known = (None if task is None else tune(task),)
                self._results.put(key, known)
            return known[0]

    def _task(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Task | None:
        """Return what a call asks to tune; None if there is nothing to tune."""
        names = self.signature.parameters
        constants = {n: v for n, v in kwargs.items() if n not in names}
        named = {n: v for n, v in kwargs.items() if n in names}
        if constants and not self.factory.is_eager:
            named, constants = dict(kwargs), {}  # binding them says what is wrong
        given = {**bound_arguments(self.func, args, named), **constants}
        defaults = {n: p.default for n, p in names.items() if p.default is not p.empty}
        configs = listed_configs(self.configs, {**given, **defaults, **given}, names, len(args))
        tuned = {name for config in configs for name in config.values}
        if tuned & given.keys() and is_complete(self.func, given):
            return None
        self._require(given, tuned)
        fixed = {n: v for n, v in defaults.items() if n not in tuned}
        configs = pruned(
            agreeing(configs, given), self._prune, self._prune_by, {**fixed, **given}, tuple(names)
        )
        return self._made(configs, given, fixed, tuned)

    def _made(
        self,
        configs: Sequence[Config],
        given: Mapping[str, Any],
        fixed: Mapping[str, Any],
        tuned: set[str],
    ) -> Task:
        compile_options, options = self.factory.options, self.options
        inputs, told = get_autotune_inputs(), dict(given)
        if self.factory.is_eager:
            params = self._parameters(configs, given)
            tensors = tuple(self._tensors(given))
            settled = {} if tensors else self._settled(configs, given, inputs)
            known = {**settled, **sizes_of(params, given), **options.sizes}
            options = replace(options, sizes=known)
            inputs = tensors or None if inputs is None else inputs
            told |= rounded_tensors(params, given) if self._key is None else {}
        else:
            settled = self._settled(configs, given, inputs)
            options = replace(options, sizes={**settled, **options.sizes})
        return Task(
            self.func.__name__,
            identity_of(self.func, compile_options, tuned),
            bucket_of(told, fixed, self._key, self._left_out),
            configs,
            lambda values: self._traced({**given, **values}),
            compile_options,
            options,
            inputs,
        )

    def _settled(
        self, configs: Sequence[Config], given: Mapping[str, Any], inputs: Sequence[Any] | None
    ) -> dict[str, int]:
        """Return the symbolic dimensions that inputs have which the user supplies.

        Those of `set_autotune_inputs`, else what `supply_prog` makes where dimensions are open.
        """
        from tile_api.autotuner.inputs import open_parameters

        supply = self.options.supply_prog
        if inputs is None and supply is None:
            return {}
        params = self._parameters(configs, given)
        passed = open_parameters(params, self.factory.options.get("out_idx")) if params else []
        if inputs is None and supply is not None:
            seen = [param for _, param in passed]
            if all(isinstance(extent, int) for param in seen for extent in param.shape):
                return {}
            made = supply(seen)
            inputs = made if isinstance(made, list | tuple) else [made]
        pairs = zip(passed, inputs or (), strict=False)
        return sizes_of([p for p, _ in passed], {p.name: tensor for (p, _), tensor in pairs})

    def _parameters(self, configs: Sequence[Config], given: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what all candidates take: it is known from the first that can be traced.

        Nothing if none can, which is told with the reason of each when they are tried.
        """
        for config in configs:
            with suppress(Exception):
                params: tuple[Any, ...] = self._traced({**given, **config.values}).params
                return params
        return ()

    def _traced(self, arguments: Mapping[str, Any]) -> Any:
        """Return the traced function for arguments by name, ``self`` among them."""
        constants = {n: v for n, v in arguments.items() if n not in self.signature.parameters}
        named = {n: v for n, v in arguments.items() if n not in constants}
        bound = self.signature.bind_partial()
        bound.arguments.update({n: named[n] for n in self.signature.parameters if n in named})
        return self.factory.get_tir(*bound.args, **bound.kwargs, **constants)

    def _require(self, given: Mapping[str, Any], tuned: set[str]) -> None:
        missing = missing_argument(self.func, given, tuned)
        if missing is not None and not self.factory.is_eager:
            raise ArgumentCountError(
                f"{self.func.__name__}{self.signature}: missing {missing!r}, which no "
                "configuration sets",
                span=calling_span(),
                hint="pass it, or set it in every configuration",
            )

    def _tensors(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the tensors of a call in eager style, in the order of the parameters."""
        names = [n for n in self.signature.parameters if hasattr(given.get(n), "shape")]
        return [given[name] for name in names]


def _frozen(value: Any) -> Any:
    """Return a hashable stand-in for an argument; tensors of one shape are alike."""
    is_tensor = hasattr(value, "shape") and not is_number_of_numpy(value)
    return described(value) if is_tensor else frozen(value)


def autotune(
    func: Any = None, *, configs: object = None, key: object = None, prune: object = None,
    prune_configs_by: object = None, do_not_specialize: Sequence[str] | None = None,
    **options: Unpack[TuneKeywords],
) -> Any:  # fmt: skip
    """Decorate a function made by ``@tile.jit``: its first call finds the best configuration.

    Parameters
    ----------
    configs
        A list of dictionaries from parameters to values, or a function of the call's arguments
        that returns one. ``"pass_configs"`` in a dictionary is for the compiler.
    key
        Which arguments results depend on: names, or names with functions that round, or a
        function of all arguments. None means all arguments.
    prune, prune_configs_by
        See `tile_api.autotuner.configs.pruned`.
    do_not_specialize
        Arguments that do not matter for `key`.
    options
        How candidates are measured and checked, and for how long:
        `tile_api.autotuner.options.TuneOptions`.

    Raises
    ------
    TuningError
        If what is decorated, or an option, makes no sense.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @tile.autotune(configs=[{"block": 32}, {"block": 64}], budget="model")
    ... @tile.jit(out_idx=[-1], target="cpu")
    ... def ones(n, block=32):
    ...     @T.prim_func
    ...     def main(A: T.Tensor((n,), "float32")):
    ...         with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
    ...             for i in T.Parallel(block):
    ...                 A[bx * block + i] = 1.0
    ...     return main
    >>> ones(64)().sum()
    np.float32(64.0)
    """
    _refuse_unknown(options)
    measured = TuneOptions(**options)

    def decorate(factory: Any) -> AutotunedFactory:
        if configs is None:
            raise TuningError(
                "tile.autotune needs configs",
                span=calling_span(),
                hint='write @tile.autotune(configs=[{"block_M": 64}, {"block_M": 128}])',
            )
        made, left_out = _factory_of(factory), tuple(do_not_specialize or ())
        return AutotunedFactory(made, configs, measured, key, prune, prune_configs_by, left_out)

    return decorate if func is None else decorate(func)


def _factory_of(given: Any) -> JITKernelFactory:
    if isinstance(given, JITKernelFactory):
        return given
    if not inspect.isfunction(given):
        raise TuningError(
            f"tile.autotune decorates functions, got {type(given).__name__}",
            span=calling_span(),
            hint="write @tile.autotune(configs=...) above @tile.jit",
        )
    made: JITKernelFactory = jit(given)
    return made


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    unknown = next((name for name in options if name not in OPTION_NAMES), None)
    if unknown is None:
        return
    own = [n for n, p in inspect.signature(autotune).parameters.items() if p.kind is p.KEYWORD_ONLY]
    known = [*own, *OPTION_NAMES]
    near = nearest(unknown, known)
    raise TuningError(
        f"tile.autotune has no option {unknown!r}",
        span=calling_span(),
        hint=f"did you mean {near}=...?" if near else f"it has {', '.join(known)}",
    )
