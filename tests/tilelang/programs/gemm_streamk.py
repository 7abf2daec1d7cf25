"""Stream-K: work is split evenly over the SMs, tiles that are shared are added up atomically."""

import argparse

import tilelang
import tilelang.language as T
import torch
from tilelang import cdiv

parser = argparse.ArgumentParser()
parser.add_argument("--sms", type=int, default=5)
args, _ = parser.parse_known_args()

M, N, K = 96, 128, 160
BLOCK_M, BLOCK_N, BLOCK_K = 32, 64, 32
ITERS = cdiv(K, BLOCK_K)
TILES = cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)
PER_SM = cdiv(TILES * ITERS, args.sms)


@tilelang.jit(target="cuda")
def streamk(sms, per_sm):
    tiles_n = T.ceildiv(N, BLOCK_N)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), T.float16),
        B: T.Tensor((K, N), T.float16),
        C: T.Tensor((M, N), T.float32),
    ):
        with T.Kernel(sms, threads=128) as sm:
            A_shared = T.alloc_shared((BLOCK_M, BLOCK_K), T.float16)
            B_shared = T.alloc_shared((BLOCK_K, BLOCK_N), T.float16)
            C_local = T.alloc_fragment((BLOCK_M, BLOCK_N), T.float32)
            at = T.alloc_var(T.int32, init=0)
            last = T.alloc_var(T.int32, init=0)
            at = sm * per_sm
            last = T.min(at + per_sm, TILES * ITERS)
            while at < last:
                tile = at // ITERS
                first_k = at % ITERS
                steps = T.min(ITERS - first_k, last - at)
                row = tile // tiles_n * BLOCK_M
                col = tile % tiles_n * BLOCK_N
                T.clear(C_local)
                for k in T.serial(steps):
                    T.copy(A[row, (first_k + k) * BLOCK_K], A_shared)
                    T.copy(B[(first_k + k) * BLOCK_K, col], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.atomic_add(C[row, col], C_local)
                at = at + steps

    return main


a = torch.randint(-3, 4, (M, K), device="cuda", dtype=torch.int32).to(torch.float16)
b = torch.randint(-3, 4, (K, N), device="cuda", dtype=torch.int32).to(torch.float16)
c = torch.zeros((M, N), device="cuda", dtype=torch.float32)
kernel = streamk(args.sms, PER_SM)
kernel(a, b, c)
assert torch.equal(c, torch.matmul(a.float(), b.float())), "stream-K is wrong"
print(f"{TILES} tiles on {args.sms} SMs, {PER_SM} iterations each: ok")
