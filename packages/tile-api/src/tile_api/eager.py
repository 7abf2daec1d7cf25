"""The eager style of `tile.jit`: a call with tensors compiles, runs and returns the outputs."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tile_api.arguments import declared
from tile_api.cache import KernelCache
from tile_api.compiling import compile
from tile_api.frontend.eager import EagerSignature, eager_function
from tile_api.frontend.function import PrimFunc
from tile_api.frozen_values import frozen
from tile_api.kernel import CompiledKernel
from tile_api.settings import environment_of_code
from tile_core.errors import ArgumentCountError, ConstBindingError, FrontendTypeError, LaunchError
from tile_core.ir.buffer import Buffer
from tile_core.ir.host_data import HostNames, tensor_of
from tile_launch.dynamo import outside_of_graphs
from tile_launch.symbol_solver import check_rank, plain_view, shape_of, strides_of


class EagerFunction:
    """A function in eager style, its kernels by everything that changes them.

    A kernel is compiled, with `options` as keywords of `tile_api.compile`, for the compile-time
    arguments and the values of the `T.const` names: shapes and strides of the tensors give these.
    """

    def __init__(self, func: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._func = func
        self._options = {k: v for k, v in options.items() if k != "out_idx"}
        self._signature = inspect.signature(func)
        parameters = self._signature.parameters
        self._names = tuple(parameters)
        self._positional = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values())
        self._defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
        self._parsed = eager_function(func)
        self._tensor_names = self._parsed.tensor_names
        self._fixed_names = tuple(n for n in self._names if n not in self._tensor_names)
        self._signatures: KernelCache[EagerSignature] = KernelCache()
        self._kernels: KernelCache[CompiledKernel] = KernelCache()

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Compile for these arguments unless that was done before, and launch."""
        given = self._arguments(args, kwargs)
        kernel = self._kernel(given, {})
        return kernel(*[given[name] for name in self._tensor_names])

    def compile(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CompiledKernel:
        """Return the kernel for these arguments without running it.

        Tensors may be left out if `kwargs` gives the constants that they would, by their names.
        """
        given, constants = self._partial(args, kwargs)
        return self._kernel(given, constants)

    def keep(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], kernel: CompiledKernel
    ) -> None:
        """Remember a kernel that was compiled elsewhere for these arguments; see `compile`."""
        given, constants = self._partial(args, kwargs)
        fixed, key = self._split(given)
        found = self._constants(self._phase_one(fixed, key), given, constants)
        self._kernels.put((key, tuple(found.items()), environment_of_code()), kernel)

    def kernels(self) -> list[CompiledKernel]:
        """Return the kernels compiled so far."""
        return self._kernels.values()

    def trace(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> PrimFunc:
        """Return the traced function for these arguments; see `compile`."""
        given, constants = self._partial(args, kwargs)
        fixed, key = self._split(given)
        signature = self._phase_one(fixed, key)
        found = self._constants(signature, given, constants)
        signature.require_kept(found, given)
        return self._traced(fixed, found)

    @property
    def tensor_names(self) -> tuple[str, ...]:
        """The parameters that are tensors or pointers, in the order of the signature."""
        return self._tensor_names

    def constants(self, kwargs: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names given by `T.const`, for compile-time arguments by name."""
        given, _ = self._partial((), kwargs)
        return tuple(self._phase_one(*self._split(given)).constants)

    # Inside --------------------------------------------------------------------------------

    def _kernel(self, given: Mapping[str, Any], more: Mapping[str, int]) -> CompiledKernel:
        fixed, key = self._split(given)
        signature = self._phase_one(fixed, key)
        constants = self._constants(signature, given, more)
        whole = (key, tuple(constants.items()), environment_of_code())
        kernel = self._kernels.get(whole)
        if kernel is None:
            signature.require_kept(constants, given)
            kernel = compile(self._traced(fixed, constants), **self._options)
            self._kernels.put(whole, kernel)
        return kernel

    @outside_of_graphs
    def _traced(self, fixed: Mapping[str, Any], constants: Mapping[str, int]) -> PrimFunc:
        return PrimFunc(self._parsed.trace(fixed, constants), self._func, {})

    def _split(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the compile-time arguments, and a key for them."""
        fixed = {n: given[n] for n in self._fixed_names}
        return fixed, tuple([frozen(v) for v in fixed.values()])

    def _phase_one(self, fixed: Mapping[str, Any], key: Any) -> EagerSignature:
        known = self._signatures.get(key)
        if known is None:
            known = outside_of_graphs(self._parsed.signature)(fixed)
            self._signatures.put(key, known)
        return known

    def _constants(
        self, signature: EagerSignature, given: Mapping[str, Any], more: Mapping[str, int]
    ) -> dict[str, int]:
        """Return the constants that tensors and keywords determine."""
        for name in more:
            if name not in signature.constants:
                raise ArgumentCountError(
                    f"{self._func.__name__} has no parameter and no T.const {name!r}",
                    hint=f"its constants are {', '.join(signature.constants) or 'none'}",
                )
        found: dict[str, int] = dict(more)
        for name, place in signature.constants.items():
            tensor = given.get(place.tensor)
            if tensor is None:
                continue
            param = signature.tensors[place.tensor]
            size = self._size(param, tensor, place.dim, is_stride=place.is_stride)
            if found.setdefault(name, size) != size:
                raise ConstBindingError(
                    f"{name}={found[name]} was given, and {name} is {size} in {place.tensor}",
                    span=param.span,
                    hint=f"leave out {name}, or {place.tensor}",
                )
        return {name: found[name] for name in signature.constants if name in found}

    def _size(self, param: Buffer, tensor: Any, dim: int, *, is_stride: bool) -> int:
        """Return an extent or a stride of an argument, in elements of the parameter."""
        shape = getattr(tensor, "shape", ())
        if not is_stride and param.dtype.packing == 1 and len(shape) == param.rank:
            size = shape[dim]
            if type(size) is int:
                return size
        name = f"{self._func.__name__}.{param.name}"
        try:
            bound = tensor_of(param, HostNames()), plain_view(name, tensor)
            check_rank(name, *bound)
        except LaunchError as error:
            error.notes = declared(param)
            raise
        return (strides_of if is_stride else shape_of)(bound)[dim]

    def _arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return every argument by name, in the order of the signature."""
        if not kwargs and len(args) <= self._positional:
            given = self._defaults | dict(zip(self._names, args, strict=False))
            if len(given) == len(self._names):
                return given
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentCountError(
                f"{self._func.__name__}{self._signature}: {error}",
                hint="pass every parameter that has no default, by position or by name",
            ) from None
        bound.apply_defaults()
        return bound.arguments

    def _partial(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the arguments, with None for tensors left out, and constants by keyword."""
        mine = {n: v for n, v in kwargs.items() if n in self._names}
        positional = self._names[: len(args)]
        missing = {n: None for n in self._tensor_names if n not in mine and n not in positional}
        constants = {}
        for name, value in kwargs.items():
            if name not in self._names:
                constants[name] = self._integer(name, value)
        return self._arguments(args, {**mine, **missing}), constants

    def _integer(self, name: str, value: Any) -> int:
        try:
            return operator.index(value)
        except TypeError:
            raise FrontendTypeError(
                f"the constant {name!r} of {self._func.__name__} is an int, got "
                f"{type(value).__name__}",
                hint="constants stand for dimensions: pass a Python int",
            ) from None
