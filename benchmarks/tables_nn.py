"""Kernels of `tile_nn` against torch, eager and compiled by Inductor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from measure import Row, cores, median_ms, set_threads

import tile_nn
from tile_nn.kernels.linear_nf4 import NF4

Problem = tuple[Callable[..., Any], Callable[..., Any], tuple[torch.Tensor, ...]]


def nn(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Compare at each number of threads; the work is gigabytes of arguments and results."""
    for threads in range(1, cores() + 1):
        set_threads(threads)
        torch._dynamo.reset()  # Inductor compiles for a number of threads
        for name, (ours, plain, given) in problems().items():
            compiled = torch.compile(plain)
            wanted, found = plain(*given), ours(*given)
            _require_close(found, wanted)
            _require_close(compiled(*given), wanted)
            runs = {
                "ours": lambda f=ours, a=given: f(*a),
                "eager": lambda f=plain, a=given: f(*a),
                "Inductor": lambda f=compiled, a=given: f(*a),
            }
            times = median_ms(runs, threads)
            moved = sum(x.nbytes for x in (*given, *_listed(wanted))) / 1e9
            yield Row(name, threads, times.pop("ours"), times, moved, 0.0, 1.0)


def problems() -> dict[str, Problem]:
    """Return what is computed, by name: our kernel, the same in plain torch, arguments."""
    torch.manual_seed(0)
    found: dict[str, Problem] = {}
    for dtype in (torch.float32, torch.bfloat16):
        kind = str(dtype).removeprefix("torch.")
        x, w = torch.randn(512, 4096).to(dtype), torch.randn(4096).to(dtype)
        q = torch.randn(1, 8, 512, 64).to(dtype)
        angles = torch.randn(512, 32)
        tables = angles.cos().to(dtype), angles.sin().to(dtype)
        found |= {
            f"rms_norm 512x4096 {kind}": (tile_nn.rms_norm, _norm, (x, w)),
            f"rms_norm + residual {kind}": (tile_nn.rms_norm, _normed_sum, (x, w, x)),
            f"silu_and_mul {kind}": (tile_nn.silu_and_mul, _gated, (x,)),
            f"rotary 8x512x64 {kind}": (tile_nn.rotary, _turned, (q, *tables)),
            f"attention, causal {kind}": (_causal, _sdpa, (q, q, q)),
            f"cross_entropy {kind}": (
                tile_nn.cross_entropy, _loss, (torch.randn(128, 32000).to(dtype), _targets(32000)),
            ),
        }  # fmt: skip
    x, w = torch.randn(128, 512), torch.randn(8000, 512)
    q8 = torch.randint(-127, 128, (128, 1024), dtype=torch.int8)
    w8, scales = torch.randint(-127, 128, (1024, 1024), dtype=torch.int8), torch.rand(1024)
    found["linear_cross_entropy"] = tile_nn.linear_cross_entropy, _last, (x, w, _targets(8000))
    nf4 = torch.randint(0, 256, (1024, 512), dtype=torch.uint8)
    found["linear_nf4 16x1024x1024"] = (
        tile_nn.linear_nf4, _normal_floats, (torch.randn(16, 1024), nf4, torch.rand(1024, 16)),
    )  # fmt: skip
    found["linear_w8a8"] = tile_nn.linear_w8a8, _bytes, (q8, w8, torch.rand(128, 1), scales)
    channels, taps = torch.randn(2, 512, 512), torch.randn(512, 4)
    found["causal_conv1d 512x512, 4 wide"] = _filtered, _usual_filter, (channels, taps)
    pages, table = torch.randn(512, 16, 2, 64), torch.randperm(512)[:256].reshape(8, 32)
    lengths = torch.randint(1, 513, (8,))
    found["paged_attention, 8 of <= 512"] = (
        tile_nn.paged_attention, _paged, (torch.randn(8, 1, 8, 64), pages, pages, table, lengths),
    )  # fmt: skip
    lengths = torch.tensor([300, 512, 0, 17, 128, 400, 65, 250])
    begins = F.pad(lengths.cumsum(0), (1, 0)).int()
    packed = [torch.randn(int(begins[-1]), heads, 64) for heads in (8, 2, 2)]
    found["attention_varlen, 8 of <= 512"] = _varlen, _in_turn, (*packed, begins)
    found["fused_experts 256 tokens, 2 of 8"] = (
        tile_nn.fused_experts, _experts,
        (torch.randn(256, 512), torch.randn(8, 512, 512) / 22, torch.randn(8, 512, 256) / 16,
         torch.rand(256, 2), torch.stack([torch.randperm(8)[:2] for _ in range(256)])),
    )  # fmt: skip
    state, x = torch.randn(8, 16, 64, 64), torch.randn(8, 16, 64)
    found["selective_state_update 8x16x64x64"] = (
        tile_nn.selective_state_update, _stepped,
        (state, x, torch.rand(8, 16), -torch.rand(16), *torch.randn(2, 8, 1, 64)),
    )  # fmt: skip
    found["topk_softmax 128 of 64"] = _eight, _routed, (torch.randn(128, 64),)
    logits, uniform = torch.randn(8, 152064) * 4, torch.rand(8)
    found |= {
        "sample 8 of 152064": (tile_nn.sample, _drawn, (logits, uniform)),
        "sample, top 50, 0.9": (_fifty, _drawn_of_fifty, (logits, uniform)),
        "sample, 0.9": (_share, _drawn_of_share, (logits, uniform)),
        "filter_logits, top 50": (_cut, _masked, (logits,)),
        "filter_logits, top 50 bfloat16": (_cut, _masked, (logits.bfloat16(),)),
    }
    return found


