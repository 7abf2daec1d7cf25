"""`tile_nn.fused_experts`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks

ACTIVATIONS = ("silu", "gelu", "gelu_tanh")


@tile.function
def fused_experts(
    x: Any, gate_up: Any, down: Any, topk_weights: Any, topk_ids: Any, *,
    activation: str = "silu", block_rows: int = 32,
) -> Any:  # fmt: skip
    """Return for each token the weighted sum of what its experts make of it: gated layers.

    Parameters
    ----------
    x
        ``(tokens, d)``, floats of any type.
    gate_up
        ``(experts, 2 · inner, d)``, floats: the rows of the gate, then of what it lets through.
    down
        ``(experts, d, inner)``, floats.
    topk_weights, topk_ids
        ``(tokens, k)``, floats and integers: the experts of each token, and their weights. A number
        that is no expert is left out: experts elsewhere.
    activation
        Of the gate: ``"silu"``; ``"gelu"``, by the error function, or ``"gelu_tanh"``.
    block_rows
        How many tokens of an expert are multiplied at once.

    Returns
    -------
    y
        ``(tokens, d)``, of the type of `x`; summed in float32, of float64 in float64.

    Notes
    -----
    Tokens are sorted by expert, in blocks of which each has one expert: products of what is there,
    whatever the experts are. The order of sums is fixed. Known elsewhere by this name in vLLM and
    SGLang, as ``cutlass_fused_moe`` (FlashInfer), ``grouped_mm`` experts (transformers). T. Gale et
    al., *MegaBlocks*, 2022.
    """
    _check(x, gate_up, down, topk_weights, topk_ids, activation, block_rows)
    (tokens, chosen), experts = topk_ids.shape, gate_up.shape[0]
    count = tokens * chosen
    if count == 0:
        return np.zeros(x.shape, x.dtype)
    is_here = (topk_ids >= 0) & (topk_ids < experts)
    flat = np.reshape(np.where(is_here, topk_ids, experts), (count,))
    expert, at, is_row = in_blocks(flat, experts, block_rows, min(experts, count))
    pair = np.argsort(flat, kind="stable")[at]
    token = pair // chosen
    h = np.einsum("bid,bfd->bif", x[token], gate_up[expert])
    inner = down.shape[2]
    gate, up = h[..., :inner], h[..., inner:]
    how = "tanh" if activation == "gelu_tanh" else "none"
    gate = tile.nn.silu(gate) if activation == "silu" else tile.nn.gelu(gate, approximate=how)
    y = np.einsum("bif,bdf->bid", gate * up, down[expert])
    y = y.astype("float64" if x.dtype == "float64" else "float32")
    y = y * np.reshape(topk_weights, (count,))[pair][..., None]
    is_of = np.where(is_row, token, -1)[:, :, None, None] == np.arange(tokens)[:, None]
    return np.sum(np.where(is_of, y[:, :, None, :], 0), axis=(0, 1)).astype(x.dtype)


def in_blocks(flat: Any, experts: Any, rows: int, most: Any) -> tuple[Any, Any, Any]:
    """Return the expert of each block, the places of its rows among the sorted, and which are rows.

    Each expert has as many blocks as its tokens fill: the last may hold fewer.
    """
    counts = np.sum(flat[:, None] == np.arange(experts), axis=0)
    in_all = (counts + rows - 1) // rows
    ends, block_ends = np.cumsum(counts), np.cumsum(in_all)
    b = np.arange(flat.shape[0] // rows + most)
    expert = np.minimum(np.sum(b[:, None] >= block_ends, axis=-1), experts - 1)
    own = counts[expert]
    first = b - (block_ends[expert] - in_all[expert])
    rank = first[:, None] * rows + np.arange(rows)
    is_row = rank < own[:, None]
    return expert, np.where(is_row, (ends[expert] - own)[:, None] + rank, 0), is_row


def _check(
    x: Any, gate_up: Any, down: Any, topk_weights: Any, topk_ids: Any, activation: str, rows: Any
) -> None:
    kernel = "fused_experts"
    checks.floats(kernel, x=x, gate_up=gate_up, down=down, topk_weights=topk_weights)
    checks.integers(kernel, topk_ids=topk_ids)
    checks.one_of("tile_nn.fused_experts: activation", activation, ACTIVATIONS)
    checks.setting(
        type(rows) is int and rows >= 1, f"tile_nn.fused_experts: block_rows is {rows!r}",
        "a number of one or more: 16, 32, 64",
    )  # fmt: skip
    checks.require(x.ndim == 2, kernel, f"x has {x.ndim} dimensions", "it is (tokens, d)")
    shapes = [tuple(map(int, w.shape)) for w in (gate_up, down)]
    checks.require(
        gate_up.ndim == down.ndim == 3 and shapes[0][0] == shapes[1][0] >= 1
        and shapes[0][1:] == (2 * shapes[1][2], x.shape[1]) and shapes[1][1] == x.shape[1],
        kernel, f"gate_up and down have shapes {shapes[0]}, {shapes[1]}, and rows of x "
        f"{x.shape[1]} elements",
        "they are (experts, 2 * inner, d) and (experts, d, inner)",
    )  # fmt: skip
    checks.require(
        topk_ids.ndim == 2 and topk_ids.shape[0] == x.shape[0], kernel,
        f"topk_ids has shape {tuple(map(int, topk_ids.shape))}, and x {x.shape[0]} tokens",
        "it is (tokens, k)",
    )  # fmt: skip
    checks.of_shape(kernel, topk_ids.shape, "that of topk_ids", topk_weights=topk_weights)
