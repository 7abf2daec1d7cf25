"""The first GEMM everyone writes: compile, check, look at the source, measure."""

import argparse

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float"):
    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.use_swizzle(panel_size=10, enable=True)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--m", type=int, default=256)
    parser.add_argument("--n", type=int, default=192)
    parser.add_argument("--k", type=int, default=128)
    args = parser.parse_args(argv)
    if not torch.cuda.is_available():
        raise SystemExit("no GPU")
    kernel = matmul(args.m, args.n, args.k, 64, 64, 32)

    a = torch.randn(args.m, args.k).cuda().half()
    b = torch.randn(args.k, args.n).cuda().half()
    c = kernel(a, b)
    torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-2)
    print("All check passed.")

    source = kernel.get_kernel_source()
    print(f"{len(source.splitlines())} lines of source")

    profiler = kernel.get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Normal)
    latency = profiler.do_bench(warmup=1, rep=2)
    print(f"tilelang latency: {latency} ms on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main()
