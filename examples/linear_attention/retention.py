"""Retention, chunk by chunk: O[t] = sum over s <= t of gamma^(t - s) (q_t . k_s) v_s.

Q, K (heads, tokens, dim_k), V and O (heads, tokens, dim_v), gammas (heads,); float32. Within a
chunk this is attention with decaying weights; across chunks a state (dim_k, dim_v) carries on.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64, 32, 32), (2, 150, 32, 64)]


@tilelang.jit(out_idx=[-1])
def retention(heads, tokens, dim_k, dim_v, chunk=32):
    """Attend with exponentially decaying weights, in linear time."""

    @T.prim_func
    def main(
        Q: T.Tensor((heads, tokens, dim_k), "float32"),
        K: T.Tensor((heads, tokens, dim_k), "float32"),
        V: T.Tensor((heads, tokens, dim_v), "float32"),
        gammas: T.Tensor((heads,), "float32"),
        O: T.Tensor((heads, tokens, dim_v), "float32"),
    ):
        with T.Kernel(heads, threads=128) as bh:
            Q_shared = T.alloc_shared((chunk, dim_k), "float32")
            K_shared = T.alloc_shared((chunk, dim_k), "float32")
            V_shared = T.alloc_shared((chunk, dim_v), "float32")
            state_shared = T.alloc_shared((dim_k, dim_v), "float32")
            state = T.alloc_fragment((dim_k, dim_v), "float32")
            scores = T.alloc_fragment((chunk, chunk), "float32")
            within = T.alloc_fragment((chunk, dim_v), "float32")
            across = T.alloc_fragment((chunk, dim_v), "float32")

            log_gamma = T.log2(gammas[bh])
            T.clear(state)
            for c in T.Pipelined(T.ceildiv(tokens, chunk), num_stages=2):
                T.copy(Q[bh, c * chunk : (c + 1) * chunk, :], Q_shared)
                T.copy(K[bh, c * chunk : (c + 1) * chunk, :], K_shared)
                T.copy(V[bh, c * chunk : (c + 1) * chunk, :], V_shared)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(chunk, chunk):
                    scores[i, j] = T.if_then_else(
                        i >= j, scores[i, j] * T.exp2((i - j).astype("float32") * log_gamma), 0
                    )
                T.gemm(scores, V_shared, within, clear_accum=True)
                T.copy(state, state_shared)
                T.gemm(Q_shared, state_shared, across, clear_accum=True)
                for i, j in T.Parallel(chunk, dim_v):
                    within[i, j] += across[i, j] * T.exp2((i + 1).astype("float32") * log_gamma)
                T.copy(within, O[bh, c * chunk : (c + 1) * chunk, :])
                for i, j in T.Parallel(chunk, dim_k):
                    K_shared[i, j] *= T.exp2((chunk - 1 - i).astype("float32") * log_gamma)
                for i, j in T.Parallel(dim_k, dim_v):
                    state[i, j] *= T.exp2(chunk * log_gamma)
                T.gemm(K_shared, V_shared, state, transpose_A=True)

    return main


def check(heads, tokens, dim_k, dim_v):
    """Compare one size with NumPy, token against token."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((heads, tokens, dim_k), "float32") for _ in range(2))
    v = rng.standard_normal((heads, tokens, dim_v), "float32")
    gammas = (1 - 2.0 ** -np.arange(3, 3 + heads)).astype("float32")
    distance = np.arange(tokens)[:, None] - np.arange(tokens)
    decay = np.where(distance >= 0, gammas[:, None, None] ** np.maximum(distance, 0), 0)
    expected = (q @ k.transpose(0, 2, 1) * decay) @ v
    o = retention(heads, tokens, dim_k, dim_v)(q, k, v, gammas)
    np.testing.assert_allclose(o, expected, rtol=1e-3, atol=1e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"retention in chunks: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
