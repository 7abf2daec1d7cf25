"""Kernels that models are made of, each a function of arrays of the tile language.

>>> import numpy as np
>>> import tile_nn
>>> tile_nn.silu_and_mul(np.zeros((1, 4), "float32"))
array([[0., 0.]], dtype=float32)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tile_core import verify_companion
from tile_nn.kernels.adamw import adamw
from tile_nn.kernels.attention import attention
from tile_nn.kernels.attention_varlen import attention_varlen
from tile_nn.kernels.causal_conv1d import causal_conv1d
from tile_nn.kernels.cross_entropy import cross_entropy
from tile_nn.kernels.embedding import embedding
from tile_nn.kernels.filter_logits import filter_logits
from tile_nn.kernels.fused_experts import fused_experts
from tile_nn.kernels.geglu import geglu
from tile_nn.kernels.gelu_and_mul import gelu_and_mul
from tile_nn.kernels.grouped_topk import grouped_topk
from tile_nn.kernels.layer_norm import layer_norm
from tile_nn.kernels.linear_cross_entropy import linear_cross_entropy
from tile_nn.kernels.linear_nf4 import linear_nf4
from tile_nn.kernels.linear_w4a16 import linear_w4a16
from tile_nn.kernels.linear_w8a8 import linear_w8a8
from tile_nn.kernels.mamba_chunk_scan import mamba_chunk_scan
from tile_nn.kernels.paged_attention import paged_attention
from tile_nn.kernels.quantize_fp8 import quantize_fp8
from tile_nn.kernels.quantize_int8 import quantize_int8
from tile_nn.kernels.rms_norm import rms_norm
from tile_nn.kernels.rotary import rotary
from tile_nn.kernels.sample import sample
from tile_nn.kernels.selective_state_update import selective_state_update
from tile_nn.kernels.silu_and_mul import silu_and_mul
from tile_nn.kernels.swiglu import swiglu
from tile_nn.kernels.topk_softmax import topk_softmax

if TYPE_CHECKING:
    from tile_nn.attention_interface import register_attention
    from tile_nn.patching import patch, unpatch

__author__ = "The tile authors"
__version__ = "0.1.0"
__all__ = [
    "adamw",
    "attention",
    "attention_varlen",
    "causal_conv1d",
    "cross_entropy",
    "embedding",
    "filter_logits",
    "fused_experts",
    "geglu",
    "gelu_and_mul",
    "grouped_topk",
    "layer_norm",
    "linear_cross_entropy",
    "linear_nf4",
    "linear_w4a16",
    "linear_w8a8",
    "mamba_chunk_scan",
    "paged_attention",
    "patch",
    "quantize_fp8",
    "quantize_int8",
    "register_attention",
    "rms_norm",
    "rotary",
    "sample",
    "selective_state_update",
    "silu_and_mul",
    "swiglu",
    "topk_softmax",
    "unpatch",
]

verify_companion("tile_api", __version__)


_OF_TORCH = {
    "patch": "patching",
    "register_attention": "attention_interface",
    "unpatch": "patching",
}
"""Which modules these names are in: torch is loaded for who asks for them."""


def __getattr__(name: str) -> Any:
    if name in _OF_TORCH:
        return getattr(importlib.import_module(f"tile_nn.{_OF_TORCH[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
