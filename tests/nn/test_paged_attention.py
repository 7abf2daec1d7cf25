"""`tile_nn.paged_attention`, against attention to the pages of one sequence after another."""

from __future__ import annotations

import pytest
import torch

import tile_nn
from support.nn_kernels import EMULATED, Case, require_accurate, require_gradients
from tile_core.errors import TileError

INF = float("inf")
PAGE, PAGES = 4, 11


def meant(
    q, k_cache, v_cache, block_table, cache_seqlens, sinks=None, alibi_slopes=None, *,
    softmax_scale=None, window_size=(-1, -1), softcap=0.0, kv_layout="NHD", return_lse=False,
):  # fmt: skip
    """One sequence after another, all scores in memory."""
    if kv_layout == "HND":
        k_cache, v_cache = (x.transpose(1, 2) for x in (k_cache, v_cache))
    wide = torch.promote_types(q.dtype, torch.float32)
    outs, sums = [], []
    for b, length in enumerate(cache_seqlens.tolist()):
        used = block_table[b, : -(-length // PAGE)].long()
        k, v = (x[used].flatten(0, 1)[:length].transpose(0, 1) for x in (k_cache, v_cache))
        t, heads, d = q.shape[1:]
        k, v = (x.repeat_interleave(heads // x.shape[0], 0) for x in (k, v))
        s = (q[b].transpose(0, 1) @ k.transpose(1, 2)).to(wide) * (softmax_scale or d**-0.5)
        s = softcap * torch.tanh(s / softcap) if softcap else s
        i, j = torch.arange(t)[:, None] + length - t, torch.arange(length)
        if alibi_slopes is not None:
            s = s - alibi_slopes[:, None, None] * (i - j).abs()
        left = window_size[0] if window_size[0] >= 0 else length + t
        s = s.masked_fill((j > i) | (j < i - left), -INF)
        if sinks is not None:
            s = torch.cat([s, sinks[:, None, None].expand(-1, t, 1).to(wide)], dim=-1)
        lse = torch.logsumexp(s, dim=-1) if s.shape[-1] else s.new_full(s.shape[:-1], -INF)
        p = torch.exp(s - lse.masked_fill(lse == -INF, 0.0)[..., None])[..., :length]
        outs.append((p.to(q.dtype) @ v).transpose(0, 1))
        sums.append(lse)
    out = torch.stack(outs).to(q.dtype)
    return (out, torch.stack(sums)) if return_lse else out


def case(lengths, t=1, heads=4, kv_heads=2, more=(), dv=8, **settings):
    def arguments(random):
        def normal(*shape):
            return torch.randn(shape, generator=random, dtype=torch.float64)

        pages = (PAGES, PAGE, kv_heads) if settings.get("kv_layout") != "HND" else (
            PAGES, kv_heads, PAGE,
        )  # fmt: skip
        most = max(-(-n // PAGE) for n in lengths) + 1
        table = torch.randint(0, PAGES, (len(lengths), most), generator=random, dtype=torch.int32)
        for row, n in zip(table, lengths, strict=True):
            row[-(-n // PAGE) :] = torch.tensor([-1, 10**9])[torch.arange(len(row)) % 2][
                -(-n // PAGE) :
            ]
        return {
            "q": normal(len(lengths), t, heads, 8),
            "k_cache": normal(*pages, 8),
            "v_cache": normal(*pages, dv),
            "block_table": table,
            "cache_seqlens": torch.tensor(lengths, dtype=torch.int32),
        } | {n: normal(heads) for n in more}

    return Case(tile_nn.paged_attention, meant, arguments, settings)


CASES = {
    ("one query", "float32"): case([13, 1, 0, 8], return_lse=True),
    ("several queries", "bfloat16"): case([9, 2, 16], t=3, dv=6),
    ("heads of pages first", "float16"): case([5, 12], kv_layout="HND", kv_heads=1),
    ("window, cap", "float64"): case([17, 3], t=2, window_size=(5, 0), softcap=2.0),
    ("sinks, slopes", "float32"): case(
        [7, 0], more=("sinks", "alibi_slopes"), kv_heads=4, softmax_scale=0.3, return_lse=True
    ),
}


@pytest.mark.parametrize("row", CASES, ids=", ".join)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_on_the_host(target, row):
    require_accurate(CASES[row], row[1], target)


@pytest.mark.filterwarnings("ignore:.* is whole in each thread:tile_launch.errors.TileWarning")
@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["several queries", "bfloat16"], "bfloat16", target)


def test_gradients():
    require_gradients(CASES["window, cap", "float64"], "float32")


def test_what_is_behind_the_end_does_no_harm():
    given = CASES["one query", "float32"].tensors("float32")
    wanted = tile_nn.paged_attention(**given)
    used = torch.zeros(PAGES, PAGE, dtype=torch.bool)
    for row, n in zip(given["block_table"], given["cache_seqlens"].tolist(), strict=True):
        for at in range(n):
            used[row[at // PAGE], at % PAGE] = True
    for name in ("k_cache", "v_cache"):
        given[name][~used] = float("nan")
    assert torch.equal(tile_nn.paged_attention(**given), wanted)


@pytest.mark.parametrize("wrong", [PAGES, -1])
def test_a_page_that_is_none(wrong):
    given = CASES["one query", "float32"].tensors("float32")
    given["block_table"][0, 1] = wrong
    with pytest.raises(TileError, match=rf"\[TL6009\] .* outside of its {PAGES} elements"):
        tile_nn.paged_attention(**given)


def test_nothing():
    q, pages = torch.ones(0, 1, 4, 8), torch.ones(PAGES, PAGE, 2, 8)
    none = torch.empty(0, dtype=torch.int32)
    assert tile_nn.paged_attention(q, pages, pages, none[:, None], none).shape == (0, 1, 4, 8)
    one = torch.zeros(1, dtype=torch.int32)
    out = tile_nn.paged_attention(torch.ones(1, 1, 4, 8), pages, pages, one[:, None][:, :0], one)
    assert torch.equal(out, torch.zeros(1, 1, 4, 8))
