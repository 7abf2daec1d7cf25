"""Autotuning a GEMM by decorator and by the AutoTuner class."""

import itertools

import tilelang
import tilelang.language as T
import torch
from tilelang.autotuner import AutoTuner, autotune

M = N = K = 128


def get_configs():
    tiles = itertools.product([32, 64], [32], [32], [0, 2])
    names = ("block_M", "block_N", "block_K", "num_stages")
    return [dict(zip(names, values)) for values in tiles]


def ref_program(A, B):
    return (A.float() @ B.float().T).half()


@autotune(configs=get_configs(), warmup=1, rep=2)
@tilelang.jit(out_idx=[-1])
def tuned(M, N, K, block_M=None, block_N=None, block_K=None, num_stages=None):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), T.float16),
        B: T.Tensor((N, K), T.float16),
        C: T.Tensor((M, N), T.float16),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), T.float16)
            B_shared = T.alloc_shared((block_N, block_K), T.float16)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def by_class():
    def kernel(block_M=None, block_N=None, block_K=None, num_stages=None):
        return tuned.func(M, N, K, block_M, block_N, block_K, num_stages)

    tuner = (
        AutoTuner.from_kernel(kernel=kernel, configs=get_configs()[:2])
        .set_compile_args(out_idx=[-1], target="auto")
        .set_profile_args(
            supply_type=tilelang.TensorSupplyType.Integer, ref_prog=ref_program, skip_check=False
        )
    )
    return tuner.run(warmup=1, rep=2)


if __name__ == "__main__":
    a = torch.randint(-2, 3, (M, K), device="cuda").half()
    b = torch.randint(-2, 3, (N, K), device="cuda").half()
    best = tuned(M, N, K)
    torch.testing.assert_close(best(a, b), ref_program(a, b))
    assert best.config in get_configs(), best.config
    print(f"best config {best.config}, {best.latency:.3f} ms")

    result = by_class()
    torch.testing.assert_close(result.kernel(a, b), ref_program(a, b))
    assert result.config["num_stages"] in (0, 2)
    print(f"best of the class: {result.config}, {result.latency:.3f} ms")
