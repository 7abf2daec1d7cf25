"""Which torch type stores an element type."""

from __future__ import annotations

from typing import Any

from tile_core.dtypes import DType
from tile_launch import outputs


def torch_storage(dtype: DType) -> Any:
    """Return the ``torch.dtype`` whose elements hold those of `dtype`.

    Its lanes do not matter.
    """
    import torch

    return outputs.torch_storage(dtype.base, torch)


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
