"""The kernels as operators of torch: ``torch.ops.tile_nn.rms_norm`` and its like.

Importing this module registers them: for `torch.compile`, `torch.export` and tensors without
memory. A program that is not compiled calls the kernels themselves, which costs less. Gradients are
operators, too, and compute again what they need of the results.
"""

from __future__ import annotations

from typing import Any

import torch

from tile_api.integrations.array_ops import array_op
from tile_nn.kernels.attention import attention
from tile_nn.kernels.cross_entropy import cross_entropy
from tile_nn.kernels.embedding import embedding
from tile_nn.kernels.geglu import geglu
from tile_nn.kernels.gelu_and_mul import gelu_and_mul
from tile_nn.kernels.layer_norm import layer_norm
from tile_nn.kernels.linear_cross_entropy import linear_cross_entropy
from tile_nn.kernels.linear_w4a16 import linear_w4a16
from tile_nn.kernels.rms_norm import rms_norm
from tile_nn.kernels.rotary import rotary
from tile_nn.kernels.silu_and_mul import silu_and_mul
from tile_nn.kernels.swiglu import swiglu
from tile_nn.kernels.topk_softmax import topk_softmax

_NORM = "float eps=1e-06, float offset=0., str casting_mode='llama'"
_LOSS = (
    "int ignore_index=-100, float label_smoothing=0., float z_loss=0., float softcap=0., "
    "str reduction='mean'"
)
_ATTENTION = (
    "(Tensor q, Tensor k, Tensor v, Tensor? mask=None, Tensor? sinks=None, "
    "Tensor? alibi_slopes=None, bool causal=False, float? softmax_scale=None, "
    "int[2] window_size=[-1, -1], float softcap=0., str layout='BHTD')"
)


def _as_first(x: Any, *_: Any) -> Any:
    return x.new_empty(x.shape)


def _half(x: Any, *_: Any) -> Any:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


def _normed(x: Any, weight: Any = None, eps: float = 1e-6, offset: float = 0.0,
            casting_mode: str = "llama") -> Any:  # fmt: skip
    is_last = casting_mode == "gemma" or weight is None
    dtype = x.dtype if is_last else torch.promote_types(x.dtype, weight.dtype)
    return x.new_empty(x.shape, dtype=dtype)


def _normed_sum(x: Any, weight: Any, residual: Any, *settings: Any) -> Any:
    return _normed(x, weight, *settings), x.new_empty(x.shape)


def _gated(gate: Any, up: Any, *_: Any) -> Any:
    return gate.new_empty(gate.shape, dtype=torch.promote_types(gate.dtype, up.dtype))


def _pair(x: Any, cos: Any, sin: Any, k: Any, *_: Any) -> Any:
    return x.new_empty(x.shape), k.new_empty(k.shape)


def _attended(q: Any, k: Any, v: Any, *_: Any) -> Any:
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def _with_lse(q: Any, k: Any, v: Any, mask: Any = None, sinks: Any = None, slopes: Any = None,
              causal: bool = False, scale: Any = None, window: Any = (-1, -1),
              softcap: float = 0.0, layout: str = "BHTD") -> Any:  # fmt: skip
    rows = q.shape[:-1] if layout == "BHTD" else (*q.shape[:-3], q.shape[-2], q.shape[-3])
    return _attended(q, k, v), q.new_empty(rows, dtype=_wide(q))


def _wide(x: Any) -> Any:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _loss(rows: Any, x: Any, reduction: str) -> Any:
    return x.new_empty(rows.shape if reduction == "none" else (), dtype=_wide(x))


def _cross(logits: Any, target: Any, ignored: int = -100, smoothing: float = 0.0,
           z_loss: float = 0.0, cap: float = 0.0, reduction: str = "mean") -> Any:  # fmt: skip
    return _loss(target, logits, reduction)


def _linear_cross(x: Any, weight: Any, target: Any, bias: Any = None, ignored: int = -100,
                  smoothing: float = 0.0, z_loss: float = 0.0, cap: float = 0.0,
                  reduction: str = "mean") -> Any:  # fmt: skip
    return _loss(target, x, reduction)


def _rows(ids: Any, weight: Any, *_: Any) -> Any:
    return weight.new_empty((*ids.shape, weight.shape[1]))


def _routed(logits: Any, topk: int, *_: Any) -> Any:
    shape = (*logits.shape[:-1], topk)
    return logits.new_empty(shape, dtype=torch.float32), logits.new_empty(shape, dtype=torch.int32)


def _product(x: Any, weight: Any, *_: Any) -> Any:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


_TABLE: dict[str, tuple[Any, str, Any]] = {
    "rms_norm": (rms_norm, f"(Tensor x, Tensor? weight=None, {_NORM}) -> Tensor", _normed),
    "fused_add_rms_norm": (
        rms_norm,
        f"(Tensor x, Tensor weight, Tensor residual, {_NORM}) -> (Tensor, Tensor)",
        _normed_sum,
    ),
    "layer_norm": (
        layer_norm,
        "(Tensor x, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
        _as_first,
    ),
    "swiglu": (swiglu, "(Tensor gate, Tensor up) -> Tensor", _gated),
    "geglu": (
        geglu, "(Tensor gate, Tensor up, str approximate='tanh') -> Tensor", _gated,
    ),
    "silu_and_mul": (silu_and_mul, "(Tensor x) -> Tensor", _half),
    "gelu_and_mul": (
        gelu_and_mul, "(Tensor x, str approximate='none') -> Tensor", _half,
    ),
    "rotary": (
        rotary,
        "(Tensor x, Tensor cos, Tensor sin, Tensor k, bool interleaved=False, "
        "str layout='BHTD') -> (Tensor, Tensor)",
        _pair,
    ),
    "attention": (attention, f"{_ATTENTION} -> Tensor", _attended),
    "attention_with_lse": (attention, f"{_ATTENTION} -> (Tensor, Tensor)", _with_lse),
    "cross_entropy": (
        cross_entropy, f"(Tensor logits, Tensor target, {_LOSS}) -> Tensor", _cross,
    ),
    "linear_cross_entropy": (
        linear_cross_entropy,
        f"(Tensor x, Tensor weight, Tensor target, Tensor? bias=None, {_LOSS}) -> Tensor",
        _linear_cross,
    ),
    "embedding": (
        embedding, "(Tensor ids, Tensor weight, float scale=1.) -> Tensor", _rows,
    ),
    "topk_softmax": (
        topk_softmax,
        "(Tensor logits, int topk, bool renormalize=True) -> (Tensor, Tensor)",
        _routed,
    ),
    "linear_w4a16": (
        linear_w4a16,
        "(Tensor x, Tensor weight, Tensor scales, Tensor? zeros=None, Tensor? bias=None) -> Tensor",
        _product,
    ),
}  # fmt: skip
_FIXED = {"attention_with_lse": {"return_lse": True}}

OPERATORS = {
    name: array_op(function, f"tile_nn::{name}", schema, like, _FIXED.get(name))
    for name, (function, schema, like) in _TABLE.items()
}
"""The operators by name, each a ``torch.library.CustomOpDef``."""
