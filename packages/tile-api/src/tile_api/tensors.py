"""Arguments as the compiler sees them: metadata of NumPy, torch and DLPack tensors.

Torch is never imported here: a torch tensor brings its own module along.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from tile_core.dtypes import DType, dtype_of

_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_CPU_DEVICE_TYPES = frozenset({1, 3})  # kDLCPU, kDLCUDAHost
_DEVICE_NAMES = {1: "cpu", 2: "cuda", 3: "cpu", 8: "metal", 10: "hip"}


@dataclass(frozen=True, slots=True)
class TensorView:
    """What the host knows of a tensor argument, without touching its elements.

    Parameters
    ----------
    shape, strides
        In elements of `dtype`.
    device
        ``"cpu"``, ``"cuda:0"`` …
    address
        Of the first element; 0 where the producer does not tell without a copy.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    address: int


def is_tensor(value: object) -> bool:
    """Tell whether `value` is an array: NumPy, torch, or any DLPack producer."""
    return hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")


def view_of(value: Any) -> TensorView:
    """Return the metadata of an array argument."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        size = value.itemsize or 1
        strides = tuple(s // size for s in value.strides)
        return TensorView(value.shape, strides, value.dtype.name, "cpu", value.ctypes.data)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_view(value)
    return _dlpack_view(value)


def _torch_view(value: Any) -> TensorView:
    dtype = str(value.dtype).removeprefix("torch.")
    device = str(value.device)
    return TensorView(tuple(value.shape), value.stride(), dtype, device, value.data_ptr())


def _dlpack_view(value: Any) -> TensorView:
    import numpy as np

    device_type, device_id = value.__dlpack_device__()
    device = _DEVICE_NAMES.get(int(device_type), f"device{int(device_type)}")
    if int(device_type) not in _CPU_DEVICE_TYPES:
        shape = tuple(getattr(value, "shape", ()))
        dtype = str(getattr(value, "dtype", "unknown"))
        return TensorView(shape, (), dtype.rpartition(".")[2], f"{device}:{device_id}", 0)
    return view_of(np.from_dlpack(value))


def has_misleading_layout(value: Any) -> str | None:
    """Return why the memory of a torch tensor is not what its shape and strides say, or None."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    if value.layout is not torch.strided:
        return f"it is stored as {value.layout}"
    if value.is_conj():
        return "its conjugation is pending; call .resolve_conj()"
    if value.is_neg():
        return "its negation is pending; call .resolve_neg()"
    return None


def empty_output(shape: tuple[int, ...], dtype: DType, like: Any) -> Any:
    """Allocate an uninitialised, contiguous output of the same kind and device as `like`.

    Torch tensors are answered with torch tensors, everything else with NumPy arrays.
    Sub-byte elements are packed: the last extent is halved.
    """
    if dtype.packing > 1 and shape:
        shape = (*shape[:-1], -(-shape[-1] // dtype.packing))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return torch.empty(shape, dtype=torch_dtype(dtype, torch), device=like.device)
    import numpy as np

    return np.empty(shape, dtype=dtype_of("uint8").numpy() if dtype.packing > 1 else dtype.numpy())


def torch_dtype(dtype: DType, torch: Any) -> Any:
    """Return torch's type that stores `dtype`; packed and exotic types are stored as bytes."""
    if dtype.packing > 1:
        return torch.int8 if dtype.kind.value == "int" else torch.uint8
    name = {"tfloat32": "float32", "float8_e4m3": "float8_e4m3fn"}.get(dtype.base, dtype.base)
    return getattr(torch, name, torch.uint8)
