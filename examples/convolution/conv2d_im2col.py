"""2-D convolution as a matrix product, with T.im2col making the left operand tile by tile.

X (N, H, W, C), weights (KH, KW, C, F) and Y (N, OH, OW, F); float16 with float32 sums. Rows of
the product are output positions, its inner dimension is (KH, KW, C).
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [
    (1, 8, 8, 16, 16, 3, 1, 1, 1),
    (2, 9, 7, 32, 24, 3, 2, 1, 1),
    (1, 12, 12, 16, 40, 3, 1, 2, 2),
]


@tilelang.jit(out_idx=[-1])
def conv2d(N, H, W, C, F, kernel, stride, dilation, pad, block_M=32, block_N=32, block_K=16):
    """Convolve; the image is read directly into tiles of the virtual matrix."""
    OH = (H + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    OW = (W + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    rows, depth = N * OH * OW, kernel * kernel * C
    dtype = "float16"

    @T.prim_func
    def main(
        X: T.Tensor((N, H, W, C), dtype),
        weights: T.Tensor((kernel, kernel, C, F), dtype),
        Y: T.Tensor((N, OH, OW, F), dtype),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(rows, block_M), threads=256) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_K, block_N), dtype)
            Y_local = T.alloc_fragment((block_M, block_N), "float32")
            flat_weights = T.Tensor((depth, F), dtype, weights.data)
            flat_Y = T.Tensor((rows, F), dtype, Y.data)
            T.clear(Y_local)
            for k in T.Pipelined(T.ceildiv(depth, block_K), num_stages=3):
                T.im2col(X, X_shared, by, k, kernel, stride, dilation, pad)
                T.copy(flat_weights[k * block_K, bx * block_N], W_shared)
                T.gemm(X_shared, W_shared, Y_local)
            T.copy(Y_local, flat_Y[by * block_M, bx * block_N])

    return main


def check(N, H, W, C, F, kernel, stride, dilation, pad):
    """Compare one size with torch."""
    torch.manual_seed(0)
    x = torch.randint(-2, 3, (N, H, W, C)).half()
    weights = torch.randint(-2, 3, (kernel, kernel, C, F)).half()
    y = conv2d(N, H, W, C, F, kernel, stride, dilation, pad)(x, weights)
    expected = torch.nn.functional.conv2d(
        x.float().permute(0, 3, 1, 2),
        weights.float().permute(3, 2, 0, 1),
        stride=stride,
        padding=pad,
        dilation=dilation,
    )
    torch.testing.assert_close(y, expected.permute(0, 2, 3, 1).half(), rtol=0, atol=0)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"2-D convolution with T.im2col: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
