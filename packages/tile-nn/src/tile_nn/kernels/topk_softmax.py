"""`tile_nn.topk_softmax`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks


@tile.function
def topk_softmax(logits: Any, topk: int, *, renormalize: bool = True) -> Any:
    """Return the experts of each token, and their weights: the largest of a softmax.

    Parameters
    ----------
    logits
        ``(..., experts)``, floats of any type.
    topk
        How many experts a token has.
    renormalize
        Whether weights are divided by their sum (Mixtral, Qwen3-MoE); else they are those of the
        softmax over all experts (Qwen2-MoE).

    Returns
    -------
    weights, ids
        ``(..., topk)``, float32 and int32, the largest first. Of equal logits the first is taken.

    Notes
    -----
    Softmax in float32, then the choice: FlashInfer's ``RenormalizeNaive`` and ``Default``; the
    choice and then a softmax of what was chosen, as in gpt-oss, is the same but for rounding. Known
    elsewhere by this name in vLLM and SGLang.
    """
    checks.floats("topk_softmax", logits=logits)
    check_topk("topk_softmax", logits, topk)
    ids = np.argsort(-logits, axis=-1, kind="stable")[..., :topk]
    z = np.take_along_axis(logits, ids, axis=-1).astype("float32")
    most = np.max(logits, axis=-1, keepdims=True)
    e = np.exp(z - most)
    total = np.sum(e if renormalize else np.exp(logits - most), axis=-1, keepdims=True)
    return (e / total).astype("float32"), ids.astype("int32")


def check_topk(kernel: str, logits: Any, topk: Any) -> None:
    """Check how many experts are asked for."""
    checks.ranked(kernel, 1, "(..., experts)", logits=logits)
    checks.require(
        isinstance(topk, int) and 1 <= topk <= logits.shape[-1], kernel,
        f"topk is {topk!r}, of {logits.shape[-1]} experts", "a number from 1 to that of experts",
    )  # fmt: skip
