"""Row sums and maxima with shuffles, votes and shared memory: one warp per row, then one block."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[1, 2])
def row_stats(M, N, warps=4):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        Sum: T.Tensor((M,), "float32"),
        Positive: T.Tensor((M,), "int32"),
    ):
        with T.Kernel(T.ceildiv(M, warps), threads=warps * 32) as bx:
            tx = T.get_thread_binding()
            lane = tx % 32
            row = bx * warps + tx // 32
            total = T.alloc_var("float32")
            positive = T.alloc_var("int32")
            total = 0.0
            positive = 0
            for i in T.serial(T.ceildiv(N, 32)):
                if row < M and i * 32 + lane < N:
                    total += X[row, i * 32 + lane]
                    if X[row, i * 32 + lane] > 0:
                        positive += 1
            for step in T.unroll(5):
                total += T.shfl_xor(total, 16 >> step)
                positive += T.shfl_xor(positive, 16 >> step)
            if lane == 0 and row < M:
                Sum[row] = total
                Positive[row] = positive

    return main


@tilelang.jit(out_idx=[1])
def block_max(N, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            buf = T.alloc_shared((threads,), "float32")
            best = T.alloc_var("float32", init=-1e30)
            for i in T.serial(T.ceildiv(N, threads)):
                if i * threads + tx < N:
                    best = T.max(best, X[i * threads + tx])
            buf[tx] = best
            T.sync_threads()
            for s in T.unroll(7):
                if tx < (threads >> (s + 1)):
                    buf[tx] = T.max(buf[tx], buf[tx + (threads >> (s + 1))])
                T.sync_threads()
            if tx == 0:
                Y[0] = buf[0]

    return main


x = torch.randint(-8, 9, (10, 70), device="cuda").float()
sums, positive = row_stats(10, 70)(x)
assert torch.equal(sums, x.sum(1))
assert torch.equal(positive, (x > 0).sum(1).int())
y = block_max(300)(flat := torch.randn(300, device="cuda"))
assert torch.equal(y[0], flat.max())
print("warp and block reductions: ok")
