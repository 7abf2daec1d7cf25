"""The gated delta rule, token by token, as used when decoding.

S = alpha_t S (I - beta_t k_t k_t^T) + beta_t v_t k_t^T,  o_t = S q_t: the state forgets what
the key stood for and learns the new value. q, k (batch, tokens, dim_k), v and o
(batch, tokens, dim_v), alpha and beta (batch, tokens); the state (dim_v, dim_k) starts at zero.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 8, 32, 16), (2, 25, 32, 40)]


@tilelang.jit(out_idx=[-1])
def gated_delta(batch, tokens, dim_k, dim_v, block_V=16):
    """Run the recurrence; the rows of the state are shared among blocks."""

    @T.prim_func
    def main(
        q: T.Tensor((batch, tokens, dim_k), "float32"),
        k: T.Tensor((batch, tokens, dim_k), "float32"),
        v: T.Tensor((batch, tokens, dim_v), "float32"),
        alpha: T.Tensor((batch, tokens), "float32"),
        beta: T.Tensor((batch, tokens), "float32"),
        o: T.Tensor((batch, tokens, dim_v), "float32"),
    ):
        with T.Kernel(T.ceildiv(dim_v, block_V), batch, threads=64) as (bv, b):
            state = T.alloc_fragment((block_V, dim_k), "float32")
            products = T.alloc_fragment((block_V, dim_k), "float32")
            read = T.alloc_fragment((block_V,), "float32")
            k_local = T.alloc_fragment((dim_k,), "float32")
            v_local = T.alloc_fragment((block_V,), "float32")
            T.clear(state)
            for t in T.serial(tokens):
                T.copy(k[b, t, :], k_local)
                T.copy(v[b, t, bv * block_V : (bv + 1) * block_V], v_local)
                for i, j in T.Parallel(block_V, dim_k):
                    state[i, j] *= alpha[b, t]
                    products[i, j] = state[i, j] * k_local[j]
                T.reduce_sum(products, read, dim=1)
                for i in T.Parallel(block_V):
                    v_local[i] = (v_local[i] - read[i]) * beta[b, t]
                for i, j in T.Parallel(block_V, dim_k):
                    state[i, j] += v_local[i] * k_local[j]
                    products[i, j] = state[i, j] * q[b, t, j]
                T.reduce_sum(products, read, dim=1)
                T.copy(read, o[b, t, bv * block_V : (bv + 1) * block_V])

    return main


def check(batch, tokens, dim_k, dim_v):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((batch, tokens, dim_k)).astype("float32") for _ in range(2))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    v = rng.standard_normal((batch, tokens, dim_v)).astype("float32")
    alpha, beta = (rng.uniform(0.5, 1, (batch, tokens)).astype("float32") for _ in range(2))
    o = gated_delta(batch, tokens, dim_k, dim_v)(q, k, v, alpha, beta)
    state = np.zeros((batch, dim_v, dim_k))
    for t in range(tokens):
        state *= alpha[:, t, None, None]
        learnt = beta[:, t, None] * (v[:, t] - np.einsum("bvk,bk->bv", state, k[:, t]))
        state += learnt[:, :, None] * k[:, t, None, :]
        expected = np.einsum("bvk,bk->bv", state, q[:, t])
        np.testing.assert_allclose(o[:, t], expected, rtol=1e-4, atol=1e-4)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"gated delta rule: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
