"""Rotary embedding of queries and keys, halves of heads turned by tables of sines."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit
def apply_rope(x, cos, sin, positions, block: int = 32):
    heads, dim, longest = T.const("heads, dim, longest")
    tokens = T.dynamic("tokens")
    x: T.Tensor((tokens, heads, dim), T.float16)
    cos: T.Tensor((longest, dim // 2), T.float32)
    sin: T.Tensor((longest, dim // 2), T.float32)
    positions: T.Tensor((tokens,), T.int32)
    y = T.empty((tokens, heads, dim), T.float16)
    half = dim // 2

    with T.Kernel(T.ceildiv(tokens, block), heads, threads=128) as (bx, by):
        for i, j in T.Parallel(block, half):
            at = bx * block + i
            if at < tokens:
                c = cos[positions[at], j]
                s = sin[positions[at], j]
                first = x[at, by, j].astype(T.float32)
                second = x[at, by, j + half].astype(T.float32)
                y[at, by, j] = first * c - second * s
                y[at, by, j + half] = second * c + first * s
    return y


def rotate(x, cos, sin, positions):
    first, second = x.float().chunk(2, -1)
    c, s = cos[positions.long()][:, None], sin[positions.long()][:, None]
    return torch.cat([first * c - second * s, second * c + first * s], -1).to(x.dtype)


longest, dim = 64, 32
angles = torch.outer(torch.arange(longest), 1e4 ** (-torch.arange(0, dim, 2) / dim)).cuda()
cos, sin = angles.cos().contiguous(), angles.sin().contiguous()
for tokens, heads in ((5, 4), (50, 4), (33, 2)):
    x = torch.randn(tokens, heads, dim, device="cuda", dtype=torch.float16)
    positions = torch.randint(0, longest, (tokens,), device="cuda", dtype=torch.int32)
    y = apply_rope(x, cos, sin, positions)
    torch.testing.assert_close(y, rotate(x, cos, sin, positions), rtol=1e-3, atol=1e-3)
print("rope: ok")