def _targets(classes: int) -> torch.Tensor:
    return torch.randint(0, classes, (128,))


def _norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return w * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def _normed_sum(x: torch.Tensor, w: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, ...]:
    total = x + r
    return _norm(total, w), total


def _gated(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return tile_nn.attention(q, k, v, causal=True)


def _sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def _loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.float(), target)


def _last(x: torch.Tensor, w: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x @ w.T, target)


def _normal_floats(x: torch.Tensor, weight: torch.Tensor, absmax: torch.Tensor) -> torch.Tensor:
    codes = torch.stack([weight >> 4, weight & 15], dim=-1).flatten(-2).int()
    return x @ (torch.tensor(NF4)[codes] * absmax.repeat_interleave(64, 1)).T


def _bytes(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return torch._int_mm(x, w.T).float() * s * t


def _eight(x: torch.Tensor) -> Any:
    return tile_nn.topk_softmax(x, 8)


def _routed(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    weights, ids = torch.softmax(x, dim=-1).topk(8, dim=-1)
    return weights / weights.sum(-1, keepdim=True), ids.int()


def _fifty(logits: torch.Tensor, uniform: torch.Tensor) -> Any:
    return tile_nn.sample(logits, uniform, top_k=50, top_p=0.9)


def _share(logits: torch.Tensor, uniform: torch.Tensor) -> Any:
    return tile_nn.sample(logits, uniform, top_p=0.9)


def _cut(logits: torch.Tensor) -> Any:
    return tile_nn.filter_logits(logits, top_k=50)


def _masked(logits: torch.Tensor) -> torch.Tensor:
    x = logits.float()
    return x.masked_fill(x < x.topk(50).values[:, -1:], -torch.inf)


def _found(weights: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    sums = weights.cumsum(-1)
    return torch.searchsorted(sums, (uniform * sums[:, -1])[:, None], right=True)


def _drawn(logits: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    return _found(torch.softmax(logits, -1), uniform)[:, 0].int()


def _drawn_of_fifty(logits: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    values, ids = logits.topk(50)
    p = torch.softmax(values, -1)
    p = torch.where(p.cumsum(-1) - p < 0.9, p, 0)
    ids, order = ids.sort(-1)
    return ids.gather(-1, _found(p.gather(-1, order), uniform))[:, 0].int()


def _drawn_of_share(logits: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    values, ids = logits.sort(-1, descending=True)
    p = torch.softmax(values, -1)
    p = torch.where(p.cumsum(-1) - p < 0.9, p, 0)
    return _found(torch.zeros_like(p).scatter_(-1, ids, p), uniform)[:, 0].int()


def _filtered(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return tile_nn.causal_conv1d(x, weight, activation="silu")


def _usual_filter(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    channels, width = weight.shape
    y = F.conv1d(x, weight[:, None], padding=width - 1, groups=channels)
    return F.silu(y[..., : x.shape[-1]])


def _paged(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    k, v = (x[table].flatten(1, 2).transpose(1, 2) for x in (k, v))
    mask = torch.arange(k.shape[2]) < lengths[:, None, None, None]
    out = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, mask, enable_gqa=True)
    return out.transpose(1, 2)


def _varlen(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, begins: torch.Tensor
) -> torch.Tensor:
    return tile_nn.attention_varlen(q, k, v, begins, begins, 512, causal=True)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _in_turn(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, begins: torch.Tensor
) -> torch.Tensor:
    outs = []
    for first, last in pairwise(begins.tolist()):
        one = (x[None, first:last].transpose(1, 2) for x in (q, k, v))
        out = F.scaled_dot_product_attention(*one, is_causal=True, enable_gqa=True)
        outs.append(out[0].transpose(0, 1))
    return torch.cat(outs)


def _experts(
    x: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, weights: torch.Tensor,
    ids: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    order = ids.flatten().argsort(stable=True)
    ends = torch.bincount(ids.flatten(), minlength=len(down)).cumsum(0).int()
    gate, up = F.grouped_mm(x[order // 2], gate_up.transpose(1, 2), offs=ends).chunk(2, dim=-1)
    y = F.grouped_mm(F.silu(gate) * up, down.transpose(1, 2), offs=ends)
    y = y * weights.flatten()[order, None]
    return torch.zeros_like(x).index_add(0, order // 2, y)


def _stepped(
    state: torch.Tensor, x: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor,
    c: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    state = (
        torch.exp(dt * a)[..., None, None] * state + (dt[..., None] * x)[..., None] * b[:, :, None]
    )
    return (state * c[:, :, None]).sum(-1), state


def _listed(results: Any) -> list[torch.Tensor]:
    return [*results] if isinstance(results, (tuple, list)) else [results]


def _require_close(found: Any, wanted: Any) -> None:
    for got, right in zip(_listed(found), _listed(wanted), strict=True):
        tolerance = 1e-4 if right.dtype == torch.float32 else 4e-2
        torch.testing.assert_close(got, right, rtol=tolerance, atol=tolerance)
