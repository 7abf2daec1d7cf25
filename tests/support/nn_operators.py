"""Arguments for each operator of `tile_nn`."""

from __future__ import annotations

from functools import partial

import torch

import tile_api as tile
from tile_nn.torch_ops import FIXED, TABLE


def normal(*shape, gradient=True):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))
    return made.requires_grad_(gradient)


def examples():
    """Return arguments for each operator: some are strided, some need no gradient."""
    x, rows, heads = normal(5, 8), normal(8), normal(1, 2, 5, 8)
    target, angles = torch.tensor([1, -100, 0, 4, 4]), normal(5, 4, gradient=False)
    q8 = torch.arange(-32, 32, dtype=torch.int8).reshape(8, 8)
    turned = heads.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    return {
        "rms_norm": (x, rows),
        "fused_add_rms_norm": (x, rows, normal(8, 5).t().detach().requires_grad_()),
        "layer_norm": (x, rows, rows),
        "swiglu": (x, x),
        "geglu": (x, x),
        "silu_and_mul": (x,),
        "gelu_and_mul": (x, "tanh"),
        "rotary": (heads, angles.cos(), angles.sin(), turned),
        "attention": (heads, turned, turned, None, rows[:2].detach().requires_grad_()),
        "attention_with_lse": (heads, heads, heads),
        "cross_entropy": (x, target),
        "linear_cross_entropy": (x, normal(5, 8), target, None, -100, 0.1, 0.0, 0.0, "none"),
        "embedding": (torch.tensor([[4, 0, 2]]), x),
        "topk_softmax": (x, 2),
        "grouped_topk": (x, rows, 2, 2, 1),
        "quantize_int8": (x, 4),
        "quantize_fp8": (x.detach().bfloat16(), 0, "float8_e5m2"),
        "linear_w8a8": (q8[:5], q8, rows[:5, None], rows, None, "bfloat16"),
        "adamw": (x, x, x.detach(), x.detach() ** 2, torch.tensor(3), torch.tensor(0.125)),
        "fused_experts": (
            x,
            normal(3, 6, 8),
            normal(3, 8, 3),
            normal(5, 2),
            torch.tensor([[0, 2], [1, 0], [2, 7], [1, 1], [2, 1]]),
            "silu",
            4,
        ),
        "linear_nf4": (x, torch.arange(12, dtype=torch.uint8).reshape(3, 4) * 21, normal(3, 2)),
        "linear_w4a16": (x, torch.arange(12, dtype=torch.uint8).reshape(3, 4), normal(3, 2)),
        **_of_decoding(heads),
        **_of_tiles(),
    }


def _of_decoding(heads):
    """Return arguments of what goes through pages, or from step to step."""
    heads_last, rates = heads.detach().transpose(1, 2), -torch.ones(2)
    pages = normal(3, 2, 1, 8), normal(3, 2, 1, 4)
    table, query = torch.tensor([[2, 0, 7]]), heads_last[:, -1:].requires_grad_()
    paged = query, *pages, table, torch.tensor([3])
    dt, states = normal(1, 5, 2).detach().abs(), normal(1, 2, 8, 8, gradient=False)
    scan = heads_last, dt, rates, heads_last[:, :, :1], heads_last[:, :, 1:]
    step = *(t[:, 0] for t in scan[:2]), rates, *(t[:, 0] for t in scan[3:])
    return {
        "paged_attention": paged,
        "paged_attention_with_lse": (*paged, None, None, 0.5, [1, -1]),
        "causal_conv1d": (heads[0], normal(5, 3), normal(5), None, "silu"),
        "causal_conv1d_with_states": (heads[0], normal(5, 3), None, heads[0, :, :, :2]),
        "mamba_chunk_scan": scan,
        "mamba_chunk_scan_with_states": (*scan, normal(2, 8), heads_last, rates, states, True),
        "selective_state_update": (states, *step),
    }


def _of_tiles():
    """Return arguments of kernels of tiles, which have no gradients."""
    q, k, v = (normal(7, heads, 16, gradient=False) for heads in (4, 2, 2))
    begins = torch.tensor([0, 3, 3, 7], dtype=torch.int32)
    logits, uniform = normal(4, 70, gradient=False), torch.tensor([0.1, 0.5, 0.9, 0.3])
    rows = (
        torch.tensor([0.5, 0, 1, 2]),
        torch.tensor([0, 7, 20, 50], dtype=torch.int32),
        torch.tensor([0.8, 0.9, 1, 0.5]),
        torch.tensor([0, 0.1, 0.05, 0.2]),
    )
    return {
        "attention_varlen": (q, k, v, begins, begins, 4, True),
        "attention_varlen_with_lse": (q, k, v, begins, begins, 4, False, 0.5),
        "filter_logits": (logits, *rows),
        "sample": (logits, uniform, *rows, "int64"),
    }


def on(kernel, target):
    """Return a kernel for a target: of arrays, or of tiles."""
    if isinstance(kernel, tile.Function):
        return kernel.on(target)
    return partial(kernel, target=target)


def call_of(name):
    """Return an operator's kernel, and the example's tensors and settings by name."""
    function, schema, _ = TABLE[name]
    names = [a.name for a in torch._C.parse_schema(f"tile::op{schema}").arguments]
    values = (tuple(x) if isinstance(x, list) else x for x in examples()[name])
    given = dict(zip(names, values, strict=False))
    tensors = {n: x.detach() for n, x in given.items() if isinstance(x, torch.Tensor)}
    settings = {n: x for n, x in given.items() if n not in tensors}
    return function, tensors, settings | FIXED.get(name, {})
