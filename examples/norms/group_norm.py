"""Group norm: normalise the channels of a group together, over all positions.

X and Y (batch, channels, positions) float16; weight and bias (channels,) float32. One block per
image and group walks over the positions twice, with sums that stay in registers.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 8, 2, 64), (2, 12, 3, 150)]
EPS = 1e-5


@tilelang.jit(out_idx=[-1])
def group_norm(batch, channels, groups, positions, block=64):
    """Normalise; mean and variance come from sums of values and of squares."""
    members = channels // groups
    count = members * positions
    shape = (batch, channels, positions)

    @T.prim_func
    def main(
        X: T.Tensor(shape, "float16"),
        weight: T.Tensor((channels,), "float32"),
        bias: T.Tensor((channels,), "float32"),
        Y: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(groups, batch, threads=128) as (g, b):
            x = T.alloc_fragment((members, block), "float32")
            sums = T.alloc_fragment((members, block), "float32")
            squares = T.alloc_fragment((members, block), "float32")
            rows = T.alloc_fragment((members,), "float32")
            mean = T.alloc_fragment((1,), "float32")
            rstd = T.alloc_fragment((1,), "float32")
            first = g * members
            T.clear(sums)
            T.clear(squares)
            for p in T.Pipelined(T.ceildiv(positions, block), num_stages=2):
                T.copy(X[b, first : first + members, p * block : (p + 1) * block], x)
                for i, j in T.Parallel(members, block):
                    sums[i, j] += x[i, j]
                    squares[i, j] += x[i, j] * x[i, j]
            T.reduce_sum(sums, rows, dim=1)
            T.reduce_sum(rows, mean, dim=0)
            T.reduce_sum(squares, rows, dim=1)
            T.reduce_sum(rows, rstd, dim=0)
            for i in T.Parallel(1):
                mean[i] /= count
                rstd[i] = T.rsqrt(rstd[i] / count - mean[i] * mean[i] + EPS)
            for p in T.Pipelined(T.ceildiv(positions, block), num_stages=2):
                T.copy(X[b, first : first + members, p * block : (p + 1) * block], x)
                for i, j in T.Parallel(members, block):
                    x[i, j] = (x[i, j] - mean[0]) * rstd[0] * weight[first + i] + bias[first + i]
                T.copy(x, Y[b, first : first + members, p * block : (p + 1) * block])

    return main


def check(batch, channels, groups, positions):
    """Compare one size with torch."""
    torch.manual_seed(0)
    x = torch.randn(batch, channels, positions).half()
    weight, bias = torch.randn(channels), torch.randn(channels)
    y = group_norm(batch, channels, groups, positions)(x, weight, bias)
    expected = torch.nn.functional.group_norm(x.float(), groups, weight, bias, EPS)
    torch.testing.assert_close(y.float(), expected, rtol=1e-2, atol=1e-2)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"group norm: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
