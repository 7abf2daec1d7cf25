"""`tile_nn.attention`, against the whole table of scores in plain torch."""

from __future__ import annotations

import pytest
import torch

import tile_nn
from support.nn_kernels import EMULATED, HOST, Case, in_turn, require_accurate, require_gradients

INF = float("inf")


def meant(
    q, k, v, mask=None, sinks=None, alibi_slopes=None, *, causal=False, softmax_scale=None,
    window_size=(-1, -1), softcap=0.0, layout="BHTD", return_lse=False,
):  # fmt: skip
    """Attention with all scores in memory, as models write it."""
    dtype, wide = q.dtype, torch.promote_types(q.dtype, torch.float32)
    if layout == "BTHD":
        q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3) for x in (k, v))
    s = (q @ k.transpose(-1, -2)).to(wide) * (softmax_scale or q.shape[-1] ** -0.5)
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    i = torch.arange(s.shape[-2])[:, None] + s.shape[-1] - s.shape[-2]
    j = torch.arange(s.shape[-1])
    if alibi_slopes is not None:
        s = s - alibi_slopes[:, None, None] * (i - j).abs()
    if mask is not None:
        s = s.masked_fill(~mask, -INF) if mask.dtype == torch.bool else s + mask
    left, right = window_size
    right = 0 if causal else right
    hidden = ((left >= 0) & (j < i - left)) | ((right >= 0) & (j > i + right))
    s = s.masked_fill(hidden, -INF)
    if sinks is not None:
        column = sinks[:, None, None].expand(*s.shape[:-1], 1).to(wide)
        s = torch.cat([s, column], dim=-1)
    lse = torch.logsumexp(s, dim=-1) if s.shape[-1] else s.new_full(s.shape[:-1], -INF)
    p = torch.exp(s - lse.masked_fill(lse == -INF, 0.0)[..., None])[..., : k.shape[-2]]
    out = (p.to(dtype) @ v).to(dtype)
    out = out.transpose(-3, -2) if layout == "BTHD" else out
    return (out, lse) if return_lse else out


def case(
    t=13, s=13, heads=2, kv_heads=2, d=16, dv=16, batch=2, more=(), scale=1.0, **settings
):  # fmt: skip
    def arguments(random):
        def normal(*shape):
            return scale * torch.randn(shape, generator=random, dtype=torch.float64)

        made = {
            "q": normal(batch, heads, t, d),
            "k": normal(batch, kv_heads, s, d),
            "v": normal(batch, kv_heads, s, dv),
        }
        if settings.get("layout") == "BTHD":
            made = {n: x.transpose(1, 2).contiguous() for n, x in made.items()}
        given = {
            "sinks": lambda: normal(heads),
            "alibi_slopes": lambda: 2.0 ** -torch.arange(1, heads + 1).double(),
            "mask": lambda: torch.rand((batch, 1, t, s), generator=random) < 0.6,
            "bias": lambda: normal(heads, t, s),
        }
        return made | {n.replace("bias", "mask"): given[n]() for n in more}

    return Case(tile_nn.attention, meant, arguments, settings)


CASES = {
    "all": case(return_lse=True),
    "causal": case(t=17, s=17, causal=True, return_lse=True),
    "more keys": case(t=5, s=19, causal=True),
    "rows that see nothing": case(t=19, s=5, causal=True, return_lse=True),
    "window": case(t=23, s=23, window_size=(4, 2), return_lse=True),
    "window to the left": case(t=11, s=23, causal=True, window_size=(7, 5)),
    "cap": case(softcap=2.0, causal=True, scale=2.0),
    "slopes": case(t=7, s=11, heads=4, kv_heads=4, more=("alibi_slopes",)),
    "sinks": case(t=9, s=9, causal=True, more=("sinks",), return_lse=True),
    "sinks alone": case(t=9, s=2, causal=True, more=("sinks",), return_lse=True),
    "mask": case(t=7, s=13, more=("mask",), return_lse=True),
    "bias": case(t=7, s=13, more=("bias",)),
    "grouped": case(t=11, s=11, heads=6, kv_heads=2, causal=True),
    "one head of keys": case(t=3, s=29, heads=3, kv_heads=1, dv=8),
    "heads last": case(t=11, s=13, heads=4, kv_heads=2, layout="BTHD", causal=True),
    "one query": case(t=1, s=37, heads=4, kv_heads=2, causal=True, return_lse=True),
    "scaled": case(softmax_scale=0.5),
    "large scores": case(scale=30.0, causal=True, return_lse=True),
}


@pytest.mark.parametrize(("name", "dtype"), in_turn(CASES))
@pytest.mark.parametrize("target", HOST)
def test_on_the_host(target, dtype, name):
    require_accurate(CASES[name], dtype, target)


@pytest.mark.filterwarnings("ignore:.* is whole in each thread:tile_launch.errors.TileWarning")
@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["sinks"], "float16", target)


SHARED = ("all", "cap", "bias", "grouped", "rows that see nothing", "sinks alone", "heads last")


@pytest.mark.parametrize(("name", "dtype"), [*in_turn(SHARED), ("window", "bfloat16")])
def test_gradients(name, dtype):
    require_gradients(CASES[name], dtype)


def test_nothing():
    def empty(*shape):
        return torch.empty(shape)

    assert tile_nn.attention(empty(2, 2, 0, 8), empty(2, 2, 5, 8), empty(2, 2, 5, 8)).numel() == 0
    out, lse = tile_nn.attention(
        torch.ones(1, 1, 3, 8), empty(1, 1, 0, 8), empty(1, 1, 0, 4), return_lse=True
    )
    assert torch.equal(out, torch.zeros(1, 1, 3, 4))
    assert torch.equal(lse, torch.full((1, 1, 3), -INF))


def test_what_no_query_sees_does_no_harm():
    q, k, v = torch.randn(3, 1, 2, 6, 8)
    mask = torch.ones(1, 1, 6, 6, dtype=torch.bool)
    mask[..., 4:] = False
    wanted = tile_nn.attention(q, k, v, mask)
    k[:, :, 4:] = float("nan")
    assert torch.equal(tile_nn.attention(q, k, v, mask), wanted)


def test_attention_is_one_kernel():
    q, k = torch.empty(2, 4, 130, 32), torch.empty(2, 2, 40, 32)
    settings = {"causal": True, "window_size": (30, 0), "softcap": 5.0, "return_lse": True}
    told = tile_nn.attention.explain(q, k, k, None, torch.zeros(4), torch.ones(4), **settings)
    assert len(told.kernels) == 1
