"""Operators of torch that are taken apart before they are captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from tile_api.arrays.capturing.torch_names import FUNCTIONS

_FURTHER = (
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm",
    "native_group_norm_backward", "native_batch_norm", "native_batch_norm_backward",
    "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training", "batch_norm_backward", "gelu_backward", "silu_backward",
    "threshold_backward", "_softmax_backward_data", "_log_softmax_backward_data",
)  # fmt: skip
_AS_TORCH_HAS_THEM = ("native_dropout", "rand_like", "bernoulli", "embedding_dense_backward")
"""Random numbers are torch's own, in its order; what scatters is faster in one piece."""


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return what operators that have no row in the table of torch's functions are made of."""
    aten = torch.ops.aten
    found = dict(core_aten_decompositions())
    found |= get_decompositions([getattr(aten, name) for name in _FURTHER])
    return {
        op: made
        for op, made in found.items()
        if not isinstance(op, torch._ops.OpOverload)
        or (
            (name := op.overloadpacket.__name__) not in FUNCTIONS
            and not name.startswith(_AS_TORCH_HAS_THEM)
        )
    }
