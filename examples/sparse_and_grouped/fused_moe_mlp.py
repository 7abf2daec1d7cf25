"""A SwiGLU MLP per expert over routed tokens, in two launches that share a workspace.

X (tokens, D) float32; expert of each block of rows (blocks,) int32; source (rows,) int32 names
the token of a row, -1 where padding; gate_up (experts, D, 2 F), down (experts, F, D); scale
(rows,); Y (tokens, D) collects the weighted results atomically and must be zero before.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 2, 32, 32, 1), (40, 3, 48, 64, 2)]
BLOCK = 16


@tilelang.jit
def moe_mlp(tokens, experts, D, F, blocks, block_F=32, block_K=16):
    """Gather rows, multiply, activate; multiply again, and scatter."""
    rows = blocks * BLOCK

    @T.prim_func
    def main(
        X: T.Tensor((tokens, D), "float32"),
        expert_of: T.Tensor((blocks,), "int32"),
        source: T.Tensor((rows,), "int32"),
        scale: T.Tensor((rows,), "float32"),
        gate_up: T.Tensor((experts, D, 2 * F), "float32"),
        down: T.Tensor((experts, F, D), "float32"),
        hidden: T.Tensor((rows, F), "float32"),
        Y: T.Tensor((tokens, D), "float32"),
    ):
        with T.Kernel(T.ceildiv(F, block_F), blocks, threads=128) as (bx, by):
            X_shared = T.alloc_shared((BLOCK, block_K), "float32")
            gate_shared = T.alloc_shared((block_K, block_F), "float32")
            up_shared = T.alloc_shared((block_K, block_F), "float32")
            gate = T.alloc_fragment((BLOCK, block_F), "float32")
            up = T.alloc_fragment((BLOCK, block_F), "float32")
            expert = expert_of[by]
            T.clear(gate)
            T.clear(up)
            for k in T.Pipelined(T.ceildiv(D, block_K), num_stages=2):
                for i, j in T.Parallel(BLOCK, block_K):
                    X_shared[i, j] = X[source[by * BLOCK + i], k * block_K + j]
                T.copy(gate_up[expert, k * block_K, bx * block_F], gate_shared)
                T.copy(gate_up[expert, k * block_K, F + bx * block_F], up_shared)
                T.gemm(X_shared, gate_shared, gate)
                T.gemm(X_shared, up_shared, up)
            for i, j in T.Parallel(BLOCK, block_F):
                gate[i, j] = gate[i, j] * T.sigmoid(gate[i, j]) * up[i, j]
            T.copy(gate, hidden[by * BLOCK, bx * block_F])

        with T.Kernel(T.ceildiv(D, block_F), blocks, threads=128) as (bx, by):
            H_shared = T.alloc_shared((BLOCK, block_K), "float32")
            D_shared = T.alloc_shared((block_K, block_F), "float32")
            acc = T.alloc_fragment((BLOCK, block_F), "float32")
            expert = expert_of[by]
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(F, block_K), num_stages=2):
                T.copy(hidden[by * BLOCK, k * block_K], H_shared)
                T.copy(down[expert, k * block_K, bx * block_F], D_shared)
                T.gemm(H_shared, D_shared, acc)
            for i, j in T.Parallel(BLOCK, block_F):
                row = by * BLOCK + i
                if source[row] >= 0:
                    T.atomic_add(Y[source[row], bx * block_F + j], acc[i, j] * scale[row])

    return main


def check(tokens, experts, D, F, k):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((tokens, D), "float32")
    gate_up = rng.standard_normal((experts, D, 2 * F), "float32") / np.float32(D**0.5)
    down = rng.standard_normal((experts, F, D), "float32") / np.float32(F**0.5)
    chosen = np.stack([rng.permutation(experts)[:k] for _ in range(tokens)])
    source, expert_of, expected = [], [], np.zeros_like(x)
    for expert in range(experts):
        mine = np.nonzero(chosen == expert)[0]
        gate, up = np.split(x[mine] @ gate_up[expert], 2, axis=1)
        expected[mine] += 0.5 * (gate / (1 + np.exp(-gate)) * up) @ down[expert]
        blocks = -(-len(mine) // BLOCK)
        source += [*mine, *[-1] * (blocks * BLOCK - len(mine))]
        expert_of += [expert] * blocks
    source, expert_of = np.array(source, "int32"), np.array(expert_of, "int32")
    hidden, y = np.full((len(source), F), np.nan, "float32"), np.zeros_like(x)
    kernel = moe_mlp(tokens, experts, D, F, len(expert_of))
    scale = np.full(len(source), 0.5, "float32")
    kernel(x, expert_of, source, scale, gate_up, down, hidden, y)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"SwiGLU experts over routed tokens: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
