"""Decoding with a paged KV cache of dynamic size: pages are found through a block table."""

import random

import tilelang
import tilelang.language as T
import torch


def page_attention(batch, heads, dim, block_size, max_blocks):
    num_pages = T.dynamic("num_pages")
    scale = dim**-0.5 * 1.44269504
    rows = 16

    @T.prim_func
    def main(
        Q: T.Tensor([batch, heads, dim], "float16"),
        K: T.Tensor([num_pages, block_size, dim], "float16"),
        V: T.Tensor([num_pages, block_size, dim], "float16"),
        block_table: T.Tensor([batch, max_blocks], "int32"),
        cache_seqlens: T.Tensor([batch], "int32"),
        O: T.Tensor([batch, heads, dim], "float16"),
    ):
        with T.Kernel(T.ceildiv(heads, rows), batch, threads=128) as (bx, by):
            q = T.alloc_shared([rows, dim], "float16")
            k = T.alloc_shared([block_size, dim], "float16")
            v = T.alloc_shared([block_size, dim], "float16")
            s = T.alloc_fragment([rows, block_size], "float")
            p = T.alloc_fragment([rows, block_size], "float16")
            o = T.alloc_fragment([rows, dim], "float")
            m = T.alloc_fragment([rows], "float")
            m_prev = T.alloc_fragment([rows], "float")
            part = T.alloc_fragment([rows], "float")
            total = T.alloc_fragment([rows], "float")
            T.copy(Q[by, bx * rows : (bx + 1) * rows, :], q)
            T.fill(o, 0)
            T.fill(total, 0)
            T.fill(m, -T.infinity("float"))
            length = cache_seqlens[by]
            for n in T.Pipelined(T.ceildiv(length, block_size), num_stages=1):
                page = block_table[by, n]
                T.copy(K[page, :, :], k)
                T.copy(V[page, :, :], v)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(rows, block_size):
                    s[i, j] = T.if_then_else(
                        n * block_size + j < length, s[i, j], -T.infinity("float")
                    )
                T.copy(m, m_prev)
                T.reduce_max(s, m, dim=1, clear=False)
                for i in T.Parallel(rows):
                    m_prev[i] = T.exp2((m_prev[i] - m[i]) * scale)
                for i, j in T.Parallel(rows, block_size):
                    s[i, j] = T.exp2((s[i, j] - m[i]) * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(rows):
                    total[i] = total[i] * m_prev[i] + part[i]
                for i, j in T.Parallel(rows, dim):
                    o[i, j] *= m_prev[i]
                T.copy(s, p)
                T.gemm(p, v, o)
            for i, j in T.Parallel(rows, dim):
                o[i, j] /= total[i]
            T.copy(o, O[by, bx * rows : (bx + 1) * rows, :])

    return main


def main():
    random.seed(1)
    torch.manual_seed(1)
    batch, heads, dim, block_size = 3, 16, 64, 32
    lengths = [100, 31, 64]
    max_blocks = max(-(-n // block_size) for n in lengths)
    kernel = tilelang.compile(
        page_attention(batch, heads, dim, block_size, max_blocks), out_idx=[5]
    )

    for pages in (10, 17):
        cache_k = torch.randn(pages, block_size, dim, device="cuda", dtype=torch.half)
        cache_v = torch.randn_like(cache_k)
        table = torch.zeros(batch, max_blocks, dtype=torch.int32, device="cuda")
        free = random.sample(range(pages), pages)
        for b, n in enumerate(lengths):
            for i in range(-(-n // block_size)):
                table[b, i] = free.pop()
        q = torch.randn(batch, heads, dim, device="cuda", dtype=torch.half)
        seqlens = torch.tensor(lengths, dtype=torch.int32, device="cuda")
        out = kernel(q, cache_k, cache_v, table, seqlens)
        for b, n in enumerate(lengths):
            blocks = table[b, : -(-n // block_size)].long()
            kb = cache_k[blocks].reshape(-1, dim)[:n].float()
            vb = cache_v[blocks].reshape(-1, dim)[:n].float()
            weights = (q[b].float() @ kb.T * dim**-0.5).softmax(-1)
            torch.testing.assert_close(out[b].float(), weights @ vb, rtol=2e-2, atol=2e-2)
        print(f"{pages} pages: ok")


if __name__ == "__main__":
    main()
