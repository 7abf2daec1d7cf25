"""`tile_nn.grouped_topk`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks
from tile_nn.kernels.topk_softmax import check_topk


@tile.function
def grouped_topk(
    logits: Any, bias: Any = None, *, topk: int, num_expert_group: int, topk_group: int,
    renormalize: bool = True, routed_scaling_factor: float = 1.0,
) -> Any:  # fmt: skip
    """Return the experts of each token out of the best groups, and their weights.

    Parameters
    ----------
    logits
        ``(..., experts)``, floats of any type.
    bias
        ``(experts,)``, floats: added for the choice, not to weights; None: zeros.
    topk
        How many experts a token has.
    num_expert_group, topk_group
        Experts stand in so many groups of neighbours, and come from so many of them: those in which
        the two best have the largest sum.
    renormalize
        Whether weights are divided by their sum, and 1e-20.
    routed_scaling_factor
        What weights are multiplied by, at last.

    Returns
    -------
    weights, ids
        ``(..., topk)``, float32 and int32, the best first. Of equal scores the first is taken.

    Notes
    -----
    A score is the logistic function of a logit, in float32. Known elsewhere by this name in vLLM,
    as ``moe_fused_gate`` (SGLang), ``fused_topk_deepseek`` (FlashInfer), ``top2_sum_gate``
    (TileKernels). *DeepSeek-V3 technical report*, 2024.
    """
    kernel = "grouped_topk"
    checks.floats(kernel, logits=logits, bias=bias)
    check_topk(kernel, logits, topk)
    checks.of_shape(kernel, logits.shape[-1:], "(experts,)", bias=bias)
    size = _check_groups(logits.shape[-1], topk, num_expert_group, topk_group)
    scores = (1 / (1 + np.exp(-logits))).astype("float32")
    choice = scores if bias is None else scores + bias
    grouped = np.reshape(choice, (*choice.shape[:-1], num_expert_group, size))
    of_groups = np.sum(np.sort(grouped, axis=-1)[..., -2:], axis=-1)
    best = np.argsort(-of_groups, axis=-1, kind="stable")[..., :topk_group]
    is_best = np.any(np.arange(num_expert_group)[:, None] == np.expand_dims(best, -2), axis=-1)
    left = np.where(np.expand_dims(is_best, -1), grouped, -np.inf)
    ids = np.argsort(-np.reshape(left, choice.shape), axis=-1, kind="stable")[..., :topk]
    weights = np.take_along_axis(scores, ids, axis=-1)
    if renormalize:
        weights = weights / (np.sum(weights, axis=-1, keepdims=True) + 1e-20)
    return (weights * routed_scaling_factor).astype("float32"), ids.astype("int32")


def _check_groups(experts: Any, topk: int, num_expert_group: int, topk_group: int) -> Any:
    """Return how many experts a group has."""
    kernel = "grouped_topk"
    checks.require(
        num_expert_group >= 1
        and experts % num_expert_group == 0
        and experts // num_expert_group >= 2,
        kernel, f"{experts} experts in {num_expert_group} groups",
        "groups of one size, of two or more",
    )  # fmt: skip
    size = experts // num_expert_group
    checks.require(
        1 <= topk_group <= num_expert_group and topk <= topk_group * size, kernel,
        f"{topk} experts out of {topk_group} of {num_expert_group} groups of {size}",
        "the groups that are taken hold as many experts as are asked for",
    )  # fmt: skip
    return size
