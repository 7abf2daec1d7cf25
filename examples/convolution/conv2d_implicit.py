"""2-D convolution as an implicit matrix product, the indices written out.

X (N, H, W, C), weights (KH, KW, C, F), Y (N, OH, OW, F); float32. What lies outside the image
is zero: a guarded load says so.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 6, 6, 8, 16, 3, 1, 1), (2, 7, 5, 12, 20, 2, 2, 0)]


@tilelang.jit(out_idx=[-1])
def conv2d(N, H, W, C, F, kernel, stride, pad, block_M=32, block_N=16, block_K=32):
    """Convolve with loads that compute their own addresses."""
    OH = (H + 2 * pad - kernel) // stride + 1
    OW = (W + 2 * pad - kernel) // stride + 1
    rows, depth = N * OH * OW, kernel * kernel * C

    @T.prim_func
    def main(
        X: T.Tensor((N, H, W, C), "float32"),
        weights: T.Tensor((kernel, kernel, C, F), "float32"),
        Y: T.Tensor((N, OH, OW, F), "float32"),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(rows, block_M), threads=128) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), "float32")
            W_shared = T.alloc_shared((block_K, block_N), "float32")
            Y_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(Y_local)
            for k in T.Pipelined(T.ceildiv(depth, block_K), num_stages=2):
                for i, j in T.Parallel(block_M, block_K):
                    m, inner = by * block_M + i, k * block_K + j
                    h = m % (OH * OW) // OW * stride + inner // (kernel * C) - pad
                    w = m % OW * stride + inner // C % kernel - pad
                    inside = 0 <= h < H and 0 <= w < W and inner < depth and m < rows
                    X_shared[i, j] = T.if_then_else(inside, X[m // (OH * OW), h, w, inner % C], 0)
                for i, j in T.Parallel(block_K, block_N):
                    inner = k * block_K + i
                    W_shared[i, j] = weights[
                        inner // (kernel * C), inner // C % kernel, inner % C, bx * block_N + j
                    ]
                T.gemm(X_shared, W_shared, Y_local)
            for i, j in T.Parallel(block_M, block_N):
                m = by * block_M + i
                Y[m // (OH * OW), m % (OH * OW) // OW, m % OW, bx * block_N + j] = Y_local[i, j]

    return main


def check(N, H, W, C, F, kernel, stride, pad):
    """Compare one size with torch."""
    torch.manual_seed(0)
    x = torch.randint(-3, 4, (N, H, W, C)).float()
    weights = torch.randint(-3, 4, (kernel, kernel, C, F)).float()
    y = conv2d(N, H, W, C, F, kernel, stride, pad)(x, weights)
    expected = torch.nn.functional.conv2d(
        x.permute(0, 3, 1, 2), weights.permute(3, 2, 0, 1), stride=stride, padding=pad
    )
    torch.testing.assert_close(y, expected.permute(0, 2, 3, 1), rtol=0, atol=0)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"2-D convolution, implicit product: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
