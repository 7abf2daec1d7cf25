"""A GEMM with bias and ReLU in eager style: shapes come from the tensors."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit
def linear_relu(X, W, bias, block_M: int = 64, block_N: int = 64, block_K: int = 64):
    M, N, K = T.const("M, N, K")
    X: T.Tensor((M, K), T.float16)
    W: T.Tensor((N, K), T.float16)
    bias: T.Tensor((N,), T.float16)
    Y = T.empty((M, N), T.float16)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        X_shared = T.alloc_shared((block_M, block_K), T.float16)
        W_shared = T.alloc_shared((block_N, block_K), T.float16)
        bias_shared = T.alloc_shared((block_N,), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        T.copy(bias[bx * block_N], bias_shared)
        T.clear(acc)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(X[by * block_M, ko * block_K], X_shared)
            T.copy(W[bx * block_N, ko * block_K], W_shared)
            T.gemm(X_shared, W_shared, acc, transpose_B=True)
        for i, j in T.Parallel(block_M, block_N):
            acc[i, j] = T.max(acc[i, j] + bias_shared[j], 0)
        T.copy(acc, Y[by * block_M, bx * block_N])

    return Y


class Linear(torch.nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.inner = torch.nn.Linear(features_in, features_out)

    def forward(self, x):
        return linear_relu(x, self.inner.weight.detach(), self.inner.bias.detach())


torch.manual_seed(0)
device = torch.device("cuda:0")
layer = Linear(96, 80).half().to(device)
for tokens in (1, 33, 128):
    x = torch.randn(tokens, 96, device=device, dtype=torch.float16)
    with torch.no_grad():
        y = layer(x)
        expected = torch.relu(layer.inner(x))
    torch.testing.assert_close(y, expected, rtol=1e-2, atol=1e-2)
torch.cuda.synchronize()
print("linear_relu: three batch sizes agree")
