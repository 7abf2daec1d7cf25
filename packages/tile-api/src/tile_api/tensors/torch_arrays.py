"""NumPy arrays as torch tensors and back, on the host and on GPUs."""

from __future__ import annotations

from typing import Any

_BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def tensor_of(array: Any, device: str | None = None) -> Any:
    """Return a torch tensor with the elements of a NumPy array.

    On the host it shares the array's memory. Element types that torch has under the same name are
    kept; others become their bits.

    Parameters
    ----------
    device
        Where to copy it, such as ``"cuda"``; None means the host.
    """
    import torch

    bits = torch.from_numpy(array.view(_BITS[array.itemsize]))
    placed = bits if device is None else bits.to(device)
    own = torch.bool if array.dtype.name == "bool" else getattr(torch, array.dtype.name, None)
    return placed if own is None else placed.view(own)


def array_of(tensor: Any) -> Any:
    """Return a NumPy array with the elements and strides of a torch tensor, on the host."""
    import torch

    held = tensor.detach().cpu()
    try:
        return held.numpy()
    except TypeError:  # a type that NumPy itself does not have
        from tile_core.dtypes import dtype_of

        name = str(held.dtype).removeprefix("torch.")
        array = held.view(getattr(torch, _BITS[held.element_size()])).numpy()
        return array if name.endswith("_x2") else array.view(dtype_of(name).numpy())


def gpu_name() -> str | None:
    """Return what torch calls its GPU, or None if it is not installed or sees none."""
    try:
        import torch
    except ImportError:
        return None
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None
