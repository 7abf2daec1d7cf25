"""Parameters of kernels as TileLang describes them, and tensors made for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tile_api.tensors import torch_if_installed
from tile_api.timing.profiler import TensorSupplyType
from tile_api.timing.supply import make_tensor
from tile_core.dtypes import DType, dtype_of, normalise_dtype
from tile_core.errors import MissingFeature
from tile_core.ir.buffer import Buffer


@dataclass(frozen=True, slots=True)
class KernelParam:
    """A parameter of a kernel."""

    dtype: Any  # of its elements
    shape: list[Any]  # ints, or expressions; empty for a scalar

    @classmethod
    def from_buffer(cls, buffer: Any) -> KernelParam:
        """Return the parameter that a tensor is."""
        return cls(buffer.dtype, [_plain(extent) for extent in buffer.shape])

    @classmethod
    def from_var(cls, var: Any) -> KernelParam:
        """Return the parameter that a scalar is."""
        return cls(var.dtype, [])

    def is_scalar(self) -> bool:
        """Tell whether it is a number."""
        return not self.shape

    def is_unsigned(self) -> bool:
        """Tell whether its elements are unsigned integers."""
        return str(self.dtype).startswith("uint")

    def is_float8(self) -> bool:
        """Tell whether its elements are floats of one byte."""
        return str(self.dtype).startswith("float8")

    def is_float4(self) -> bool:
        """Tell whether its elements are floats of four bits."""
        return str(self.dtype).startswith("float4")

    def is_boolean(self) -> bool:
        """Tell whether its elements are truth values."""
        return str(self.dtype) == "bool"

    def torch_dtype(self) -> Any:
        """Return the ``torch.dtype`` that stores its elements."""
        return map_torch_type(self.dtype)

    def tilelang_dtype(self) -> Any:
        """Return the element type as kernels name it."""
        from tile_api.frontend.dtypes import dtype

        return dtype(self.dtype)


def params_of(kernel: Any) -> list[KernelParam]:
    """Return the parameters of a compiled kernel."""
    made = (KernelParam.from_buffer, KernelParam.from_var)
    return [made[not isinstance(param, Buffer)](param) for param in kernel.params]


def _plain(extent: Any) -> Any:
    value = getattr(extent, "value", None)
    return value if isinstance(value, int) else extent


def map_torch_type(intype: Any) -> Any:
    """Return the ``torch.dtype`` that stores elements of a type."""
    if torch_if_installed() is None:
        raise MissingFeature("torch is not installed", hint="pip install torch")
    from tile_api.tensors import torch_storage

    return torch_storage(_dtype(intype))


def _dtype(spec: Any) -> DType:
    return spec if isinstance(spec, DType) else dtype_of(normalise_dtype(spec))


def is_float8_dtype(dtype: Any) -> bool:
    """Tell whether a type, torch's or one of a kernel, is a float of one byte."""
    return _dtype(dtype).base.startswith("float8")


def fp8_remove_negative_zeros_(tensor: Any) -> Any:
    """Make negative zeros of a torch tensor of FP8 positive, in place: some formats have none."""
    bits = tensor.view(dtype=map_torch_type("uint8"))
    bits[bits == 0x80] = 0
    return tensor


def get_tensor_supply(
    supply_type: TensorSupplyType = TensorSupplyType.Integer,
) -> Callable[[Any], Any]:
    """Return a function that makes a tensor, seeded, for a `KernelParam`."""

    def supply(param: Any) -> Any:
        shape = tuple(int(extent) for extent in param.shape)
        made = make_tensor(shape, _dtype(param.dtype), supply_type.name, seed=0)
        return made if shape else made.item()

    return supply


def adapt_torch2tvm(arg: Any) -> Any:
    """Return a tensor as it is: kernels take torch's."""
    return arg
