"""`tile.function`: a function of whole arrays, compiled for the arguments that it meets."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from tile_api.arrays.annotations import array_types, check
from tile_api.arrays.capturing.array import NAMES
from tile_api.arrays.capturing.capture import captured, inside
from tile_api.arrays.compared import read_same
from tile_api.arrays.deriving import compiled_first, derive
from tile_api.arrays.edited import place_of
from tile_api.arrays.equations.equations import Equations, Parameter
from tile_api.arrays.equations.evaluate import evaluated
from tile_api.arrays.equations.listing import listed
from tile_api.arrays.equations.numerics import LEVELS, computing
from tile_api.arrays.equations.recursion_limit import deep_recursion
from tile_api.arrays.explain import Explanation
from tile_api.arrays.function_caches import MOST_SIGNATURES, CachesBySettings, FunctionCaches
from tile_api.arrays.given import arrays_and_others, asks_for_gradients, dtype_in, key_of, names_for
from tile_api.arrays.gradients.captured_gradients import captured_vjp
from tile_api.arrays.gradients.passes import Differentiable, check_number, names_of, one_like
from tile_api.arrays.own_faults import blamed
from tile_api.arrays.planning.plan import Blocks
from tile_api.arrays.printing.program_text import Program
from tile_api.arrays.running import Compiled, Derived, Edited, together, traced
from tile_api.arrays.sharding.rules import Sharding, sharding_of
from tile_api.arrays.tuning import Tuner, budget_of
from tile_api.cache import KernelCache
from tile_api.frontend.source import calling_span
from tile_api.kernel import CompiledKernel
from tile_api.lowered import LoweredKernel
from tile_api.lowering import lower
from tile_api.pickling import reduced
from tile_api.tracebacks import concise
from tile_core.errors import ArgumentCountError, FrontendTypeError, FrontendValueError
from tile_core.records import Uncopied

_CAPTURING = threading.RLock()
"""Equal expressions are one object: two threads must not make one at a time."""


class Function(Uncopied):
    """A function of whole arrays.

    Attributes
    ----------
    func
        The function as it was written.

    Examples
    --------
    >>> import numpy as np
    >>> Function(lambda x: 2 * x, target="cpu")(np.arange(3))
    array([0, 2, 4])
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        target: str | None = None,
        blocks: Blocks | None = None,
        kernels: str | None = None,
        numerics: str = "default",
        tune: object = None,
    ) -> None:
        if not isinstance(func, types.FunctionType) or func.__code__.co_flags & _RUNS_LATER:
            is_late = isinstance(func, types.FunctionType)
            told = f"{func.__name__} runs later, by async or yield: it" if is_late else repr(func)
            raise FrontendTypeError(
                f"{told} is no function that @tile.function could decorate",
                span=calling_span(),
                hint="write @tile.function above a `def` that returns arrays",
            )
        if not isinstance(blocks, (Blocks, type(None))):
            raise FrontendTypeError(
                f"blocks are a {type(blocks).__name__}", span=calling_span(),
                hint="blocks=Blocks(rows=32), of tile_api.arrays.planning.plan",
            )  # fmt: skip
        if numerics not in LEVELS:
            raise FrontendValueError(
                f"numerics={numerics!r} is no way to compute", span=calling_span(),
                hint=f"one of {', '.join(map(repr, LEVELS))}",
            )  # fmt: skip
        functools.update_wrapper(self, func)
        self.func = func
        self._signature = inspect.signature(func)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise FrontendTypeError(
                    f"{func.__name__} takes any number of arguments: {parameter}",
                    span=calling_span(),
                    hint="give each array a parameter",
                )
        self._array_types = array_types(func)
        again = {"target": target, "blocks": blocks, "kernels": kernels, "tune": tune}
        self._given: dict[str, Any] = again | {"numerics": numerics}
        self._base: Function | None = None
        self._target = target
        self._blocks = blocks
        self._numerics = numerics
        self._budget = budget_of(tune, blocks, kernels)
        self._equations: KernelCache[Equations] = KernelCache(MOST_SIGNATURES)
        self._file = None if kernels is None else place_of(kernels, func)
        self._caches = CachesBySettings(counts=self._file is None)
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        """Return what it is."""
        return f"<tile.function {self.func.__name__}>"

    @concise
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it: compiled on the first call with arguments of these shapes and types.

        In another function that is captured it is a part of that one.
        """
        if NAMES.get(None) is not None:
            bound = self._bind(args, kwargs)
            check(self.func, self._array_types, bound.arguments)
            return inside(self.func)(*bound.args, **bound.kwargs)
        if asks_for_gradients((*args, *kwargs.values())):
            return self._with_autograd(args, kwargs)
        given = (*args, *kwargs.values()) if kwargs else args
        cached = self._caches.now()
        found = cached.calls.find(given, kwargs)
        if found is not None:
            compiled, numbers = found
            return compiled(args if numbers is None else [given[n] for n in numbers])
        arrays, others = self._bound(args, kwargs)
        key, derived = self._found(cached, arrays, others)
        compiled = self._ready(cached, key, derived, arrays, others)
        alone = key_of(arrays, others)
        told = None if key == alone else cached.symbols.told(alone)
        cached.calls.remember(compiled, given, kwargs, arrays, told)
        return compiled(arrays.values())

    def _with_autograd(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return results for tensors of which torch asks for gradients."""
        from tile_api.integrations.array_autograd import applied

        of, arrays = self.differentiable(*args, **kwargs)
        return together(applied(of, arrays), of.equations)

    def differentiable(self, *args: Any, **kwargs: Any) -> tuple[Differentiable, list[Any]]:
        """Return the program for arguments, which has gradients, and its arrays in their order."""
        arrays, others = self._bound(args, kwargs)
        return self._gradients_of(arrays, others), [*arrays.values()]

    def on(self, target: str) -> Function:
        """Return the function for another target."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._base, made._target, made._lock = self._base or self, target, threading.RLock()
        made._caches = self._caches.again()
        return made

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Travel by name; one that is for another target as the first one, and the target."""
        if self._base is not None:
            return Function.on, (self._base, self._target)
        found = reduced(self, self.func)
        again = functools.partial(Function, **self._given)
        return found if isinstance(found, str) else (again, (self.func,))

    def _ready(
        self, cached: FunctionCaches, key: Any, derived: Derived, arrays: Mapping[str, Any],
        others: Mapping[str, Any],
    ) -> Compiled | Edited:  # fmt: skip
        """Return kernels compiled, by what they are known by."""
        compiled = cached.compiled.get(key)
        if compiled is None:
            with self._lock:
                compiled = cached.compiled.get(key)
                if compiled is None:
                    if self._file is None:
                        with computing(self._numerics):
                            compiled = compiled_first(derived, self._target)
                        cached.derived.put(key, compiled.derived)
                        compiled.function = self.func
                    else:
                        plain = self._captured(arrays, others)
                        of = derived.equations, plain, self.func, others
                        compiled = Edited(read_same(self._file, *of, self._target))
                    cached.compiled.put(key, compiled)
        return compiled

    def compiled(self, *args: Any, **kwargs: Any) -> Compiled | Edited:
        """Return what runs for arguments like these: it takes a sequence of its arrays."""
        arrays, others = self._bound(args, kwargs)
        cached = self._caches.now()
        return self._ready(cached, *self._found(cached, arrays, others), arrays, others)

    @concise
    def kernels(self, *args: Any, **kwargs: Any) -> list[CompiledKernel]:
        """Return the compiled kernels for arguments, in the order in which they run."""
        found = self.compiled(*args, **kwargs)
        if isinstance(found, Edited):
            raise FrontendTypeError(
                f"{self.func.__name__} runs what {found.edited.file} launches",
                span=calling_span(),
                hint="import the file: each @tile.jit function in it returns a kernel",
            )
        return [kernel for kernel, _ in found.kernels]

    @concise
    def source(self, *args: Any, tier: str = "developer", **kwargs: Any) -> str:
        """Return the kernels for arguments as a program, which compares them with NumPy.

        Parameters
        ----------
        tier
            ``"developer"``: kernels of tiles. ``"expert"``: what one thread does on the GPU that
            the function is for, which need not be here.
        """
        if tier not in ("developer", "expert"):
            raise FrontendTypeError(
                f"a function of arrays has no source in the tier {tier!r}",
                span=calling_span(),
                hint='tier="developer" or tier="expert"',
            )
        arrays, others = self._bound(args, kwargs)
        derived = self._of(arrays, others)
        program = Program(derived.equations, derived.kernels, self.func, others)
        if tier == "developer":
            with deep_recursion():
                return program.of_tiles()
        return program.of_threads(self._lowered(derived))

    def _lowered(self, derived: Derived) -> dict[str, LoweredKernel]:
        return {
            name: lower(kernel, out_idx=outputs, target=self._target, pass_configs=derived.configs)
            for name, (kernel, outputs) in traced(derived).items()
        }

    @concise
    def report(
        self, path: str | os.PathLike[str], *args: Any, kernel: int = -1, **kwargs: Any
    ) -> None:
        """Write a page on one of the kernels for arguments: see `CompiledKernel.report`.

        Parameters
        ----------
        kernel
            Which of them, by its number in the order in which they run: the last one.
        """
        from tile_api.report import ReportRequest, write_report  # few look at pages

        derived = self._of(*self._bound(args, kwargs))
        made = self._lowered(derived)[derived.kernels[kernel].name].lowered
        origin = derived.explanation.origins()
        request = ReportRequest(made.kernel, made.target, made.options, made.host, origin=origin)
        write_report(request, path)

    @concise
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return the kernels for arguments: roles of dimensions, rules, why there are several."""
        return self._of(*self._bound(args, kwargs)).explanation

    def sharding(self, *args: Any, machines: Any = 2, wrt: Any = None, **kwargs: Any) -> Sharding:
        """Return which dimensions of arguments may be split among machines, and why others not.

        Parameters
        ----------
        machines
            How many there are: a number, or one for each dimension of a mesh of them.
        wrt
            Tell of the gradients with respect to these arguments instead: a name, or names.
        """
        arrays, others = self._bound(args, kwargs)
        plain = self._captured(arrays, others)
        capture = functools.partial(captured, self.func, others=others, names=names_for(arrays))
        asked = None if wrt is None else names_of(plain, wrt)
        with _CAPTURING, deep_recursion(), computing(self._numerics):
            return sharding_of(plain, capture, np.atleast_1d(machines).tolist(), asked)

    def equations(self, *args: Any, **kwargs: Any) -> Equations:
        """Return what the function computes for arguments."""
        return self._captured(*self._bound(args, kwargs))

    def interpret(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the equations mean for arguments, computed with NumPy."""
        arrays, others = self._bound(args, kwargs)
        equations = self._captured(arrays, others)
        with deep_recursion():
            results = evaluated(equations, {n: np.asarray(x) for n, x in arrays.items()})
        return together(results, equations)

    @concise
    def vjp(
        self, *args: Any, wrt: str | Sequence[str] | None = None, **kwargs: Any
    ) -> tuple[Any, Callable[..., Any]]:
        """Return the results, and a function from cotangents of results to gradients of arguments.

        In another function that is captured both are a part of that one: its gradients are second
        derivatives.

        Parameters
        ----------
        wrt
            The argument, or arguments, to have gradients: a name gives one array, names a tuple.
            Default: all arguments that hold floats, one array if there is one.

        Raises
        ------
        NoGradient
            If an argument or a result holds no floats.
        """
        if NAMES.get(None) is not None:
            bound = self._bind(args, kwargs)
            bound.apply_defaults()
            return captured_vjp(inside(self.func), bound, wrt)
        arrays, others = self._bound(args, kwargs)
        of = self._gradients_of(arrays, others)
        names = names_of(of.equations, wrt)
        results, pull = of.forward([*arrays.values()], names)
        is_one = isinstance(wrt, str) or (wrt is None and len(names) == 1)
        return together(results, of.equations), replace(pull, is_one=is_one)

    @concise
    def grad(self, *args: Any, wrt: str | Sequence[str] | None = None, **kwargs: Any) -> Any:
        """Return the gradients of a function that returns one number; `wrt` is that of `vjp`.

        Raises
        ------
        NoGradient
            If the function returns something else, and for the reasons of `vjp`.
        """
        if NAMES.get(None) is None:
            check_number(self._gradients_of(*self._bound(args, kwargs)).equations)
        result, pull = self.vjp(*args, wrt=wrt, **kwargs)
        return pull(one_like(result))

    def _gradients_of(self, arrays: Mapping[str, Any], others: Mapping[str, Any]) -> Differentiable:
        key, cache = key_of(arrays, others), self._caches.now().differentiable
        with self._lock:
            found = cache.get(key)
            if found is None:
                equations = self._captured(arrays, others)
                found = Differentiable(equations, self._compile, _CAPTURING)
                cache.put(key, found)
            return found

    def _compile(self, equations: Equations) -> Compiled:
        with computing(self._numerics):
            return compiled_first(derive(equations, self._blocks, self._target), self._target)

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentCountError(
                f"{self.func.__name__}: {error}", span=calling_span()
            ) from error

    def _bound(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        bound = self._bind(args, kwargs)
        check(self.func, self._array_types, bound.arguments)
        bound.apply_defaults()
        return arrays_and_others(self.func.__name__, bound.arguments)

    def _dims(self, name: str, x: Any) -> tuple[str | int | None, ...]:
        kind = self._array_types.get(name)
        return () if kind is None else kind.dimensions(len(x.shape)) or ()

    def _of(self, arrays: Mapping[str, Any], others: Mapping[str, Any]) -> Derived:
        return self._found(self._caches.now(), arrays, others)[1]

    def _derive(
        self, cache: KernelCache[Derived], arrays: Mapping[str, Any], key: Any,
        equations: Equations, others: Sequence[Any],
    ) -> Any:  # fmt: skip
        """Return the key of kernels: of those for other sizes that are the same, if some are."""
        found = {k: made for k in others if (made := cache.get(k)) is not None}
        blocks = frozenset[Blocks]().union(*(made.chosen for made in found.values()))
        tuner = Tuner(self._budget, arrays) if self._budget.runs else None
        with blamed(equations.name, "written", lambda: "\n".join(listed(equations))):
            derived = derive(equations, self._blocks, self._target, tuner=tuner, known=blocks)
        same = next((k for k, made in found.items() if made.source == derived.source), None)
        if same is None:
            cache.put(key, derived)
        return key if same is None else same

    def _found(
        self, cached: FunctionCaches, arrays: Mapping[str, Any], others: Mapping[str, Any]
    ) -> tuple[Any, Derived]:
        """Return what kernels for arguments are known by, and these: those of other sizes, too."""
        alone = key_of(arrays, others)
        found = cached.known(alone)
        if found is None:
            with _CAPTURING, deep_recursion(), computing(self._numerics):
                found = cached.known(alone)
                if found is None:
                    plain = self._captured(arrays, others)
                    names = names_for(arrays)
                    capture = functools.partial(captured, self.func, others=others, names=names)
                    derive = functools.partial(self._derive, cached.derived, arrays)
                    key = cached.symbols.made(alone, plain, capture, derive)
                    made = cached.derived.get(key)
                    assert made is not None
                    found = key, made
        return found

    def _captured(self, arrays: Mapping[str, Any], others: Mapping[str, Any]) -> Equations:
        key = key_of(arrays, others)
        with _CAPTURING, deep_recursion(), computing(self._numerics):
            equations = self._equations.get(key)
            if equations is None:
                parameters = [
                    Parameter(n, tuple(x.shape), dtype_in(x), self._dims(n, x))
                    for n, x in arrays.items()
                ]
                equations = captured(self.func, parameters, others, names_for(arrays))
                if equations.structure is None:
                    result = {"return": equations.outputs[0]}
                    check(self.func, self._array_types, {**arrays, **result})
                self._equations.put(key, equations)
            return equations


_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@overload
def function(func: Callable[..., Any], /) -> Function: ...
@overload
def function(
    *,
    target: str | None = None,
    blocks: Blocks | None = None,
    kernels: str | None = None,
    numerics: str = "default",
    tune: object = None,
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    func: Callable[..., Any] | None = None,
    /,
    *,
    target: str | None = None,
    blocks: Blocks | None = None,
    kernels: str | None = None,
    numerics: str = "default",
    tune: object = None,
) -> Any:
    """Make kernels of a function of whole arrays, written with NumPy.

    Parameters
    ----------
    target
        What it runs on, as `tile.compile` takes it.
    blocks
        Sizes of blocks; None: those that a model of the target expects to be fastest.
    kernels
        A file that runs in place of generated kernels: what `Function.source` printed, edited. It
        is looked for beside the function's own file, then from the current folder. Its kernels
        are compared with the equations of the function when they first run.
    numerics
        ``"default"``: errors are at most four times those of NumPy in the same types.
        ``"strict"``: every operation is rounded as it is written, only sums add in another order.
        ``"fast"``: GPUs approximate functions and divisions, as ``TL_ENABLE_FAST_MATH`` says.
    tune
        For how long sizes of blocks are measured on the arrays of the first call: seconds, a time
        as ``"2m"``, or ``"full"``; `explain` tells what was found, and tables keep it for this
        machine. Default: ``"model"``, nothing is run.

    Raises
    ------
    TuningError
        If `tune` is no budget, or there is nothing to tune.
    KernelFileError, OtherEquations, KernelsDiffer
        When the function is called, if `kernels` cannot stand for it.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> @tile.function(target="cpu")
    ... def softmax(x):
    ...     e = np.exp(x - x.max(axis=-1, keepdims=True))
    ...     return e / e.sum(axis=-1, keepdims=True)
    >>> softmax(np.zeros((1, 4), "float32"))
    array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """
    made = functools.partial(
        Function, target=target, blocks=blocks, kernels=kernels, numerics=numerics, tune=tune
    )
    return made if func is None else made(func)
