"""Which torch type stores an element type."""

from __future__ import annotations

from typing import Any

from tile_core.dtypes import DType

_STORED_AS = {
    "tfloat32": "float32",
    "int4": "int8",
    "uint4": "uint8",
    "float4_e2m1fn": "float4_e2m1fn_x2",
    "float4_e2m1_unpacked": "uint8",
    "handle": "int64",
}


def torch_storage(dtype: DType) -> Any:
    """Return the ``torch.dtype`` whose elements hold those of `dtype`.

    Four-bit elements are stored two per byte. Types that torch does not know are stored as
    bytes: ``torch.int8`` for ``float4_e2m1fn``, ``torch.uint8`` for the others.

    Parameters
    ----------
    dtype
        Any element type; its lanes do not matter.
    """
    import torch

    name = _STORED_AS.get(dtype.base, dtype.base)
    fallback = torch.int8 if dtype.base == "float4_e2m1fn" else torch.uint8
    return getattr(torch, name, fallback)


def tensor_of_array(array: Any) -> Any:
    """Return a torch tensor on the memory of a contiguous NumPy array.

    Element types that NumPy has from another library travel as bytes.
    """
    import torch

    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    stored = getattr(torch, array.dtype.name)
    shape = array.shape
    return torch.from_numpy(array.view("uint8")).view(stored).reshape(shape)
