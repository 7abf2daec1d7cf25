"""Top-k of a router's logits: k rounds of maximum and index, gates by softmax."""

import tilelang
import tilelang.language as T
import torch


def get_configs():
    return [{"blk_m": rows, "threads": threads} for rows in (8, 16) for threads in (64, 128)]


@tilelang.autotune(configs=get_configs, warmup=1, rep=1)
@tilelang.jit(out_idx=[1, 2])
def tl_topk(M, N, topk, blk_m=8, threads=64):
    dtype = T.float32

    @T.prim_func
    def topk_kernel(
        logits: T.Tensor([M, N], dtype),
        topk_gates: T.Tensor([M, topk], dtype),
        topk_indices: T.Tensor([M, topk], T.int32),
    ):
        with T.Kernel(T.ceildiv(M, blk_m), threads=threads) as bx:
            logits_frag = T.alloc_fragment([blk_m, N], dtype=dtype)
            max_val = T.alloc_fragment([blk_m], dtype=dtype)
            expand_max_idx = T.alloc_fragment([blk_m, N], T.int32)
            max_idx = T.alloc_fragment([blk_m], T.int32)
            T.copy(logits[bx * blk_m, 0], logits_frag)
            for k in T.serial(topk):
                T.fill(expand_max_idx, -1)
                T.reduce_max(logits_frag, max_val, dim=1, clear=True)
                for i, j in T.Parallel(blk_m, N):
                    expand_max_idx[i, j] = T.if_then_else(
                        max_val[i] == logits_frag[i, j], j, expand_max_idx[i, j]
                    )
                T.reduce_max(expand_max_idx, max_idx, dim=1, clear=True)
                for i, j in T.Parallel(blk_m, N):
                    logits_frag[i, j] = T.if_then_else(max_idx[i] == j, -10000.0, logits_frag[i, j])
                for i in T.Parallel(blk_m):
                    topk_gates[bx * blk_m + i, k] = max_val[i]
                    topk_indices[bx * blk_m + i, k] = max_idx[i]

    return topk_kernel


def ref_program(logits, top_k):
    top_k_gates, top_k_indices = logits.topk(top_k, dim=1)
    return top_k_gates, top_k_indices.to(torch.int32)


if __name__ == "__main__":
    torch.manual_seed(0)
    M, N, topk = 40, 32, 4
    logits = torch.rand((M, N), device="cuda", dtype=torch.float32)
    kernel = tl_topk(M, N, topk)
    gates, indices = kernel(logits)
    ref_gates, ref_indices = ref_program(logits, topk)
    torch.testing.assert_close(gates, ref_gates)
    torch.testing.assert_close(indices, ref_indices)
    print(f"top-k: ok, tuned to {kernel.config}")
    fixed = tl_topk(M, N, topk, blk_m=8, threads=64)
    torch.testing.assert_close(fixed(logits)[1], ref_indices)
