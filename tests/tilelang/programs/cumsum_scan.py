"""Scans: cumsum of tiles in both directions, carried along rows of any length."""

import tilelang
import tilelang.language as T
import torch


def cumsum_smem(M, N, block_M, block_N, dim=0, reverse=False, dtype="float32"):
    @T.prim_func
    def cumsum(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_N), dtype)
            T.copy(A[by * block_M, bx * block_N], A_shared)
            T.cumsum(src=A_shared, dim=dim, reverse=reverse)
            T.copy(A_shared, B[by * block_M, bx * block_N])

    return cumsum


@tilelang.jit(out_idx=[1])
def row_scan(rows, block=64):
    N = T.dynamic("n")

    @T.prim_func
    def main(X: T.Tensor((rows, N), "int32"), Y: T.Tensor((rows, N), "int32")):
        with T.Kernel(rows, threads=64) as bx:
            tile = T.alloc_shared((block,), "int32")
            carry = T.alloc_shared((1,), "int32")
            carry[0] = 0
            for n in T.serial(T.ceildiv(N, block)):
                T.copy(X[bx, n * block : (n + 1) * block], tile)
                T.cumsum(tile, dim=0)
                for i in T.Parallel(block):
                    if n * block + i < N:
                        Y[bx, n * block + i] = tile[i] + carry[0]
                carry[0] = carry[0] + tile[block - 1]

    return main


def test_cumsum(M, N, block, dim, reverse):
    kernel = tilelang.compile(cumsum_smem(M, N, block, block, dim, reverse), out_idx=-1)
    A = torch.randint(-5, 6, (M, N), device="cuda").float()
    tiles = A.view(M // block, block, N // block, block)
    axis = 1 if dim == 0 else 3
    ref = tiles.flip(axis).cumsum(axis).flip(axis) if reverse else tiles.cumsum(axis)
    assert torch.equal(kernel(A), ref.reshape(M, N))


for dim in (0, 1):
    for reverse in (False, True):
        test_cumsum(64, 96, 32, dim, reverse)
kernel = row_scan(3)
for n in (64, 150, 5):
    x = torch.randint(-9, 10, (3, n), dtype=torch.int32, device="cuda")
    assert torch.equal(kernel(x), x.cumsum(1).int())
print("scans: ok")
