"""What operators return: empty tensors, for tensors without memory; sizes may be symbols."""

from __future__ import annotations

from typing import Any

import torch


def as_first(x: Any, *_: Any) -> Any:
    """Return what is like the first argument."""
    return x.new_empty(x.shape)


def half(x: Any, *_: Any) -> Any:
    """Return rows of half the length."""
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


def normed(x: Any, weight: Any = None, eps: float = 1e-6, offset: float = 0.0,
            casting_mode: str = "llama") -> Any:  # fmt: skip
    """Return a norm."""
    is_last = casting_mode == "gemma" or weight is None
    dtype = x.dtype if is_last else torch.promote_types(x.dtype, weight.dtype)
    return x.new_empty(x.shape, dtype=dtype)


def normed_sum(x: Any, weight: Any, residual: Any, *settings: Any) -> Any:
    """Return a norm, and the sum that it is of."""
    return normed(x, weight, *settings), x.new_empty(x.shape)


def gated(gate: Any, up: Any, *_: Any) -> Any:
    """Return what is like a gate, of the type of the product."""
    return gate.new_empty(gate.shape, dtype=torch.promote_types(gate.dtype, up.dtype))


def pair(x: Any, cos: Any, sin: Any, k: Any, *_: Any) -> Any:
    """Return queries and keys."""
    return x.new_empty(x.shape), k.new_empty(k.shape)


def attended(q: Any, k: Any, v: Any, *_: Any) -> Any:
    """Return means of values."""
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def with_lse(q: Any, k: Any, v: Any, mask: Any = None, sinks: Any = None, slopes: Any = None,
              causal: bool = False, scale: Any = None, window: Any = (-1, -1),
              softcap: float = 0.0, layout: str = "BHTD") -> Any:  # fmt: skip
    """Return means of values, and logarithms of sums."""
    rows = q.shape[:-1] if layout == "BHTD" else (*q.shape[:-3], q.shape[-2], q.shape[-3])
    return attended(q, k, v), q.new_empty(rows, dtype=wide(q))


def wide(x: Any) -> Any:
    """Return the type that sums are in."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def loss(rows: Any, x: Any, reduction: str) -> Any:
    """Return losses of rows, or one."""
    return x.new_empty(rows.shape if reduction == "none" else (), dtype=wide(x))


def cross(logits: Any, target: Any, ignored: int = -100, smoothing: float = 0.0,
           z_loss: float = 0.0, cap: float = 0.0, reduction: str = "mean") -> Any:  # fmt: skip
    """Return the losses of logits."""
    return loss(target, logits, reduction)


def linear_cross(x: Any, weight: Any, target: Any, bias: Any = None, ignored: int = -100,
                  smoothing: float = 0.0, z_loss: float = 0.0, cap: float = 0.0,
                  reduction: str = "mean") -> Any:  # fmt: skip
    """Return the losses of a product."""
    return loss(target, x, reduction)


def rows(ids: Any, weight: Any, *_: Any) -> Any:
    """Return rows of a table."""
    return weight.new_empty((*ids.shape, weight.shape[1]))


def routed(logits: Any, topk: int, *_: Any) -> Any:
    """Return weights and experts."""
    shape = (*logits.shape[:-1], topk)
    return logits.new_empty(shape, dtype=torch.float32), logits.new_empty(shape, dtype=torch.int32)


def product(x: Any, weight: Any, *_: Any) -> Any:
    """Return the product with a matrix of rows."""
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def grouped(logits: Any, bias: Any, topk: int, *_: Any) -> Any:
    """Return weights and experts out of groups."""
    return routed(logits, topk)


def stepped(param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, *_: Any) -> Any:
    """Return parameters and averages."""
    return tuple(x.new_empty(x.shape) for x in (param, exp_avg, exp_avg_sq))


def bytes_and_scales(x: Any, group_size: int = 0, *_: Any) -> Any:
    """Return integers of 8 bits and their scales."""
    return x.new_empty(x.shape, dtype=torch.int8), _scales(x, group_size)


def floats_and_scales(x: Any, group_size: int = 0, dtype: str = "float8_e4m3fn", *_: Any) -> Any:
    """Return floats of 8 bits and their scales."""
    return x.new_empty(x.shape, dtype=getattr(torch, dtype)), _scales(x, group_size)


def _scales(x: Any, group_size: int) -> Any:
    groups = x.shape[-1] // group_size if group_size else 1
    return x.new_empty((*x.shape[:-1], groups), dtype=torch.float32)


def product_of_bytes(
    x: Any, weight: Any, x_scale: Any, weight_scale: Any, bias: Any = None,
    out_dtype: str = "float32",
) -> Any:  # fmt: skip
    """Return the product with a matrix of rows, in the type that is asked for."""
    return x.new_empty((*x.shape[:-1], weight.shape[0]), dtype=getattr(torch, out_dtype))


def paged(q: Any, k_cache: Any, v_cache: Any, *_: Any) -> Any:
    """Return means of values."""
    return q.new_empty((*q.shape[:-1], v_cache.shape[-1]))


def paged_with_lse(q: Any, k_cache: Any, v_cache: Any, *_: Any) -> Any:
    """Return means of values, and logarithms of sums."""
    batch, length, heads, _ = q.shape
    return paged(q, k_cache, v_cache), q.new_empty((batch, heads, length), dtype=wide(q))


def with_elements(x: Any, weight: Any, *_: Any) -> Any:
    """Return rows, and their last elements."""
    return as_first(x), x.new_empty((*x.shape[:-1], weight.shape[1] - 1))


def with_states(x: Any, dt: Any, a: Any, b: Any, *_: Any) -> Any:
    """Return rows, and the states of heads."""
    batch, _, heads, width = x.shape
    return as_first(x), x.new_empty((batch, heads, width, b.shape[3]), dtype=wide(x))


def updated(state: Any, x: Any, *_: Any) -> Any:
    """Return rows, and the states of heads."""
    return x.new_empty(x.shape), state.new_empty(state.shape)


def packed_with_lse(q: Any, k: Any, v: Any, *_: Any) -> Any:
    """Return means of values, and logarithms of sums, of heads before tokens."""
    return attended(q, k, v), q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32)


def filtered(logits: Any, *_: Any) -> Any:
    """Return logits or probabilities."""
    return logits.new_empty(logits.shape, dtype=torch.float32)


def drawn(logits: Any, uniform: Any, temperature: Any = None, top_k: Any = None, top_p: Any = None,
          min_p: Any = None, out_dtype: str = "int32") -> Any:  # fmt: skip
    """Return a class of each row."""
    return logits.new_empty(logits.shape[:1], dtype=getattr(torch, out_dtype))
