"""The kernels as operators of torch: ``torch.ops.tile_nn.rms_norm`` and its like.

Importing this module registers them: for `torch.compile`, `torch.export` and tensors without
memory. A program that is not compiled calls the kernels themselves, which costs less. Gradients are
operators, too, and compute again what they need of the results; kernels of tiles have none.
"""

from __future__ import annotations

from typing import Any

import tile_api as tile
from tile_api.integrations.array_ops import array_op, plain_op
from tile_nn import torch_results as results
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


_PAGED = (
    "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor block_table, Tensor cache_seqlens, "
    "Tensor? sinks=None, Tensor? alibi_slopes=None, float? softmax_scale=None, "
    "int[2] window_size=[-1, -1], float softcap=0., str kv_layout='NHD')"
)
_VARLEN = (
    "(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, "
    "SymInt max_seqlen_q, bool causal=False, float? softmax_scale=None)"
)
_EACH_ROW = "Tensor? temperature=None, Tensor? top_k=None, Tensor? top_p=None, Tensor? min_p=None"
_CONVOLUTION = (
    "(Tensor x, Tensor weight, Tensor? bias=None, Tensor? initial_states=None, "
    "str? activation=None)"
)
_SCAN = (
    "(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor? d=None, Tensor? z=None, "
    "Tensor? dt_bias=None, Tensor? initial_states=None, bool dt_softplus=False)"
)

