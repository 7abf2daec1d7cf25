"""Layer norm with weights, mean and reciprocal deviation kept for the backward pass."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[3, 4, 5])
def layer_norm_fwd(rows, hidden, eps=1e-5, block_M=4):
    dtype = "bfloat16"

    @T.prim_func
    def main(
        X: T.Tensor((rows, hidden), dtype),
        W: T.Tensor((hidden,), dtype),
        bias: T.Tensor((hidden,), dtype),
        Y: T.Tensor((rows, hidden), dtype),
        Mean: T.Tensor((rows,), "float32"),
        Rstd: T.Tensor((rows,), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, hidden), "float32")
            w = T.alloc_shared((hidden,), dtype)
            b = T.alloc_shared((hidden,), dtype)
            mean = T.alloc_fragment((block_M,), "float32")
            var = T.alloc_fragment((block_M,), "float32")
            square = T.alloc_fragment((block_M, hidden), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.copy(W, w)
            T.copy(bias, b)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] /= hidden
            for i, j in T.Parallel(block_M, hidden):
                x[i, j] -= mean[i]
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, var, dim=1)
            for i in T.Parallel(block_M):
                var[i] = 1 / T.sqrt(var[i] / hidden + eps)
            for i, j in T.Parallel(block_M, hidden):
                x[i, j] = x[i, j] * var[i] * w[j] + b[j]
            T.copy(x, Y[bx * block_M, 0])
            T.copy(mean, Mean[bx * block_M])
            T.copy(var, Rstd[bx * block_M])

    return main


if __name__ == "__main__":
    tilelang.testing.set_random_seed(0)
    rows, hidden = 30, 256
    x = torch.randn(rows, hidden, device="cuda", dtype=torch.bfloat16) * 2 + 1
    w = torch.randn(hidden, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(hidden, device="cuda", dtype=torch.bfloat16)
    y, mean, rstd = layer_norm_fwd(rows, hidden)(x, w, b)
    xf = x.float()
    expected = torch.nn.functional.layer_norm(xf, (hidden,), w.float(), b.float())
    torch.testing.assert_close(y.float(), expected, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(mean, xf.mean(-1), rtol=1e-3, atol=1e-3)
    deviation = xf.var(-1, unbiased=False).add(1e-5).rsqrt()
    torch.testing.assert_close(rstd, deviation, rtol=1e-3, atol=1e-3)
    print("layer norm: all checks pass")
