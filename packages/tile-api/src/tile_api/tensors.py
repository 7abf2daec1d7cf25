"""Tensors at the border: what arguments are, without touching elements, and new outputs.

Torch is loaded only if the caller's program has loaded it, or asks for generated inputs.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from tile_api.integrations.torch_dtypes import torch_storage
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import LaunchError
from tile_core.records import dataclass
from tile_launch.callers import torch_calls
from tile_launch.loaded import loaded_torch


@dataclass(frozen=True, slots=True)
class TensorView:
    """What the host knows of a tensor argument.

    Parameters
    ----------
    shape, strides
        In elements of `dtype`.
    device
        ``"cpu"``, ``"cuda:0"`` …
    address
        Of the first element; 0 if there is none.
    writeable
        Whether the owner allows writing.
    problem
        Why the memory is not what shape and strides say, or None.
    array
        What to launch on instead of a tensor that is neither NumPy's nor torch's: a NumPy array
        on the same memory, or a `tile_api.dlpack.DeviceTensor`.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    address: int
    writeable: bool = True
    problem: str | None = None
    array: Any = None


def view_of(value: Any) -> TensorView | None:
    """Return the metadata of a NumPy array, a torch tensor or a DLPack producer, else None.

    Metadata stand for themselves: of tensors without memory there is nothing else.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _numpy_view(value)
    torch = loaded_torch()
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_view(value, torch)
    if isinstance(value, TensorView):
        return value
    is_none = isinstance(value, type) or (numpy is not None and isinstance(value, numpy.generic))
    if not is_none and hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _dlpack_view(value)
    return None


def _numpy_view(value: Any) -> TensorView:
    size = value.itemsize or 1
    problem = None
    masked = sys.modules.get("numpy.ma")  # which NumPy loads when somebody asks for it
    if masked is not None and isinstance(value, masked.MaskedArray):
        problem = "its mask would be ignored; pass x.filled(0)"
    elif any(s % size for s in value.strides):
        problem = f"its strides {value.strides} are no multiples of the {size} bytes of an element"
    name = value.dtype.name if value.dtype.isnative else f"byte-swapped {value.dtype.name}"
    strides = tuple(s // size for s in value.strides)
    address = value.__array_interface__["data"][0]
    return TensorView(value.shape, strides, name, "cpu", address, value.flags.writeable, problem)


def _torch_view(value: Any, torch: Any) -> TensorView:
    dtype, device = str(value.dtype).removeprefix("torch."), str(value.device)
    try:
        problem = _torch_problem(value, torch)
        if problem is None:
            shape, strides = tuple(value.shape), tuple(value.stride())
            return TensorView(shape, strides, dtype, device, value.data_ptr())
    except RuntimeError as error:  # nested tensors, and those of a transformation
        problem = str(error).partition("\n")[0]
    return TensorView((), (), dtype, device, 0, problem=problem)


def _torch_problem(value: Any, torch: Any) -> str | None:
    if value.is_nested:
        return "it is nested"
    if value.layout is not torch.strided:
        return f"it is stored as {value.layout}"
    if value.is_conj():
        return "its conjugation is pending; pass x.resolve_conj()"
    if value.is_neg():
        return "its negation is pending; pass x.resolve_neg()"
    return None


def _dlpack_view(value: Any) -> TensorView:
    from tile_api.dlpack import describe

    try:
        found = describe(value)
    except Exception as error:
        told = f"its __dlpack__ raised {type(error).__name__}: {error}"
        return TensorView((), (), "unknown", "cpu", 0, problem=told)
    return TensorView(
        found.shape,
        found.strides,
        found.dtype,
        found.device,
        found.address,
        found.writeable,
        None,
        found.array,
    )


# Keys: equal for two tensors only if every check of one is a check of the other ------------


def key_function(kind: type) -> Callable[[Any], Hashable] | None:
    """Return what gives the metadata of tensors of exactly the type `kind`, quickly.

    Two tensors with one key differ at most in their address, and in that by whole elements.
    The function may raise for a tensor that is out of the ordinary. None: there is no such
    function.
    """
    numpy, torch = sys.modules.get("numpy"), loaded_torch()
    if numpy is not None and kind is numpy.ndarray:
        return _numpy_key
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        return _torch_key
    if kind is type(None):
        return _none_key
    return None


def _none_key(nothing: None) -> Hashable:
    return None


def _numpy_key(a: Any) -> Hashable:
    return (a.shape, a.strides, a.dtype, a.flags.num)


def _torch_key(t: Any) -> Hashable:
    address = t.data_ptr()  # raises for tensors without plain memory
    alignment = address & 15 if address else -1
    return (t.shape, t.stride(), t.dtype, t.device, t.is_neg(), alignment)


# Outputs -----------------------------------------------------------------------------------


def torch_device(kind: str) -> str:
    """Return what torch calls the devices that kernels of a kind run on.

    Examples
    --------
    >>> torch_device("hip"), torch_device("cpu")
    ('cuda', 'cpu')
    """
    return "cuda" if kind == "hip" else kind


def output_maker(
    shape: tuple[int, ...], dtype: DType, like: Any, device: str = "cpu"
) -> Callable[[], Any]:
    """Return what allocates an uninitialised, contiguous output.

    It is of the kind and on the device of `like`: torch tensors are answered with torch
    tensors, everything else with NumPy arrays, or with torch tensors on a GPU. Without `like`,
    programs that use torch get torch tensors: those that run under the alias of TileLang, and
    modules that have imported torch. Four-bit elements are packed: the last extent is halved.

    Parameters
    ----------
    like
        The first tensor among the arguments, or None.
    device
        Where the kernel runs: ``"cpu"``, or a kind such as ``"cuda"`` or ``"hip"``.

    Raises
    ------
    LaunchError
        If the output belongs on a GPU, and torch is not there to allocate it.
    """
    if dtype.packing > 1 and shape:
        shape = (*shape[:-1], -(-shape[-1] // dtype.packing))
    torch = loaded_torch()
    if torch is not None and isinstance(like, torch.Tensor):
        return partial(torch.empty, shape, dtype=torch_storage(dtype), device=like.device)
    if device != "cpu":
        if torch is None:
            raise LaunchError(
                f"an output on {device} is allocated by torch, which is not loaded",
                hint="import torch before the call, or pass the output as an argument",
            )
        place = torch_device(device)
        if like is not None:
            place = f"{place}:{like.get_device()}"
        return partial(torch.empty, shape, dtype=torch_storage(dtype), device=place)
    import numpy as np

    array = partial(
        np.empty, shape, packed_type(dtype).numpy() if dtype.packing > 1 else dtype.numpy()
    )
    if like is not None:
        return array

    def made() -> Any:
        torch = torch_if_installed() if _is_aliased() else loaded_torch()
        if torch is None or not (_is_aliased() or torch_calls()):
            return array()
        return torch.empty(shape, dtype=torch_storage(dtype))

    return made


def _is_aliased() -> bool:
    """Whether programs written for TileLang run here: their tensors are torch's."""
    alias = sys.modules.get("tile_api.tilelang.installing")
    return alias is not None and alias.installed() is not None


def packed_type(dtype: DType) -> DType:
    """Return the byte type that holds two four-bit elements."""
    return dtype_of("int8" if dtype.kind.value == "int" else "uint8")


def announce_write(tensor: Any) -> None:
    """Tell autograd that a torch tensor was changed behind its back.

    A gradient that needs the old contents then raises, instead of being wrong.
    """
    if not tensor.is_inference():
        sys.modules["torch"].autograd.graph.increment_version(tensor)


def is_torch(value: object) -> bool:
    """Tell whether `value` is a torch tensor."""
    torch = loaded_torch()
    return torch is not None and isinstance(value, torch.Tensor)


def torch_if_installed() -> Any:
    """Return the torch module, loading it, or None if it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    return torch
