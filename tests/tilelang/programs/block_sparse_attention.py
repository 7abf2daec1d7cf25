"""Attention to chosen blocks of keys: a boolean mask over blocks, top-k of pooled scores."""

import math

import tilelang
import tilelang.language as T
import torch


def get_sparse_attn_mask_from_topk(x, topk):
    bsz, num_head, downsample_len, _ = x.shape
    sparse_index = torch.topk(x, topk, dim=-1).indices
    dense_mask = torch.full(
        [bsz, num_head, downsample_len, downsample_len], False, dtype=torch.bool, device=x.device
    )
    dense_mask.scatter_(-1, sparse_index, True)
    return dense_mask.tril()


@tilelang.jit(out_idx=[4])
def blocksparse_flashattn(batch, heads, seq_len, dim, downsample_len, block=32):
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    shape = [batch, heads, seq_len, dim]

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        BlockSparseMask: T.Tensor([batch, heads, downsample_len, downsample_len], "bool"),
        Output: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(seq_len, block), heads, batch, threads=128) as (bx, by, bz):
            q = T.alloc_shared([block, dim], "float16")
            k = T.alloc_shared([block, dim], "float16")
            v = T.alloc_shared([block, dim], "float16")
            s = T.alloc_fragment([block, block], "float")
            p = T.alloc_fragment([block, block], "float16")
            o = T.alloc_fragment([block, dim], "float")
            m = T.alloc_fragment([block], "float")
            m_prev = T.alloc_fragment([block], "float")
            part = T.alloc_fragment([block], "float")
            total = T.alloc_fragment([block], "float")
            block_mask = T.alloc_local([downsample_len], "bool")
            T.copy(Q[bz, by, bx * block : (bx + 1) * block, :], q)
            T.fill(o, 0)
            T.fill(total, 0)
            T.fill(m, -T.infinity("float"))
            for vj in T.serial(downsample_len):
                block_mask[vj] = BlockSparseMask[bz, by, bx, vj]
            for n in T.Pipelined(T.ceildiv((bx + 1) * block, block), num_stages=1):
                if block_mask[n]:
                    T.copy(K[bz, by, n * block : (n + 1) * block, :], k)
                    for i, j in T.Parallel(block, block):
                        s[i, j] = T.if_then_else(
                            bx * block + i >= n * block + j, 0, -T.infinity("float")
                        )
                    T.gemm(q, k, s, transpose_B=True)
                    T.copy(m, m_prev)
                    T.reduce_max(s, m, dim=1, clear=False)
                    for i in T.Parallel(block):
                        m_prev[i] = T.exp2((m_prev[i] - m[i]) * scale)
                    for i, j in T.Parallel(block, block):
                        s[i, j] = T.exp2((s[i, j] - m[i]) * scale)
                    T.reduce_sum(s, part, dim=1)
                    for i in T.Parallel(block):
                        total[i] = total[i] * m_prev[i] + part[i]
                    for i, j in T.Parallel(block, dim):
                        o[i, j] *= m_prev[i]
                    T.copy(s, p)
                    T.copy(V[bz, by, n * block : (n + 1) * block, :], v)
                    T.gemm(p, v, o)
            for i, j in T.Parallel(block, dim):
                o[i, j] /= total[i]
            T.copy(o, Output[bz, by, bx * block : (bx + 1) * block, :])

    return main


def test_topk_sparse_attention():
    torch.manual_seed(0)
    BATCH, N_HEADS, SEQ_LEN, D_HEAD, BLOCK, TOPK = 1, 2, 160, 32, 32, 2
    q, k, v = (
        torch.randn(BATCH, N_HEADS, SEQ_LEN, D_HEAD, device="cuda", dtype=torch.float16)
        for _ in range(3)
    )
    downsample_len = math.ceil(SEQ_LEN / BLOCK)
    x_ds = torch.randn([BATCH, N_HEADS, downsample_len, downsample_len], device="cuda")
    x_ds += torch.eye(downsample_len, device="cuda") * 100
    block_mask = get_sparse_attn_mask_from_topk(x_ds, topk=TOPK)

    kernel = blocksparse_flashattn(BATCH, N_HEADS, SEQ_LEN, D_HEAD, downsample_len)
    out = kernel(q, k, v, block_mask)

    full = block_mask.repeat_interleave(BLOCK, -1).repeat_interleave(BLOCK, -2).tril()
    scores = (q.float() @ k.float().mT * D_HEAD**-0.5).masked_fill(~full, float("-inf"))
    torch.testing.assert_close(out.float(), scores.softmax(-1) @ v.float(), rtol=1e-2, atol=1e-2)
    print("Pass topk sparse attention test")


if __name__ == "__main__":
    test_topk_sparse_attention()
