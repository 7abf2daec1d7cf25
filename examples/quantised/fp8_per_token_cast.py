"""Cast activations to FP8 with one scale per token and group of 128 numbers.

X (tokens, hidden) bfloat16; X_fp8 (tokens, hidden) float8_e4m3fn; scales
(tokens, hidden / 128) float32, such that X is about X_fp8 * scale.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 128), (45, 512)]
GROUP = 128
HIGHEST = 448.0


@tilelang.jit(out_idx=[1, 2])
def per_token_cast_to_fp8(hidden, block_M=16):
    """Cast; the number of tokens is bound when the kernel is called."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def main(
        X: T.Tensor((tokens, hidden), "bfloat16"),
        X_fp8: T.Tensor((tokens, hidden), "float8_e4m3fn"),
        scales: T.Tensor((tokens, hidden // GROUP), "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block_M), hidden // GROUP, threads=128) as (bx, by):
            x_local = T.alloc_fragment((block_M, GROUP), "float32")
            absmax = T.alloc_fragment((block_M,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            result = T.alloc_fragment((block_M, GROUP), "float8_e4m3fn")

            T.copy(X[bx * block_M, by * GROUP], x_local)
            T.reduce_absmax(x_local, absmax, dim=1)
            for i in T.Parallel(block_M):
                absmax[i] = T.max(absmax[i], 1e-4)
                scale[i] = absmax[i] / HIGHEST
                scales[bx * block_M + i, by] = scale[i]
            for i, j in T.Parallel(block_M, GROUP):
                result[i, j] = T.clamp(x_local[i, j] / scale[i], -HIGHEST, HIGHEST)
            T.copy(result, X_fp8[bx * block_M, by * GROUP])

    return main


def check(tokens, hidden):
    """Compare one size with torch."""
    torch.manual_seed(0)
    x = (torch.randn(tokens, hidden) * 3).bfloat16()
    groups = x.float().view(tokens, -1, GROUP)
    expected_scales = groups.abs().amax(-1).clamp(min=1e-4) / HIGHEST
    expected = (groups / expected_scales[..., None]).view(tokens, hidden).to(torch.float8_e4m3fn)
    x_fp8, scales = per_token_cast_to_fp8(hidden)(x)
    torch.testing.assert_close(scales, expected_scales)
    torch.testing.assert_close(x_fp8.float(), expected.float(), rtol=1 / 8, atol=0)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"cast to FP8 per token: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
