"""Whether torch is installed and has a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def gpu_arrays() -> Callable[[Any], Any] | None:
    """Return what copies NumPy arrays to torch's GPU, as torch tensors; None if there is none.

    GPUs of both makers are ``"cuda"`` to torch.
    """
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    return lambda array: torch.from_numpy(array).to("cuda")
