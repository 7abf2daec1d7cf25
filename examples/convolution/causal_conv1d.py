"""Causal depthwise 1-D convolution with SiLU, as in Mamba: a short filter per channel.

X and Y (batch, dim, tokens), weights (dim, width), bias (dim,); float32. Position t sees the
`width` positions up to t; those before the first count as zero.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 8, 64, 4), (2, 10, 150, 3)]


@tilelang.jit(out_idx=[-1])
def causal_conv1d(batch, dim, tokens, width, block_D=8, block_T=64):
    """Filter; an index of unknown sign that turns out negative reads the safe value, zero."""
    shape = (batch, dim, tokens)

    @T.prim_func
    def main(
        X: T.Tensor(shape, "float32"),
        weights: T.Tensor((dim, width), "float32"),
        bias: T.Tensor((dim,), "float32"),
        Y: T.Tensor(shape, "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block_T), T.ceildiv(dim, block_D), batch, threads=128) as (
            bx,
            by,
            bz,
        ):
            window = T.alloc_shared((block_D, block_T + width - 1), "float32")
            acc = T.alloc_fragment((block_D, block_T), "float32")
            for i, j in T.Parallel(block_D, block_T + width - 1):
                window[i, j] = X[bz, by * block_D + i, bx * block_T + j - (width - 1)]
            for i, j in T.Parallel(block_D, block_T):
                acc[i, j] = bias[by * block_D + i]
            for s in T.unroll(width):
                for i, j in T.Parallel(block_D, block_T):
                    acc[i, j] += window[i, j + s] * weights[by * block_D + i, s]
            for i, j in T.Parallel(block_D, block_T):
                acc[i, j] *= T.sigmoid(acc[i, j])
            T.copy(acc, Y[bz, by * block_D, bx * block_T])

    return main


def check(batch, dim, tokens, width):
    """Compare one size with torch."""
    torch.manual_seed(0)
    x, weights, bias = torch.randn(batch, dim, tokens), torch.randn(dim, width), torch.randn(dim)
    y = causal_conv1d(batch, dim, tokens, width)(x, weights, bias)
    padded = torch.nn.functional.pad(x, (width - 1, 0))
    filtered = torch.nn.functional.conv1d(padded, weights[:, None], bias, groups=dim)
    torch.testing.assert_close(y, torch.nn.functional.silu(filtered), rtol=1e-4, atol=1e-5)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"causal 1-D convolution: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
