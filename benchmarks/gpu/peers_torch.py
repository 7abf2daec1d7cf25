"""What torch brings: cuBLAS, attention of cuDNN and FlashAttention-2, and plain operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from contestant import Absent, Contestant, Run
from family_mamba import scan_in_torch, state_in_torch
from family_products import dequantised
from family_rows import EPS
from problem import Sizes, Tensors
from torch.nn.attention import SDPBackend, sdpa_kernel


def _product(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
    a, b = inputs
    return lambda: [torch.mm(a, b.T, out=outputs[0])]


def _dequantised_product(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
    """Multiply by weights of float16, which are four times as large."""
    return _product(sizes, [inputs[0], dequantised(sizes, inputs)], outputs)


def _blocks_of_float8(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
    """Multiply with scales for blocks, where the library can: scales of A lie by columns."""
    a, b, scale_a, scale_b = inputs
    by_columns = scale_a.T.contiguous().T
    function = getattr(F, "scaled_mm", None)
    if function is None:
        raise Absent("this torch has no product with scales of blocks")
    kinds = F.ScalingType
    return lambda: [
        function(
            a, b.T, by_columns, kinds.BlockWise1x128, scale_b.T, kinds.BlockWise128x128,
            output_dtype=torch.bfloat16,
        )
    ]  # fmt: skip


def _one_scale_of_float8(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
    """Multiply with one scale for all: less work, a mark for the one with blocks."""
    a, b = inputs[:2]
    one = torch.ones((), device=a.device)
    return lambda: [torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16)]


def _attention(backend: Any) -> Callable[[Sizes, Tensors, Tensors], Run]:
    def make(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
        q, k, v = (x.transpose(1, 2) for x in inputs)

        def run() -> list[Any]:
            with sdpa_kernel(backend):
                o = F.scaled_dot_product_attention(q, k, v, is_causal=sizes["causal"])
            return [o.transpose(1, 2)]

        return run

    return make


def _gradients(backend: Any) -> Callable[[Sizes, Tensors, Tensors], Run]:
    def make(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
        q, k, v, do = (x.unflatten(0, (sizes["batch"], sizes["heads"])) for x in inputs[:4])
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        with sdpa_kernel(backend):
            o = F.scaled_dot_product_attention(*leaves, is_causal=sizes["causal"])

        def run() -> list[Any]:
            found = torch.autograd.grad(o, leaves, do, retain_graph=True)
            return [gradient.flatten(0, 1) for gradient in found]

        return run

    return make


def _latent_attention(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
    q, q_pe, kv, k_pe = inputs
    query, values = torch.cat([q, q_pe], -1), kv[:, :, 0]
    keys = torch.cat([values, k_pe[:, :, 0]], -1)
    scale = 1 / math.sqrt(query.shape[-1])

    def run() -> list[Any]:
        scores = torch.bmm(query, keys.transpose(1, 2)).mul_(scale)
        return [torch.bmm(scores.softmax(-1), values)]

    return run


def _rows(function: Callable[..., Any]) -> Callable[[Sizes, Tensors, Tensors], Run]:
    return lambda sizes, inputs, outputs: lambda: [function(*inputs)]


def _copy(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Run:
    return lambda: [outputs[0].copy_(inputs[0])]


def _contestant(name: str, make: Callable[..., Run], **more: Any) -> Contestant:
    return Contestant(name=name, make=make, **more)


_CUDNN, _FLASH = SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION

CONTESTANTS: Mapping[str, tuple[Contestant, ...]] = {
    "gemm": (_contestant("cuBLAS", _product),),
    "attention": (
        _contestant("SDPA cudnn", _attention(_CUDNN)),
        _contestant("SDPA flash", _attention(_FLASH)),
    ),
    "backward": (
        _contestant("SDPA cudnn", _gradients(_CUDNN), can_record=False),
        _contestant("SDPA flash", _gradients(_FLASH), can_record=False),
    ),
    "mla": (_contestant("torch", _latent_attention),),
    "scan": (_contestant("torch", _rows(scan_in_torch)),),
    "state": (_contestant("torch", _rows(state_in_torch)),),
    "fp8": (
        _contestant("cuBLAS blocks", _blocks_of_float8),
        _contestant("cuBLAS one scale", _one_scale_of_float8, is_exact=False),
    ),
    "w4a16": (_contestant("cuBLAS float16", _dequantised_product),),
    "copy": (_contestant("torch", _copy),),
    "softmax": (_contestant("torch", _rows(lambda x: torch.softmax(x, -1))),),
    "rms_norm": (_contestant("torch", _rows(lambda x, w: F.rms_norm(x, x.shape[-1:], w, EPS))),),
    "layer_norm": (
        _contestant("torch", _rows(lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, EPS))),
    ),
}
"""By family."""
