"""Cross entropy of logits against class numbers, and its gradient in place of the logits.

logits (M, N) float32, overwritten by the gradient of the mean loss; labels (M,) int64, negative
for rows to leave out; losses (M,) float32.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(8, 64), (30, 500)]


@tilelang.jit(out_idx=[3])
def cross_entropy(N, block_N=128):
    """One block per row: log-sum-exp over the chunks of the row, then the gradient."""
    M = T.dynamic("rows")

    @T.prim_func
    def main(
        logits: T.Tensor((M, N), "float32"),
        labels: T.Tensor((M,), "int64"),
        scale: T.float32,
        losses: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(M, threads=128) as row:
            x = T.alloc_fragment((block_N,), "float32")
            chunk_max = T.alloc_fragment((1,), "float32")
            chunk_sum = T.alloc_fragment((1,), "float32")
            highest = T.alloc_var("float32", init=-1e30)
            total = T.alloc_var("float32", init=0.0)
            T.annotate_safe_value({logits: -1e30})
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(logits[row, k * block_N : (k + 1) * block_N], x)
                T.reduce_max(x, chunk_max, dim=0)
                before = highest + 0.0
                highest = T.max(highest, chunk_max[0])
                for j in T.Parallel(block_N):
                    x[j] = T.exp(x[j] - highest)
                T.reduce_sum(x, chunk_sum, dim=0)
                total = total * T.exp(before - highest) + chunk_sum[0]
            label = labels[row]
            if label >= 0:
                losses[row] = T.log(total) + highest - logits[row, label]
            else:
                losses[row] = 0
            for k in T.serial(T.ceildiv(N, block_N)):
                for j in T.Parallel(block_N):
                    column = k * block_N + j
                    probability = T.exp(logits[row, column] - highest) / total
                    hit = T.if_then_else(label == column, 1.0, 0.0)
                    logits[row, column] = T.if_then_else(label >= 0, (probability - hit) * scale, 0)

    return main


def check(M, N):
    """Compare one size with torch and its gradient."""
    torch.manual_seed(0)
    logits = (torch.randn(M, N) * 3).requires_grad_()
    labels = torch.randint(-1, N, (M,))
    labels[0] = -1
    used = int((labels >= 0).sum())
    options = {"ignore_index": -1}
    each = torch.nn.functional.cross_entropy(logits, labels, reduction="none", **options)
    (each.sum() / used).backward()
    overwritten = logits.detach().clone()
    losses = cross_entropy(N)(overwritten, labels, 1 / used)
    torch.testing.assert_close(losses, each.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(overwritten, logits.grad, rtol=1e-3, atol=1e-6)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"cross entropy with its gradient: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
