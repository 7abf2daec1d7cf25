"""C = A @ B.T for Hopper, with the schedules that hardware has to choose from."""

import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[-1])
def gemm(
    M, N, K, block_M=128, block_N=256, block_K=64, num_stages=4, threads=256,
    cluster=(1, 1), panel=0,
):  # fmt: skip
    """One block for each tile of C.

    Blocks of a cluster beside each other share tiles of A, those below each other tiles of B;
    `panel` walks over C in stripes of so many blocks.
    """

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(
            T.ceildiv(N, block_N), T.ceildiv(M, block_M),
            threads=threads, cluster_dims=(*cluster, 1) if max(cluster) > 1 else None,
        ) as (bx, by):  # fmt: skip
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_N, block_K), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            if panel:
                T.use_swizzle(panel)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tile.jit(out_idx=[-1])
def persistent_gemm(
    M, N, K, block_M=128, block_N=256, block_K=64, num_stages=3, threads=256, group=8, blocks=132
):
    """As many blocks as multiprocessors; the next tile is fetched while one is stored."""
    rows, columns = T.ceildiv(M, block_M), T.ceildiv(N, block_N)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(blocks, threads=threads) as block:
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_N, block_K), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            for bx, by in T.Persistent([columns, rows], blocks, block, group_size=group):
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                    T.copy(A[by * block_M, k * block_K], A_shared)
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                    T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tile.jit(out_idx=[-1])
def persistent_pairs(
    M, N, K, block_M=128, block_N=256, block_K=64, num_stages=3, threads=256, group=8, blocks=132
):
    """Two blocks of a cluster have tiles of C below each other, and share each tile of B."""
    pairs, columns = T.ceildiv(M, 2 * block_M), T.ceildiv(N, block_N)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(2, blocks // 2, threads=threads, cluster_dims=(2, 1, 1)) as (rank, cluster):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_N, block_K), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            for bx, pair in T.Persistent([columns, pairs], blocks // 2, cluster, group_size=group):
                by = pair * 2 + rank
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                    T.copy(A[by * block_M, k * block_K], A_shared)
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                    T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                T.copy(C_local, C[by * block_M, bx * block_N])

    return main
