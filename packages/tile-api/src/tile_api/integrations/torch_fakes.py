"""What a kernel returns for tensors without memory: shapes, element types, devices.

Torch asks for it while it traces, compiles or exports. Sizes may be symbols then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tile_api.arguments import Signature
from tile_api.launching import Launcher
from tile_api.tensors import torch_device
from tile_launch.arguments import Checked
from tile_launch.manifest import Scalar, Tensor
from tile_launch.outputs import output_maker
from tile_launch.scalars import scalar_value
from tile_launch.symbol_solver import bind, check_rank
from tile_launch.views import View

_ALIGNED = 1 << 20  # an address that passes for one; there is no memory behind it


def fake_of(launcher: Launcher) -> Callable[..., Any]:
    """Return what gives the outputs of a call without running it.

    It makes the checks of a call as far as shapes, strides and element types go, with the same
    messages. Where sizes are symbols, what is compared becomes a guard of the trace; sizes that
    depend on data are not compared.
    """
    symbolic = _SymbolicLauncher(launcher)

    def fake(*args: Any) -> Any:
        made = symbolic.outputs(args)
        return None if not made else made[0] if len(made) == 1 else tuple(made)

    return fake


class _SymbolicLauncher:
    """Checks arguments and makes outputs as a launcher does, and launches nothing."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._signature = launcher.signature
        self._device = launcher.device

    def outputs(self, args: tuple[Any, ...]) -> list[Any]:
        """Return an empty tensor for each output."""
        manifest = self._signature.host.manifest
        checked = self._checked(tuple([self._view(a) for a in args]))
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        like = tensors[0] if tensors else None
        shapes = self._signature.output_shapes(checked.values)
        made = []
        for position, shape in zip(manifest.outputs, shapes, strict=True):
            param = manifest.parameters[position]
            assert isinstance(param, Tensor), "outputs are tensors"
            if like is None:
                like = torch.empty((), device=torch_device(self._device))
            made.append(output_maker(param, shape, like, self._device)())
        return made

    def _checked(self, args: tuple[Any, ...]) -> Checked:
        signature = self._signature
        if any(_depends_on_data(a) for a in args):
            return _bound(signature, args)
        return signature.check(args, self._device, _symbolic_scalar)

    def _view(self, arg: Any) -> Any:
        """Return what is known of an argument."""
        if not isinstance(arg, torch.Tensor):
            return arg
        dtype, device = str(arg.dtype).removeprefix("torch."), str(arg.device)
        if arg.device.type == "meta":
            device = torch_device(self._device)
        return View(tuple(arg.shape), tuple(arg.stride()), dtype, device, _ALIGNED)


def _symbolic_scalar(name: str, dtype: str, arg: Any) -> Any:
    """Return a scalar; symbols are what they stand for, and stay symbols."""
    if isinstance(arg, torch.SymInt | torch.SymFloat | torch.SymBool):
        return arg
    return scalar_value(name, dtype, arg)


def _depends_on_data(arg: Any) -> bool:
    """Whether nothing is known of a size before the program runs."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    sizes = (*arg.shape, *arg.strides) if isinstance(arg, View) else (arg,)
    symbols = [size for size in sizes if isinstance(size, torch.SymInt)]
    return any(free_unbacked_symbols(size) for size in symbols)


def _bound(signature: Signature, args: tuple[Any, ...]) -> Checked:
    """Return the values of variables as arguments tell them; the call itself checks them."""
    host = signature.host
    values: dict[str, Any] = {}
    tensors: list[tuple[Tensor, View]] = []
    for position, arg in zip(signature.inputs, args, strict=True):
        param = host.manifest.parameters[position]
        if isinstance(param, Scalar):
            values[param.name] = arg
        elif isinstance(arg, View):
            with signature.placed():
                check_rank(host.name(param), param, arg)
            tensors.append((param, arg))
    bind(tensors, values)
    return Checked(values, args)
