"""`tile_nn.attention_varlen` and its definition, against one sequence after another."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_nn
from support.nn_kernels import EMULATED, require_no_worse
from tile_core.errors import TileError

LENGTHS = {
    "equal": ([5, 33, 1], [5, 33, 1]),
    "empty ones": ([0, 7, 0, 70, 0], [3, 7, 0, 70, 0]),
    "more keys": ([1, 17, 65], [64, 130, 66]),
    "more queries": ([70, 9, 4], [3, 9, 0]),
}


def meant(q, k, v, lengths, causal, scale=None):
    """One sequence after another, all scores in memory."""
    outs, sums, at_q, at_k = [], [], 0, 0
    wide = torch.promote_types(q.dtype, torch.float32)
    for t, s in zip(*lengths, strict=True):
        one = q[at_q : at_q + t].transpose(0, 1)
        keys, values = (
            x[at_k : at_k + s].transpose(0, 1).repeat_interleave(q.shape[1] // x.shape[1], 0)
            for x in (k, v)
        )
        scores = (one @ keys.transpose(1, 2)).to(wide) * (scale or q.shape[2] ** -0.5)
        if causal:
            behind = torch.arange(s) > torch.arange(t)[:, None] + s - t
            scores = scores.masked_fill(behind, -float("inf"))
        lse = torch.logsumexp(scores, -1) if s else scores.new_full(scores.shape[:-1], -torch.inf)
        p = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None])
        outs.append((p.to(q.dtype) @ values).transpose(0, 1))
        sums.append(lse)
        at_q, at_k = at_q + t, at_k + s
    return torch.cat(outs), torch.cat(sums, dim=1)


def tokens(lengths, dtype, heads=4, kv_heads=2, d=16, dv=32):
    random = torch.Generator().manual_seed(0)
    shapes = (
        (sum(lengths[0]), heads, d),
        (sum(lengths[1]), kv_heads, d),
        (sum(lengths[1]), kv_heads, dv),
    )
    made = (torch.randn(s, generator=random, dtype=torch.float64) for s in shapes)
    return {n: x.to(getattr(torch, dtype)) for n, x in zip("qkv", made, strict=True)}


def begins(lengths):
    return [torch.tensor([0, *x]).cumsum(0).int() for x in lengths]


def require_right(lengths, dtype, causal, target, scale=None):
    given = tokens(lengths, dtype)
    found = tile_nn.attention_varlen(
        **given, cu_seqlens_q=begins(lengths)[0], cu_seqlens_k=begins(lengths)[1],
        max_seqlen_q=max(lengths[0]), causal=causal, softmax_scale=scale, return_lse=True,
        target=target,
    )  # fmt: skip
    assert [x.dtype for x in found] == [given["q"].dtype, torch.float32]
    require_no_worse(
        found, lambda given: meant(**given, lengths=lengths, causal=causal, scale=scale), given,
        dtype,
    )  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_on_the_host(target, causal, name):
    require_right(LENGTHS[name], "float32", causal, target)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_of_16_bits(dtype):
    for scale in (0.5, -0.25):
        require_right(LENGTHS["more keys"], dtype, True, "cpu", scale=scale)


@pytest.mark.parametrize("target", EMULATED)
@pytest.mark.parametrize("name", ["empty ones", "more queries"])
def test_emulated(target, name):
    require_right(LENGTHS[name], "float16", True, target)


@pytest.mark.parametrize("name", ["empty ones", "more queries"])
@pytest.mark.parametrize("causal", [False, True])
def test_definition(causal, name):
    lengths = LENGTHS[name]
    given = tokens(lengths, "float32")
    found = tile.nn.attention_varlen(*given.values(), *begins(lengths), causal=causal)
    require_no_worse(
        [found], lambda given: meant(**given, lengths=lengths, causal=causal)[:1], given, "float32"
    )


def test_what_other_sequences_hold_does_no_harm():
    lengths = [3, 5, 70], [3, 5, 70]
    q, k, v = tokens(lengths, "float32").values()
    k[3:], v[3:] = float("nan"), float("inf")
    settings = {"max_seqlen_q": 70, "causal": True}
    found = tile_nn.attention_varlen(q, k, v, *begins(lengths), **settings)
    one = (x[:3].contiguous() for x in (q, k, v))
    alone = tile_nn.attention_varlen(*one, *begins(([3], [3])), max_seqlen_q=3, causal=True)
    assert torch.equal(found[:3], alone)


def test_arrays_of_numpy_and_one_kernel_for_all_numbers_of_tokens():
    for lengths in ([4, 9], [4, 9]), ([0, 3], [1, 3]):
        given = tokens(lengths, "float32")
        arrays = [x.numpy() for x in (*given.values(), *begins(lengths))]
        found = tile_nn.attention_varlen(*arrays, max(lengths[0]))
        wanted, _ = meant(**given, lengths=lengths, causal=False)
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_nothing():
    lengths = [0, 0], [0, 2]
    q, k, v = tokens(lengths, "float32").values()
    out, lse = tile_nn.attention_varlen(q, k, v, *begins(lengths), 0, return_lse=True)
    assert out.shape == (0, 4, 32)
    assert lse.shape == (4, 0)


Q, B = np.ones((4, 2, 8), "float32"), np.array([0, 1, 4], "int32")
REFUSED = {
    "type": ((Q.astype("float64"), Q, Q, B, B, 3), "TL1003", "q has elements of float64"),
    "no array": ((Q, 3, Q, B, B, 3), "TL1003", "k has elements of int"),
    "types": ((Q, Q.astype("float16"), Q, B, B, 3), "TL1002", "float32, float16, float32"),
    "index type": ((Q, Q, Q, B.astype("int64"), B, 3), "TL1003", "cast it to int32"),
    "heads": ((Q, Q[:, :0], Q[:, :0], B, B, 3), "TL1204", "a multiple of these heads"),
    "widths": ((Q, Q[..., :4], Q, B, B, 3), "TL1204", "k has the d of q"),
    "no sequence": ((Q, Q, Q, B[:1], B[:1], 3), "TL1204", "one sequence or more"),
    "sequences": ((Q, Q, Q, B, B[:2], 3), "TL1204", "cu_seqlens_k has shape (2,)"),
    "longest": ((Q, Q, Q, B, B, 2.5), "TL1002", "max_seqlen_q is 2.5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    given, code, text = REFUSED[name]
    with pytest.raises(TileError) as caught:
        tile_nn.attention_varlen(*given)
    assert caught.value.code == code
    assert text in str(caught.value)


def test_a_scale_is_a_number():
    with pytest.raises(TileError, match="softmax_scale is 'small'") as caught:
        tile_nn.attention_varlen(Q, Q, Q, B, B, 3, softmax_scale="small")
    assert caught.value.code == "TL1002"
