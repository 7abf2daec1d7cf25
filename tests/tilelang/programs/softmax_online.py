"""Softmax of long rows with a running log-sum-exp, against torch."""

import torch

import tilelang
from tilelang import language as T
from tilelang.profiler import do_bench


@tilelang.jit(out_idx=[1])
def softmax_kernel(M, N, dtype: T.dtype = T.float16):
    BN = min(tilelang.next_power_of_2(N), 128)
    NN = tilelang.cdiv(N, BN)
    accum_dtype = T.float32
    scale = 1.44269504

    @T.prim_func
    def main(X: T.Tensor([M, N], dtype), Y: T.Tensor([M, N], dtype)):
        with T.Kernel(M, threads=128) as (i_m):
            x = T.alloc_fragment([BN], dtype)
            y = T.alloc_fragment([BN], dtype)
            lse = T.alloc_fragment([1], accum_dtype)
            max_x = T.alloc_fragment([1], dtype)
            exp_x = T.alloc_fragment([BN], accum_dtype)
            sum_exp_x = T.alloc_fragment([1], accum_dtype)
            T.fill(lse, -T.infinity(accum_dtype))
            for i_n in T.Pipelined(0, NN):
                for j in T.Parallel(BN):
                    x[j] = T.if_then_else(
                        i_n * BN + j < N, X[i_m, i_n * BN + j], -T.infinity(dtype)
                    )
                T.reduce_max(x, max_x, dim=0, clear=True)
                for j in T.Parallel(BN):
                    exp_x[j] = T.exp2(x[j] * scale - max_x[0] * scale)
                T.reduce_sum(exp_x, sum_exp_x, dim=0, clear=True)
                lse[0] = max_x[0] * scale + T.log2(T.exp2(lse[0] - max_x[0] * scale) + sum_exp_x[0])
            for i_n in T.Pipelined(0, NN):
                T.copy(X[i_m, i_n * BN : (i_n + 1) * BN], x)
                for j in T.Parallel(BN):
                    y[j] = T.exp2(x[j] * scale - lse[0])
                T.copy(y, Y[i_m, i_n * BN : (i_n + 1) * BN])

    return main


M, N = 8, 300
kernel = softmax_kernel(M, N)
X = torch.randn(M, N, dtype=torch.float16, device="cuda")
Y = kernel(X)
torch.testing.assert_close(Y, X.softmax(dim=1), rtol=1e-2, atol=1e-2)
t1 = do_bench(lambda: X.softmax(dim=1), warmup=1, rep=2)
t2 = do_bench(lambda: kernel(X), warmup=1, rep=2)
print(f"torch latency: {t1:.3f} ms, tilelang latency: {t2:.3f} ms")