TABLE: dict[str, tuple[Any, str, Any]] = {
    "rms_norm": (rms_norm, f"(Tensor x, Tensor? weight=None, {_NORM}) -> Tensor", results.normed),
    "fused_add_rms_norm": (
        rms_norm,
        f"(Tensor x, Tensor weight, Tensor residual, {_NORM}) -> (Tensor, Tensor)",
        results.normed_sum,
    ),
    "layer_norm": (
        layer_norm,
        "(Tensor x, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
        results.as_first,
    ),
    "swiglu": (swiglu, "(Tensor gate, Tensor up) -> Tensor", results.gated),
    "geglu": (
        geglu, "(Tensor gate, Tensor up, str approximate='tanh') -> Tensor", results.gated,
    ),
    "silu_and_mul": (silu_and_mul, "(Tensor x) -> Tensor", results.half),
    "gelu_and_mul": (
        gelu_and_mul, "(Tensor x, str approximate='none') -> Tensor", results.half,
    ),
    "rotary": (
        rotary,
        "(Tensor x, Tensor cos, Tensor sin, Tensor k, bool interleaved=False, "
        "str layout='BHTD') -> (Tensor, Tensor)",
        results.pair,
    ),
    "attention": (attention, f"{_ATTENTION} -> Tensor", results.attended),
    "attention_with_lse": (attention, f"{_ATTENTION} -> (Tensor, Tensor)", results.with_lse),
    "cross_entropy": (
        cross_entropy, f"(Tensor logits, Tensor target, {_LOSS}) -> Tensor", results.cross,
    ),
    "linear_cross_entropy": (
        linear_cross_entropy,
        f"(Tensor x, Tensor weight, Tensor target, Tensor? bias=None, {_LOSS}) -> Tensor",
        results.linear_cross,
    ),
    "embedding": (
        embedding, "(Tensor ids, Tensor weight, float scale=1.) -> Tensor", results.rows,
    ),
    "topk_softmax": (
        topk_softmax,
        "(Tensor logits, int topk, bool renormalize=True) -> (Tensor, Tensor)",
        results.routed,
    ),
    "linear_w4a16": (
        linear_w4a16,
        "(Tensor x, Tensor weight, Tensor scales, Tensor? zeros=None, Tensor? bias=None) -> Tensor",
        results.product,
    ),
    "linear_nf4": (
        linear_nf4,
        "(Tensor x, Tensor weight, Tensor absmax, Tensor? bias=None) -> Tensor",
        results.product,
    ),
    "grouped_topk": (
        grouped_topk,
        "(Tensor logits, Tensor? bias, int topk, int num_expert_group, int topk_group, "
        "bool renormalize=True, float routed_scaling_factor=1.) -> (Tensor, Tensor)",
        results.grouped,
    ),
    "quantize_int8": (
        quantize_int8,
        "(Tensor x, int group_size=0, float eps=1e-10) -> (Tensor, Tensor)",
        results.bytes_and_scales,
    ),
    "quantize_fp8": (
        quantize_fp8,
        "(Tensor x, int group_size=0, str dtype='float8_e4m3fn', float eps=1e-10, "
        "bool scale_ue8m0=False) -> (Tensor, Tensor)",
        results.floats_and_scales,
    ),
    "linear_w8a8": (
        linear_w8a8,
        "(Tensor x, Tensor weight, Tensor x_scale, Tensor weight_scale, Tensor? bias=None, "
        "str out_dtype='float32') -> Tensor",
        results.product_of_bytes,
    ),
    "adamw": (
        adamw,
        "(Tensor param, Tensor grad, Tensor exp_avg, Tensor exp_avg_sq, Tensor step, Tensor lr, "
        "float beta1=0.9, float beta2=0.999, float eps=1e-08, float weight_decay=0.01) "
        "-> (Tensor, Tensor, Tensor)",
        results.stepped,
    ),
    "fused_experts": (
        fused_experts,
        "(Tensor x, Tensor gate_up, Tensor down, Tensor topk_weights, Tensor topk_ids, "
        "str activation='silu', int block_rows=32) -> Tensor",
        results.as_first,
    ),
    "paged_attention": (paged_attention, f"{_PAGED} -> Tensor", results.paged),
    "paged_attention_with_lse": (
        paged_attention, f"{_PAGED} -> (Tensor, Tensor)", results.paged_with_lse,
    ),
    "causal_conv1d": (causal_conv1d, f"{_CONVOLUTION} -> Tensor", results.as_first),
    "causal_conv1d_with_states": (
        causal_conv1d, f"{_CONVOLUTION} -> (Tensor, Tensor)", results.with_elements,
    ),
    "mamba_chunk_scan": (mamba_chunk_scan, f"{_SCAN} -> Tensor", results.as_first),
    "mamba_chunk_scan_with_states": (
        mamba_chunk_scan, f"{_SCAN} -> (Tensor, Tensor)", results.with_states,
    ),
    "selective_state_update": (
        selective_state_update,
        "(Tensor state, Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor? d=None, "
        "Tensor? z=None, Tensor? dt_bias=None, bool dt_softplus=False) -> (Tensor, Tensor)",
        results.updated,
    ),
    "attention_varlen": (attention_varlen, f"{_VARLEN} -> Tensor", results.attended),
    "attention_varlen_with_lse": (
        attention_varlen, f"{_VARLEN} -> (Tensor, Tensor)", results.packed_with_lse,
    ),
    "filter_logits": (
        filter_logits,
        f"(Tensor logits, {_EACH_ROW}, bool probabilities=False) -> Tensor",
        results.filtered,
    ),
    "sample": (
        sample,
        f"(Tensor logits, Tensor uniform, {_EACH_ROW}, str out_dtype='int32') -> Tensor",
        results.drawn,
    ),
}  # fmt: skip
"""For each operator its kernel, its schema, and what it returns of tensors without memory."""

FIXED = {
    "attention_with_lse": {"return_lse": True},
    "attention_varlen_with_lse": {"return_lse": True},
    "paged_attention_with_lse": {"return_lse": True},
    "causal_conv1d_with_states": {"return_final_states": True},
    "mamba_chunk_scan_with_states": {"return_final_states": True},
}
"""Settings that are the same in each call of an operator."""


def _op(name: str) -> Any:
    """Return an operator; those of kernels of tiles have no gradients."""
    function, schema, like = TABLE[name]
    made = array_op if isinstance(function, tile.Function) else plain_op
    return made(function, f"tile_nn::{name}", schema, like, FIXED.get(name))


OPERATORS = {name: _op(name) for name in TABLE}
"""The operators by name, each a ``torch.library.CustomOpDef``."""
