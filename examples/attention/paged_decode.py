"""Decoding from a paged cache: a table says in which page each run of keys lies.

Q and O (batch, heads, dim); pages of K and V (pages, page_size, dim), shared by all heads;
table (batch, longest / page_size) int32; lengths (batch,) int32. float32 throughout.
"""

import math

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [([64], 16, 32, 32), ([100, 7, 65], 8, 64, 32)]


@tilelang.jit(out_idx=[-1])
def paged_decode(batch, heads, dim, page_size, pages_per_sequence, block_H=16):
    """Attend to as many pages as the sequence has."""
    pages = T.dynamic("pages")
    scale = 1 / math.sqrt(dim)

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, dim), "float32"),
        K: T.Tensor((pages, page_size, dim), "float32"),
        V: T.Tensor((pages, page_size, dim), "float32"),
        table: T.Tensor((batch, pages_per_sequence), "int32"),
        lengths: T.Tensor((batch,), "int32"),
        O: T.Tensor((batch, heads, dim), "float32"),
    ):
        with T.Kernel(T.ceildiv(heads, block_H), batch, threads=128) as (bx, by):
            Q_shared = T.alloc_shared((block_H, dim), "float32")
            K_shared = T.alloc_shared((page_size, dim), "float32")
            V_shared = T.alloc_shared((page_size, dim), "float32")
            scores = T.alloc_fragment((block_H, page_size), "float32")
            acc = T.alloc_fragment((block_H, dim), "float32")
            row_max = T.alloc_fragment((block_H,), "float32")
            row_max_before = T.alloc_fragment((block_H,), "float32")
            row_sum = T.alloc_fragment((block_H,), "float32")
            total = T.alloc_fragment((block_H,), "float32")

            T.copy(Q[by, bx * block_H : (bx + 1) * block_H, :], Q_shared)
            T.clear(acc)
            T.clear(total)
            T.fill(row_max, -T.infinity("float32"))
            for p in T.Pipelined(T.ceildiv(lengths[by], page_size), num_stages=2):
                page = table[by, p]
                T.copy(K[page, :, :], K_shared)
                T.copy(V[page, :, :], V_shared)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_H, page_size):
                    scores[i, j] = T.if_then_else(
                        p * page_size + j < lengths[by],
                        scores[i, j] * scale,
                        -T.infinity("float32"),
                    )
                T.copy(row_max, row_max_before)
                T.reduce_max(scores, row_max, dim=1, clear=False)
                for i, j in T.Parallel(block_H, page_size):
                    scores[i, j] = T.exp(scores[i, j] - row_max[i])
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_H):
                    total[i] = total[i] * T.exp(row_max_before[i] - row_max[i]) + row_sum[i]
                for i, j in T.Parallel(block_H, dim):
                    acc[i, j] *= T.exp(row_max_before[i] - row_max[i])
                T.gemm(scores, V_shared, acc)
            for i, j in T.Parallel(block_H, dim):
                acc[i, j] /= total[i]
            T.copy(acc, O[by, bx * block_H : (bx + 1) * block_H, :])

    return main


def check(lengths, heads, dim, page_size):
    """Compare one batch with torch; the pages are scattered over a larger pool."""
    torch.manual_seed(0)
    batch, longest = len(lengths), -(-max(lengths) // page_size)
    pool = batch * longest + 3
    q = torch.randn(batch, heads, dim)
    k, v = (torch.randn(pool, page_size, dim) for _ in range(2))
    table = torch.randperm(pool)[: batch * longest].view(batch, longest).int()
    kernel = paged_decode(batch, heads, dim, page_size, longest)
    o = kernel(q, k, v, table, torch.tensor(lengths, dtype=torch.int32))
    for b, length in enumerate(lengths):
        keys, values = (x[table[b].long()].view(-1, dim)[:length] for x in (k, v))
        expected = (q[b] @ keys.T / math.sqrt(dim)).softmax(-1) @ values
        torch.testing.assert_close(o[b], expected, rtol=1e-4, atol=1e-4)


def main():
    """Check all batches."""
    for size in SIZES:
        check(*size)
    print(f"decoding from a paged cache: {len(SIZES)} batches agree with torch")


if __name__ == "__main__":
    main()
