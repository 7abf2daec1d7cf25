"""Functions that make kernels as operators of torch: each set of sizes has its kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch

from tile_api.arguments import Signature
from tile_api.cache import KernelCache
from tile_api.compile_request import kernel_of, with_outputs
from tile_api.integrations.torch_fakes import fake_of
from tile_api.integrations.torch_gradients import gradient_of
from tile_api.integrations.torch_ops import Source, register, returned
from tile_api.integrations.torch_schema import check_mutates, check_op_name, schema_of
from tile_api.launching import Launcher
from tile_api.settings import Settings
from tile_api.tensors import torch_device
from tile_core.errors import TileError, TorchOpSignatureError
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import default_host
from tile_launch.views import View

USUAL_SIZE = 128
"""What stands for every size of a function in eager style while its schema is read."""

_ALIGNED = 1 << 20


class KernelFactory(Protocol):
    """What is asked of a function that makes kernels: see `tile_api.jitting.JITKernelFactory`."""

    func: Callable[..., Any]
    signature: inspect.Signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a kernel, or run it."""

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        """Return the traced function."""

    def style(self) -> str:
        """Return ``"lazy"`` or ``"eager"``."""

    def tensor_names(self) -> tuple[str, ...]:
        """Return the names of the tensor parameters."""

    def constants(self, **fixed: Any) -> tuple[str, ...]:
        """Return the names of the sizes."""


def factory_op(
    factory: KernelFactory,
    options: Mapping[str, Any],
    name: str,
    sizes: object,
    like: object,
    fixed: Mapping[str, Any],
    mutates_args: object,
    backward: object,
    setup_context: object,
) -> Any:
    """Return a function that makes kernels as an operator; see `JITKernelFactory.as_torch_op`.

    It was decorated with `options`: keywords of `tile_api.compile`.
    """
    check_op_name(name)
    maker = _maker(factory, options, sizes, like, fixed)
    signature = Signature.of(maker.example())
    mutates = check_mutates(signature, mutates_args)

    def as_op(kernel: Any) -> Any:
        return kernel.as_torch_op(f"{name}_backward")

    gradient = gradient_of(signature, mutates, backward, setup_context, as_op)
    device = _device(options)
    source = Source(
        schema_of(signature, mutates),
        mutates,
        returned(maker.run),
        _fake(maker, device),
        torch_device(device),
        factory,
        gradient=gradient,
    )
    return register(name, source)


class _Lazy:
    """A function that returns a ``@T.prim_func``; `sizes` tells its arguments from tensors."""

    def __init__(
        self,
        factory: KernelFactory,
        out_idx: Any,
        sizes: Callable[..., Any],
        like: object,
        fixed: Mapping[str, Any],
    ) -> None:
        self._factory, self._out_idx, self._fixed = factory, out_idx, dict(fixed)
        self._sizes, self._like = sizes, like

    def example(self) -> Kernel:
        return self._traced(self._like)

    def run(self, *args: Any) -> Any:
        given, named = _call(self._sizes(*args))
        return self._factory(*given, **named, **self._fixed)(*args)

    def kernel(self, args: tuple[Any, ...]) -> Kernel:
        return self._traced(self._sizes(*args))

    def _traced(self, sizes: object) -> Kernel:
        given, named = _call(sizes)
        traced = self._factory.get_tir(*given, **named, **self._fixed)
        return with_outputs(kernel_of(traced), self._out_idx)


class _Eager:
    """A function whose body holds the kernel: the tensors tell the sizes."""

    def __init__(self, factory: KernelFactory, like: object, fixed: Mapping[str, Any]) -> None:
        self._factory, self._fixed = factory, dict(fixed)
        self._names = factory.tensor_names()
        self._like = like

    def example(self) -> Kernel:
        sizes = self._like
        if sizes is None:
            sizes = dict.fromkeys(self._factory.constants(**self._fixed), USUAL_SIZE)
        if not isinstance(sizes, Mapping):
            raise TorchOpSignatureError(
                f"like= of {self._name} names sizes, got {type(sizes).__name__}",
                hint="write like={'M': 128, 'N': 128}",
            )
        try:
            return kernel_of(self._factory.get_tir(**self._fixed, **sizes))
        except TileError as error:
            told = ", ".join(f"{k}={v}" for k, v in sizes.items())
            raise TorchOpSignatureError(
                f"the parameters of {self._name} cannot be told: for {told} it does not trace",
                hint=f"pass sizes that it accepts, like={{...}}; it said: {error.message}",
            ) from error

    @property
    def _name(self) -> str:
        return str(self._factory.func.__name__)

    def run(self, *args: Any) -> Any:
        return self._factory(**dict(zip(self._names, args, strict=True)), **self._fixed)

    def kernel(self, args: tuple[Any, ...]) -> Kernel:
        named = dict(zip(self._names, map(_concrete, args), strict=True))
        return kernel_of(self._factory.get_tir(**named, **self._fixed))


def _maker(
    factory: KernelFactory,
    options: Mapping[str, Any],
    sizes: object,
    like: object,
    fixed: Mapping[str, Any],
) -> _Lazy | _Eager:
    if factory.style() == "eager":
        if sizes is not None:
            raise TorchOpSignatureError(
                f"{factory.func.__name__} is in eager style, where tensors tell all sizes",
                hint="leave out sizes=",
            )
        return _Eager(factory, like, fixed)
    if not callable(sizes) or like is None:
        raise TorchOpSignatureError(
            f"{factory.func.__name__}{factory.signature} does not say where its arguments come "
            "from when tensors are passed",
            hint="write sizes=lambda A, B: (A.shape[0], B.shape[1]), and an example of what that "
            "returns: like=(128, 128)",
        )
    return _Lazy(factory, options["out_idx"], sizes, like, fixed)


def _call(sizes: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a function out of a tuple, a dict, or one number; ints are plain."""
    if isinstance(sizes, Mapping):
        return (), {name: _plain(value) for name, value in sizes.items()}
    listed = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    return tuple(_plain(value) for value in listed), {}


def _plain(value: Any) -> Any:
    """Return a size as a number: a trace in which it was a symbol is for this one alone."""
    return int(value) if isinstance(value, torch.SymInt) else value


def _concrete(arg: Any) -> Any:
    """Return what is known of a tensor, with numbers for symbols."""
    if not isinstance(arg, torch.Tensor):
        return arg
    dtype = str(arg.dtype).removeprefix("torch.")
    shape, strides = tuple(map(int, arg.shape)), tuple(map(int, arg.stride()))
    return View(shape, strides, dtype, str(arg.device), _ALIGNED)


def _fake(maker: _Lazy | _Eager, device: str) -> Callable[..., Any]:
    """Return what gives outputs without memory; the function is traced for the sizes at hand."""
    known: KernelCache[Callable[..., Any]] = KernelCache()

    def fake(*args: Any) -> Any:
        key = tuple(
            (tuple(map(int, a.shape)), tuple(map(int, a.stride())), a.dtype)
            if isinstance(a, torch.Tensor)
            else _plain(a)
            for a in args
        )
        found = known.get(key)
        if found is None:
            found = fake_of(Launcher(maker.kernel(args), _runs_nothing, device))
            known.put(key, found)
        return found(*args)

    return fake


def _runs_nothing(*args: Any) -> None:
    """Stand for the code of a kernel that is only traced."""


def _device(options: Mapping[str, Any]) -> str:
    """Return the kind of device that kernels of these options run on."""
    settings = Settings.from_environment()
    wanted = options["target"]
    _, exact = default_host().resolve(settings.target if wanted is None else wanted)
    return "cpu" if exact.runs_on_host else exact.kind
