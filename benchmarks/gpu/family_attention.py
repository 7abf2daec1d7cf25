"""Attention: forward, backward, and decoding with multi-head latent attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from problem import Family, Sizes, Tensors, empty, random, run_main


def _forward_inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
    shape = [sizes[name] for name in ("batch", "tokens", "heads", "dim")]
    return [random(shape, torch.float16, device, generator) for _ in range(3)]


def _forward_outputs(sizes: Sizes, device: Any) -> Tensors:
    batch, tokens, heads, dim = (sizes[n] for n in ("batch", "tokens", "heads", "dim"))
    return [
        empty((batch, tokens, heads, dim), torch.float16, device),
        empty((batch, heads, tokens), torch.float32, device),
    ]


def _scores(q: Any, k: Any, is_causal: bool) -> Any:
    """Return the scaled scores of one head."""
    scores = q.float() @ k.float().T / math.sqrt(q.shape[1])
    if is_causal:
        hidden = torch.ones(scores.shape, dtype=torch.bool, device=q.device).triu_(1)
        scores.masked_fill_(hidden, -math.inf)
    return scores


def _forward_reference(sizes: Sizes, inputs: Tensors) -> Tensors:
    """Return O, and the logarithm to base 2 of the sums, head by head in float32."""
    q, k, v = inputs
    o = torch.empty(q.shape, device=q.device)
    lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), device=q.device)
    for b in range(q.shape[0]):
        for h in range(q.shape[2]):
            scores = _scores(q[b, :, h], k[b, :, h], sizes["causal"])
            lse[b, h] = scores.logsumexp(-1) * math.log2(math.e)
            o[b, :, h] = scores.softmax(-1) @ v[b, :, h].float()
    return [o, lse]


def _pairs(sizes: Sizes) -> float:
    """Return how many pairs of a query and a key there are; half of them if causal."""
    pairs = float(sizes["batch"]) * sizes["heads"] * sizes["tokens"] ** 2
    return pairs / 2 if sizes["causal"] else pairs


def _forward_work(sizes: Sizes) -> tuple[float, float]:
    elements = math.prod(sizes[name] for name in ("batch", "tokens", "heads", "dim"))
    return 4.0 * _pairs(sizes) * sizes["dim"], 8.0 * elements


FORWARD = Family(
    inputs=_forward_inputs,
    outputs=_forward_outputs,
    reference=_forward_reference,
    launch=run_main,
    work=_forward_work,
)


def _backward_inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
    """Return Q, K, V, dO, and what a forward pass keeps: O and the sums, all of one head rows."""
    shape = [sizes["batch"] * sizes["heads"], sizes["tokens"], sizes["dim"]]
    q, k, v, do = (random(shape, torch.float16, device, generator) for _ in range(4))
    o, lse = torch.empty_like(q), torch.empty(shape[:2], device=device)
    for h in range(shape[0]):
        scores = _scores(q[h], k[h], sizes["causal"])
        lse[h] = scores.logsumexp(-1) * math.log2(math.e)
        o[h] = (scores.softmax(-1) @ v[h].float()).half()
    return [q, k, v, do, o, lse]


def _backward_outputs(sizes: Sizes, device: Any) -> Tensors:
    shape = (sizes["batch"] * sizes["heads"], sizes["tokens"], sizes["dim"])
    return [empty(shape, torch.float16, device) for _ in range(3)]


def _backward_reference(sizes: Sizes, inputs: Tensors) -> Tensors:
    q, k, v, do, _, _ = inputs
    found = [torch.empty(q.shape, device=q.device) for _ in range(3)]
    scale = 1 / math.sqrt(q.shape[2])
    for h in range(q.shape[0]):
        weights = _scores(q[h], k[h], sizes["causal"]).softmax(-1)
        dv = weights.T @ do[h].float()
        d_weights = do[h].float() @ v[h].float().T
        delta = (weights * d_weights).sum(-1, keepdim=True)
        ds = weights * (d_weights - delta) * scale
        for tensor, value in zip(found, (ds @ k[h].float(), ds.T @ q[h].float(), dv), strict=True):
            tensor[h] = value
    return found


def _backward_launch(
    kernels: Mapping[str, Any], inputs: Tensors, outputs: Tensors
) -> Callable[[], None]:
    """Compute delta, zero the sums of dQ, run the kernel that adds to them, round them."""
    q, k, v, do, o, lse = inputs
    dq, dk, dv = outputs
    delta, sums = torch.empty_like(lse), torch.empty(q.shape, device=q.device)

    def run() -> None:
        kernels["delta"].run(o, do, delta)
        sums.zero_()
        kernels["main"].run(q, k, v, do, lse, delta, sums, dk, dv)
        dq.copy_(sums)

    return run


def _backward_work(sizes: Sizes) -> tuple[float, float]:
    elements = math.prod(sizes[name] for name in ("batch", "tokens", "heads", "dim"))
    return 10.0 * _pairs(sizes) * sizes["dim"], 16.0 * elements


BACKWARD = Family(
    inputs=_backward_inputs,
    outputs=_backward_outputs,
    reference=_backward_reference,
    launch=_backward_launch,
    work=_backward_work,
    relative=5e-3,
    single=5e-2,
    is_repeatable=False,
)


def _mla_inputs(sizes: Sizes, device: Any, generator: Any) -> Tensors:
    batch, heads, tokens, dim, pe = (sizes[n] for n in ("batch", "heads", "tokens", "dim", "pe"))
    shapes = ((batch, heads, dim), (batch, heads, pe), (batch, tokens, 1, dim))
    shapes = (*shapes, (batch, tokens, 1, pe))
    return [random(shape, torch.float16, device, generator) for shape in shapes]


def _mla_reference(sizes: Sizes, inputs: Tensors) -> Tensors:
    q, q_pe, kv, k_pe = inputs
    found = torch.empty(q.shape, device=q.device)
    for b in range(q.shape[0]):
        keys, query = torch.cat([kv[b, :, 0], k_pe[b, :, 0]], -1), torch.cat([q[b], q_pe[b]], -1)
        scores = query.float() @ keys.float().T / math.sqrt(query.shape[1])
        found[b] = scores.softmax(-1) @ kv[b, :, 0].float()
    return [found]


def _mla_work(sizes: Sizes) -> tuple[float, float]:
    batch, heads, tokens, dim, pe = (sizes[n] for n in ("batch", "heads", "tokens", "dim", "pe"))
    flops = 2.0 * batch * heads * tokens * (2 * dim + pe)
    return flops, 2.0 * batch * (tokens * (dim + pe) + heads * (2 * dim + pe))


MLA = Family(
    inputs=_mla_inputs,
    outputs=lambda s, device: [empty((s["batch"], s["heads"], s["dim"]), torch.float16, device)],
    reference=_mla_reference,
    launch=run_main,
    work=_mla_work,
)
