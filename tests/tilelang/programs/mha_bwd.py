"""Attention with gradients: three kernels behind a torch.autograd.Function."""

import tilelang
import tilelang.language as T
import torch

BLOCK = 32
LOG2E = 1.44269504


@tilelang.jit(out_idx=[3, 4])
def flash_fwd(heads, seq_len, dim):
    scale = dim**-0.5 * LOG2E
    shape = (heads, seq_len, dim)

    @T.prim_func
    def fwd(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        O: T.Tensor(shape, "float16"),
        lse: T.Tensor((heads, seq_len), "float32"),
    ):
        with T.Kernel(T.ceildiv(seq_len, BLOCK), heads, threads=128) as (bx, by):
            q = T.alloc_shared((BLOCK, dim), "float16")
            k = T.alloc_shared((BLOCK, dim), "float16")
            v = T.alloc_shared((BLOCK, dim), "float16")
            s = T.alloc_fragment((BLOCK, BLOCK), "float32")
            p = T.alloc_fragment((BLOCK, BLOCK), "float16")
            o = T.alloc_fragment((BLOCK, dim), "float32")
            top = T.alloc_fragment((BLOCK,), "float32")
            before = T.alloc_fragment((BLOCK,), "float32")
            part = T.alloc_fragment((BLOCK,), "float32")
            total = T.alloc_fragment((BLOCK,), "float32")
            T.copy(Q[by, bx * BLOCK : (bx + 1) * BLOCK, :], q)
            T.clear(o)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            for n in T.Pipelined(bx + 1, num_stages=1):
                T.copy(K[by, n * BLOCK : (n + 1) * BLOCK, :], k)
                T.copy(V[by, n * BLOCK : (n + 1) * BLOCK, :], v)
                for i, j in T.Parallel(BLOCK, BLOCK):
                    s[i, j] = T.if_then_else(
                        bx * BLOCK + i >= n * BLOCK + j, 0, -T.infinity("float32")
                    )
                T.gemm(q, k, s, transpose_B=True)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                for i, j in T.Parallel(BLOCK, BLOCK):
                    s[i, j] = T.exp2((s[i, j] - top[i]) * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(BLOCK):
                    before[i] = T.exp2((before[i] - top[i]) * scale)
                    total[i] = total[i] * before[i] + part[i]
                for i, j in T.Parallel(BLOCK, dim):
                    o[i, j] *= before[i]
                T.copy(s, p)
                T.gemm(p, v, o)
            for i, j in T.Parallel(BLOCK, dim):
                o[i, j] /= total[i]
            for i in T.Parallel(BLOCK):
                top[i] = top[i] * scale + T.log2(total[i])
            T.copy(o, O[by, bx * BLOCK : (bx + 1) * BLOCK, :])
            T.copy(top, lse[by, bx * BLOCK : (bx + 1) * BLOCK])

    return fwd


@tilelang.jit(out_idx=[2])
def flash_bwd_delta(heads, seq_len, dim):
    @T.prim_func
    def delta(
        O: T.Tensor((heads, seq_len, dim), "float16"),
        dO: T.Tensor((heads, seq_len, dim), "float16"),
        Delta: T.Tensor((heads, seq_len), "float32"),
    ):
        with T.Kernel(T.ceildiv(seq_len, BLOCK), heads) as (bx, by):
            o = T.alloc_fragment((BLOCK, dim), "float16")
            do = T.alloc_fragment((BLOCK, dim), "float16")
            acc = T.alloc_fragment((BLOCK, dim), "float32")
            row = T.alloc_fragment((BLOCK,), "float32")
            T.copy(O[by, bx * BLOCK : (bx + 1) * BLOCK, :], o)
            T.copy(dO[by, bx * BLOCK : (bx + 1) * BLOCK, :], do)
            for i, j in T.Parallel(BLOCK, dim):
                acc[i, j] = o[i, j].astype("float32") * do[i, j].astype("float32")
            T.reduce_sum(acc, row, 1)
            T.copy(row, Delta[by, bx * BLOCK : (bx + 1) * BLOCK])

    return delta


@tilelang.jit
def flash_bwd(heads, seq_len, dim):
    sm_scale = dim**-0.5
    shape = (heads, seq_len, dim)

    @T.prim_func
    def bwd(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        dO: T.Tensor(shape, "float16"),
        lse: T.Tensor((heads, seq_len), "float32"),
        Delta: T.Tensor((heads, seq_len), "float32"),
        dQ: T.Tensor(shape, "float32"),
        dK: T.Tensor(shape, "float16"),
        dV: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(seq_len, BLOCK), heads, threads=64) as (bx, by):
            k = T.alloc_shared((BLOCK, dim), "float16")
            v = T.alloc_shared((BLOCK, dim), "float16")
            q = T.alloc_shared((BLOCK, dim), "float16")
            do = T.alloc_shared((BLOCK, dim), "float16")
            row = T.alloc_shared((BLOCK,), "float32")
            delta = T.alloc_shared((BLOCK,), "float32")
            pT = T.alloc_fragment((BLOCK, BLOCK), "float32")
            dsT = T.alloc_fragment((BLOCK, BLOCK), "float32")
            pT_cast = T.alloc_fragment((BLOCK, BLOCK), "float16")
            dsT_cast = T.alloc_fragment((BLOCK, BLOCK), "float16")
            dsT_shared = T.alloc_shared((BLOCK, BLOCK), "float16")
            dk = T.alloc_fragment((BLOCK, dim), "float32")
            dv = T.alloc_fragment((BLOCK, dim), "float32")
            dq = T.alloc_fragment((BLOCK, dim), "float32")
            T.copy(K[by, bx * BLOCK : (bx + 1) * BLOCK, :], k)
            T.copy(V[by, bx * BLOCK : (bx + 1) * BLOCK, :], v)
            T.clear(dk)
            T.clear(dv)
            for m in T.Pipelined(bx, T.ceildiv(seq_len, BLOCK), num_stages=1):
                T.copy(Q[by, m * BLOCK : (m + 1) * BLOCK, :], q)
                T.copy(dO[by, m * BLOCK : (m + 1) * BLOCK, :], do)
                T.copy(lse[by, m * BLOCK : (m + 1) * BLOCK], row)
                T.copy(Delta[by, m * BLOCK : (m + 1) * BLOCK], delta)
                T.clear(pT)
                T.gemm(k, q, pT, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(BLOCK, BLOCK):
                    pT[i, j] = T.if_then_else(
                        bx * BLOCK + i <= m * BLOCK + j,
                        T.exp2(pT[i, j] * sm_scale * LOG2E - row[j]),
                        0,
                    )
                T.clear(dsT)
                T.gemm(v, do, dsT, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(pT, pT_cast)
                T.gemm(pT_cast, do, dv, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(BLOCK, BLOCK):
                    dsT_cast[i, j] = pT[i, j] * (dsT[i, j] - delta[j]) * sm_scale
                T.gemm(dsT_cast, q, dk, policy=T.GemmWarpPolicy.FullRow)
                T.copy(dsT_cast, dsT_shared)
                T.clear(dq)
                T.gemm(dsT_shared, k, dq, transpose_A=True)
                for i, j in T.Parallel(BLOCK, dim):
                    T.atomic_add(dQ[by, m * BLOCK + i, j], dq[i, j])
            T.copy(dk, dK[by, bx * BLOCK : (bx + 1) * BLOCK, :])
            T.copy(dv, dV[by, bx * BLOCK : (bx + 1) * BLOCK, :])

    return bwd


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        o, lse = flash_fwd(*q.shape)(q, k, v)
        ctx.save_for_backward(q, k, v, o, lse)
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        delta = flash_bwd_delta(*q.shape)(o, do.contiguous())
        dq = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
        dk, dv = torch.empty_like(k), torch.empty_like(v)
        flash_bwd(*q.shape)(q, k, v, do.contiguous(), lse, delta, dq, dk, dv)
        return dq.to(q.dtype), dk, dv


def reference(q, k, v):
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    return (scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v.float()).half()


torch.manual_seed(0)
H, S, D = 2, 96, 32
inputs = [
    torch.empty(H, S, D, dtype=torch.half, device="cuda").normal_().requires_grad_()
    for _ in range(3)
]
gradient = torch.randn(H, S, D, dtype=torch.half, device="cuda")
out = Attention.apply(*inputs)
out.backward(gradient)
ours = [x.grad.clone() for x in inputs]
for x in inputs:
    x.grad = None
expected = reference(*inputs)
expected.backward(gradient)
torch.testing.assert_close(out, expected, rtol=1e-2, atol=1e-2)
for name, mine, x in zip("qkv", ours, inputs):
    torch.testing.assert_close(mine, x.grad, rtol=2e-2, atol=2e-2)
    print(f"d{name} matches")
