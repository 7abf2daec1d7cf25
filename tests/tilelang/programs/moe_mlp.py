"""A mixture of experts: tokens sorted by expert, two grouped GEMMs with SwiGLU in between."""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

BLOCK_T, BLOCK_H, BLOCK_E = 16, 32, 32


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def moe_forward(d_hidden, d_expert, num_experts, rows, blocks):
    dtype, accum = "float16", "float"
    scale = 1.44269504

    @T.prim_func
    def kernel(
        stacked_tokens: T.Tensor((rows, d_hidden), dtype),
        W_gate: T.Tensor((num_experts, d_expert, d_hidden), dtype),
        W_up: T.Tensor((num_experts, d_expert, d_hidden), dtype),
        W_down: T.Tensor((num_experts, d_hidden, d_expert), dtype),
        weights: T.Tensor((rows,), dtype),
        block_expert: T.Tensor((blocks,), "int32"),
        block_start: T.Tensor((blocks,), "int32"),
        block_rows: T.Tensor((blocks,), "int32"),
        up_logits: T.Tensor((rows, d_expert), dtype),
        output: T.Tensor((rows, d_hidden), dtype),
    ):
        with T.Kernel(blocks, T.ceildiv(d_expert, BLOCK_E), threads=128) as (bx, by):
            x = T.alloc_shared((BLOCK_T, BLOCK_H), dtype)
            gate_w = T.alloc_shared((BLOCK_E, BLOCK_H), dtype)
            up_w = T.alloc_shared((BLOCK_E, BLOCK_H), dtype)
            gate = T.alloc_fragment((BLOCK_T, BLOCK_E), accum)
            up = T.alloc_fragment((BLOCK_T, BLOCK_E), accum)
            expert, start = block_expert[bx], block_start[bx]
            T.clear(gate)
            T.clear(up)
            for k in T.Pipelined(T.ceildiv(d_hidden, BLOCK_H), num_stages=1):
                T.copy(stacked_tokens[start : start + BLOCK_T, k * BLOCK_H : (k + 1) * BLOCK_H], x)
                T.copy(W_gate[expert, by * BLOCK_E, k * BLOCK_H], gate_w)
                T.copy(W_up[expert, by * BLOCK_E, k * BLOCK_H], up_w)
                T.gemm(x, gate_w, gate, transpose_B=True)
                T.gemm(x, up_w, up, transpose_B=True)
            for i, j in T.Parallel(BLOCK_T, BLOCK_E):
                gate[i, j] = gate[i, j] * (1.0 / (1.0 + T.exp2(-gate[i, j] * scale)))
                up[i, j] = up[i, j] * gate[i, j]
            for i, j in T.Parallel(BLOCK_T, BLOCK_E):
                if i < block_rows[bx]:
                    up_logits[start + i, by * BLOCK_E + j] = up[i, j]

        with T.Kernel(blocks, T.ceildiv(d_hidden, BLOCK_H), threads=128) as (bx, by):
            h = T.alloc_shared((BLOCK_T, BLOCK_E), dtype)
            down_w = T.alloc_shared((BLOCK_H, BLOCK_E), dtype)
            y = T.alloc_fragment((BLOCK_T, BLOCK_H), accum)
            expert, start = block_expert[bx], block_start[bx]
            T.clear(y)
            for k in T.Pipelined(T.ceildiv(d_expert, BLOCK_E), num_stages=1):
                T.copy(up_logits[start : start + BLOCK_T, k * BLOCK_E : (k + 1) * BLOCK_E], h)
                T.copy(W_down[expert, by * BLOCK_H, k * BLOCK_E], down_w)
                T.gemm(h, down_w, y, transpose_B=True)
            for i, j in T.Parallel(BLOCK_T, BLOCK_H):
                if i < block_rows[bx]:
                    output[start + i, by * BLOCK_H + j] = y[i, j] * weights[start + i]

    return kernel


class MoE(nn.Module):
    def __init__(self, hidden, expert, experts, top_k):
        super().__init__()
        self.router = nn.Linear(hidden, experts, bias=False)
        self.gate = nn.Parameter(torch.randn(experts, expert, hidden) / hidden**0.5)
        self.up = nn.Parameter(torch.randn(experts, expert, hidden) / hidden**0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, expert) / expert**0.5)
        self.top_k, self.experts = top_k, experts

    def route(self, x):
        return self.router(x).float().softmax(-1).topk(self.top_k, dim=-1)

    @torch.no_grad()
    def reference(self, x):
        scores, chosen = self.route(x)
        y = torch.zeros_like(x, dtype=torch.float32)
        for e in range(self.experts):
            for token, slot in (chosen == e).nonzero().tolist():
                row = x[token].float()
                h = nn.functional.silu(self.gate[e].float() @ row) * (self.up[e].float() @ row)
                y[token] += scores[token, slot] * (self.down[e].float() @ h)
        return y

    @torch.no_grad()
    def forward(self, x):
        scores, chosen = self.route(x)
        order = chosen.flatten().argsort(stable=True)
        tokens = order // self.top_k
        sizes = torch.bincount(chosen.flatten(), minlength=self.experts).tolist()
        expert, start, rows, at = [], [], [], 0
        for e, size in enumerate(sizes):
            for first in range(0, size, BLOCK_T):
                expert.append(e)
                start.append(at + first)
                rows.append(min(BLOCK_T, size - first))
            at += size
        blocks = [
            torch.tensor(v, dtype=torch.int32, device=x.device) for v in (expert, start, rows)
        ]
        hidden, inner = x.shape[1], self.gate.shape[1]
        up = torch.empty(at, inner, dtype=x.dtype, device=x.device)
        out = torch.empty(at, hidden, dtype=x.dtype, device=x.device)
        kernel = moe_forward(hidden, inner, self.experts, at, len(expert))
        kernel(
            x[tokens].contiguous(), self.gate.data, self.up.data, self.down.data,
            scores.flatten()[order].half(), *blocks, up, out,
        )  # fmt: skip
        y = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
        return y.index_add_(0, tokens, out.float())


torch.manual_seed(0)
model = MoE(hidden=64, expert=96, experts=4, top_k=2).half().cuda()
x = torch.randn(37, 64, device="cuda", dtype=torch.float16)
torch.testing.assert_close(model(x), model.reference(x), rtol=2e-2, atol=2e-2)
print("MoE: matches the loop over experts")
