"""Depthwise 2-D convolution and max pooling over windows of an image.

X and Y (N, C, H, W) float32; filters (C, 3, 3). The convolution stages the image with its halo
in shared memory; pooling pads with minus infinity by a safe value.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 2, 8, 8), (2, 3, 19, 13)]


@tilelang.jit(out_idx=[-1])
def depthwise(N, C, H, W, block=8):
    """Filter each channel with its own 3 x 3 filter."""
    shape = (N, C, H, W)

    @T.prim_func
    def main(
        X: T.Tensor(shape, "float32"),
        filters: T.Tensor((C, 3, 3), "float32"),
        Y: T.Tensor(shape, "float32"),
    ):
        with T.Kernel(T.ceildiv(W, block), T.ceildiv(H, block), N * C, threads=block * block) as (
            bx,
            by,
            bz,
        ):
            n, c = bz // C, bz % C
            tile = T.alloc_shared((block + 2, block + 2), "float32")
            acc = T.alloc_fragment((block, block), "float32")
            for i, j in T.Parallel(block + 2, block + 2):
                tile[i, j] = X[n, c, by * block + i - 1, bx * block + j - 1]
            T.clear(acc)
            for di, dj in T.grid(3, 3):
                for i, j in T.Parallel(block, block):
                    acc[i, j] += tile[i + di, j + dj] * filters[c, di, dj]
            T.copy(acc, Y[n, c, by * block, bx * block])

    return main


@tilelang.jit(out_idx=[-1])
def max_pool(N, C, H, W, block=16):
    """Take the largest of each 3 x 3 window, every second window."""
    OH, OW = (H - 1) // 2 + 1, (W - 1) // 2 + 1

    @T.prim_func
    def main(X: T.Tensor((N, C, H, W), "float32"), Y: T.Tensor((N, C, OH, OW), "float32")):
        with T.Kernel(T.ceildiv(OW, block), OH, N * C, threads=64) as (bx, oh, bz):
            n, c = bz // C, bz % C
            best = T.alloc_fragment((block,), "float32")
            T.annotate_safe_value({X: -T.infinity("float32")})
            T.fill(best, -T.infinity("float32"))
            for di, dj in T.grid(3, 3):
                for j in T.Parallel(block):
                    best[j] = T.max(
                        best[j], X[n, c, oh * 2 + di - 1, (bx * block + j) * 2 + dj - 1]
                    )
            T.copy(best, Y[n, c, oh, bx * block : (bx + 1) * block])

    return main


def check(N, C, H, W):
    """Compare both kernels with torch."""
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (N, C, H, W)).float()
    filters = torch.randint(-9, 10, (C, 3, 3)).float()
    expected = torch.nn.functional.conv2d(x, filters[:, None], padding=1, groups=C)
    torch.testing.assert_close(depthwise(N, C, H, W)(x, filters), expected, rtol=0, atol=0)
    expected = torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1)
    torch.testing.assert_close(max_pool(N, C, H, W)(x), expected, rtol=0, atol=0)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"depthwise convolution and max pooling: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
