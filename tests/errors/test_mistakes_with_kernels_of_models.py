"""What kernels of `tile_nn` refuse, with the whole text."""

from __future__ import annotations

import numpy as np
import pytest

import tile_nn
from tile_core.errors import TileError

X = np.ones((4, 6), "float32")
H = np.ones((1, 2, 3, 6), "float32")
IDS = np.zeros((1, 2), "int32")


def told(program, text: str) -> str:
    """Return the error of the last line of a program, without its place."""
    with pytest.raises(TileError) as caught:
        program(text, tile_nn=tile_nn, np=np, X=X, H=H, IDS=IDS)
    lines = str(caught.value).splitlines()
    last = text.rstrip().splitlines()[-1].strip()
    assert lines[2:5:2] == ["  |", f"  | {'^' * len(last)}"]
    assert lines[3].endswith(f" | {last}")
    return "\n".join(lines[:1] + lines[5:])


REFUSED = {
    "tile_nn.rms_norm(X.astype(int))": """\
[TL1003] tile_nn.rms_norm: x has elements of int64
hint: cast it to float16, bfloat16, float32 or float64""",
    "tile_nn.rms_norm(X, 2.0)": """\
[TL1003] tile_nn.rms_norm: weight is a float, and no array
hint: pass an array of float16, bfloat16, float32 or float64""",
    "tile_nn.rms_norm(X, np.ones(5, 'float32'))": """\
[TL1204] tile_nn.rms_norm: weight has shape (5,)
hint: its shape is (d,), here (6,)""",
    "tile_nn.rms_norm(X, residual=X[1:])": """\
[TL1204] tile_nn.rms_norm: residual has shape (3, 6)
hint: its shape is that of x, here (4, 6)""",
    "tile_nn.rms_norm(np.ones(()))": """\
[TL1204] tile_nn.rms_norm: x has 0 dimensions
hint: it is (..., d)""",
    "tile_nn.rms_norm(X, casting_mode='none')": """\
[TL1002] tile_nn.rms_norm: casting_mode is 'none'
hint: it is one of 'llama', 'gemma'""",
    "tile_nn.attention(H, H[:, :1], H[:, :, :2])": """\
[TL1204] tile_nn.attention: q, k and v have shapes (1, 2, 3, 6), (1, 1, 3, 6), (1, 2, 2, 6)
hint: they are (..., heads, length, d): k has the d of q, v the length and heads of k, and q a \
multiple of these heads""",
    "tile_nn.attention(H, H, H, layout='THD')": """\
[TL1002] tile_nn.attention: layout is 'THD'
hint: it is one of 'BHTD', 'BTHD'""",
    "tile_nn.attention(H, H, H, window_size=3)": """\
[TL1002] tile_nn.attention: window_size is 3
hint: a pair: how many keys before and behind a query it sees, -1 for all""",
    "tile_nn.attention(H, H, H, np.ones((2, 3), bool))": """\
[TL1204] tile_nn.attention: mask has shape (2, 3)
hint: it broadcasts to (..., heads, t, s), here (1, 2, 3, 3)""",
    "tile_nn.attention(H, H, H, np.ones((3, 3), int))": """\
[TL1003] tile_nn.attention: mask has elements of int64
hint: cast it to bool, float16, bfloat16, float32 or float64""",
    "tile_nn.rotary(H, X[:3], X[:3])": """\
[TL1204] tile_nn.rotary: cos has shape (3, 6), and x rows of 6
hint: it is (length, r / 2) or (batch, length, r / 2), where r is at most the length of a row""",
    "tile_nn.paged_attention(H, H, H[:, :1], IDS, IDS[0])": """\
[TL1204] tile_nn.paged_attention: k_cache and v_cache have shapes (1, 2, 3, 6), (1, 1, 3, 6), and \
q (1, 2, 3, 6)
hint: they are (pages, page, kv_heads, d), with the d of q, and q has a multiple of their heads""",
    "tile_nn.paged_attention(H, H, H, IDS.T, IDS[0])": """\
[TL1204] tile_nn.paged_attention: block_table has shape (2, 1), and q 1 sequences
hint: it is (batch, most)""",
    "tile_nn.paged_attention(H, H, H, IDS, X[0])": """\
[TL1003] tile_nn.paged_attention: cache_seqlens has elements of float32
hint: cast it to int8, uint8, int16, uint16, int32, uint32, int64 or uint64""",
    "tile_nn.paged_attention(H, H, H, IDS, IDS[0])": """\
[TL1204] tile_nn.paged_attention: cache_seqlens has shape (2,)
hint: its shape is (batch,), here (1,)""",
    "tile_nn.paged_attention(H, H, H, IDS, IDS[0, :1], window_size=(3,))": """\
[TL1002] tile_nn.paged_attention: window_size is (3,)
hint: a pair: how many keys before and behind a query it sees, -1 for all""",
    "tile_nn.fused_experts(X, H[0], H[0], X[:, :2], X[:, :2].astype(int))": """\
[TL1204] tile_nn.fused_experts: gate_up and down have shapes (2, 3, 6), (2, 3, 6), and rows of x \
6 elements
hint: they are (experts, 2 * inner, d) and (experts, d, inner)""",
    "tile_nn.fused_experts(X, H[0], H[0], X, X.astype(int), block_rows=0)": """\
[TL1002] tile_nn.fused_experts: block_rows is 0
hint: a number of one or more: 16, 32, 64""",
    "tile_nn.causal_conv1d(H[0], X)": """\
[TL1204] tile_nn.causal_conv1d: weight has shape (4, 6), and x 3 channels
hint: weight is (channels, width), a width of one or more""",
    "tile_nn.causal_conv1d(H[0], X[:3], activation='relu')": """\
[TL1002] tile_nn.causal_conv1d: activation is 'relu'
hint: it is one of None, 'silu', 'swish'""",
    "tile_nn.mamba_chunk_scan(H, H[..., 0], X[0, :3], H[:, :, :2], H[:, :, :2])": """\
[TL1204] tile_nn.mamba_chunk_scan: b and c have shapes (1, 2, 2, 6), (1, 2, 2, 6), for 3 heads in \
(1, 2)
hint: they are (batch, length, groups, n), heads a multiple of groups""",
    "tile_nn.selective_state_update(H, H[..., 0], X[:1, :2], X[0], H[:, 0], H[:, 0])": """\
[TL1204] tile_nn.selective_state_update: b and c have shapes (1, 3, 6), (1, 3, 6), for 2 heads in \
(1,)
hint: they are (batch, groups, n), heads a multiple of groups""",
    "tile_nn.cross_entropy(X, np.zeros(3, int))": """\
[TL1204] tile_nn.cross_entropy: target has shape (3,)
hint: its shape is that of logits without classes, here (4,)""",
    "tile_nn.linear_cross_entropy(X, X[:, 1:], np.zeros(4, int))": """\
[TL1204] tile_nn.linear_cross_entropy: weight has shape (4, 5), and rows of x 6 elements
hint: weight is (n, k), x is (..., k)""",
    "tile_nn.adamw(X, X, X, X, 1, 0.1)": """\
[TL1003] tile_nn.adamw: step is 1: each number would be another kernel
hint: pass an array of shape (): np.asarray(step), torch.tensor(step)""",
    "tile_nn.topk_softmax(X, 7)": """\
[TL1204] tile_nn.topk_softmax: topk is 7, of 6 experts
hint: a number from 1 to that of experts""",
    "tile_nn.grouped_topk(X, topk=4, num_expert_group=3, topk_group=1)": """\
[TL1204] tile_nn.grouped_topk: 4 experts out of 1 of 3 groups of 2
hint: the groups that are taken hold as many experts as are asked for""",
    "tile_nn.quantize_int8(X, group_size=4)": """\
[TL1204] tile_nn.quantize_int8: group_size is 4, of rows of 6 elements
hint: 0, or a number that rows are a multiple of""",
    "tile_nn.quantize_fp8(X, dtype='float8')": """\
[TL1002] tile_nn.quantize_fp8: dtype is 'float8'
hint: it is one of 'float8_e4m3fn', 'float8_e5m2', 'float8_e4m3fnuz'""",
    "tile_nn.linear_w8a8(X, X, X, X)": """\
[TL1003] tile_nn.linear_w8a8: x has elements of float32
hint: cast it to int8""",
    "tile_nn.linear_nf4(X, X[:, :3].astype('uint8'), X[:, :4])": """\
[TL1204] tile_nn.linear_nf4: absmax has shape (4, 4), and x rows of 6 elements
hint: absmax is (n, groups), groups of one size""",
    "tile_nn.linear_w4a16(X, X.astype('uint8'), X)": """\
[TL1204] tile_nn.linear_w4a16: weight has shape (4, 6), and rows of x 6 elements
hint: weight is (n, k / 2), x is (..., k)""",
    "tile_nn.embedding(X, X)": """\
[TL1003] tile_nn.embedding: ids has elements of float32
hint: cast it to int8, uint8, int16, uint16, int32, uint32, int64 or uint64""",
    "tile_nn.swiglu(X, X[:, 1:])": """\
[TL1204] tile_nn.swiglu: up has shape (4, 5)
hint: its shape is that of gate, here (4, 6)""",
    "tile_nn.silu_and_mul(X[:, 1:])": """\
[TL1204] tile_nn.silu_and_mul: rows of x have 5 elements
hint: an even number of them: two halves""",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(program, text):
    assert told(program, text) == REFUSED[text]
