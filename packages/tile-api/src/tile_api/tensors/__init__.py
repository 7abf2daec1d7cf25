"""Tensors at the border: where torch is, and what its devices are called.

Torch is loaded only if the caller's program has loaded it, or asks for generated inputs.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from tile_core.dtypes import DType, dtype_of
from tile_launch.outputs import calling_torch


def torch_device(kind: str) -> str:
    """Return what torch calls the devices that kernels of a kind run on.

    Examples
    --------
    >>> torch_device("hip"), torch_device("cpu")
    ('cuda', 'cpu')
    """
    return "cuda" if kind == "hip" else kind


def torch_of_caller() -> Any:
    """Return torch if outputs are to be its tensors where no argument is one, else None.

    They are for programs that run under the alias of TileLang, and for modules that have
    imported torch.
    """
    return torch_if_installed() if _is_aliased() else calling_torch()


def _is_aliased() -> bool:
    """Whether programs written for TileLang run here: their tensors are torch's."""
    alias = sys.modules.get("tile_api.tilelang.installing")
    return alias is not None and alias.installed() is not None


def packed_type(dtype: DType) -> DType:
    """Return the byte type that holds two four-bit elements."""
    return dtype_of("int8" if dtype.kind.value == "int" else "uint8")


def torch_if_installed() -> Any:
    """Return the torch module, loading it, or None if it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    return torch
