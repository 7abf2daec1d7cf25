"""Flash attention on Hopper GPUs by hand: two groups of warps take turns at the tensor cores.

Q, K, V, O (batch, heads, length, dim) float16. A third group copies. While one group multiplies,
the other computes its softmax: named barriers hand the turn over. Keys and values have circular
buffers of their own, so that a tile of keys is free as soon as its scores are there.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 2, 256, 64), (2, 1, 320, 128)]
ROWS = 64  # of queries for each group
TURN = 1  # barriers 1 and 2 say whose turn it is


@T.macro
def attend(
    group, steps, scale, Q_shared, K_shared, V_shared, O, ready, full, empty, batch, head, bx
):
    """Let `group` compute its rows: tile after tile of keys, with a running maximum and sum."""
    block, dim, stages = K_shared.shape[1], K_shared.shape[2], K_shared.shape[0]
    with T.ws(group):
        T.inc_max_nreg(240)
        scores = T.alloc_fragment((ROWS, block), "float32")
        weights = T.alloc_fragment((ROWS, block), "float16")
        total = T.alloc_fragment((ROWS, dim), "float32")
        most = T.alloc_fragment((ROWS,), "float32")
        before = T.alloc_fragment((ROWS,), "float32")
        shrink = T.alloc_fragment((ROWS,), "float32")
        norm = T.alloc_fragment((ROWS,), "float32")
        part = T.alloc_fragment((ROWS,), "float32")
        T.fill(total, 0)
        T.fill(norm, 0)
        T.fill(most, -T.infinity("float32"))
        T.mbarrier_wait_parity(ready, 0)
        if group == 1:
            T.named_barrier_arrive(TURN, 256)
        for k in T.serial(steps):
            slot, phase = k % stages, k // stages % 2
            T.mbarrier_wait_parity(full[slot], phase)
            T.sync_threads(TURN + group, 256)
            T.wgmma_gemm(
                Q_shared[group * ROWS : (group + 1) * ROWS, :],
                K_shared[slot, :, :],
                scores,
                transpose_B=True,
                clear_accum=True,
            )
            T.wait_wgmma(0)
            if group == 0 or k + 1 < steps:
                T.named_barrier_arrive(TURN + 1 - group, 256)
            T.mbarrier_arrive(empty[slot])
            T.copy(most, before)
            T.reduce_max(scores, most, dim=1, clear=False)
            for i in T.Parallel(ROWS):
                shrink[i] = T.exp2((before[i] - most[i]) * scale)
            for i, j in T.Parallel(ROWS, block):
                scores[i, j] = T.exp2((scores[i, j] - most[i]) * scale)
            T.reduce_sum(scores, part, dim=1)
            for i in T.Parallel(ROWS):
                norm[i] = norm[i] * shrink[i] + part[i]
            T.copy(scores, weights)
            for i, j in T.Parallel(ROWS, dim):
                total[i, j] *= shrink[i]
            T.mbarrier_wait_parity(full[stages + slot], phase)
            T.gemm(weights, V_shared[slot, :, :], total)
            T.mbarrier_arrive(empty[stages + slot])
        for i, j in T.Parallel(ROWS, dim):
            total[i, j] /= norm[i]
        T.copy(total, O[batch, head, (bx * 2 + group) * ROWS, 0])


@tilelang.jit(out_idx=[-1])
def attention(batch, heads, length, dim, block=64, stages=2):
    """Attend to all keys; `length` is a multiple of `block`."""
    shape = (batch, heads, length, dim)
    steps = length // block
    scale = 1.44269504 / dim**0.5

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        O: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(length, 2 * ROWS), heads, batch, threads=384) as (bx, by, bz):
            Q_shared = T.alloc_shared((2 * ROWS, dim), "float16")
            K_shared = T.alloc_shared((stages, block, dim), "float16")
            V_shared = T.alloc_shared((stages, block, dim), "float16")
            ready = T.alloc_barrier(128)
            full = T.alloc_barrier([128] * (2 * stages))
            empty = T.alloc_barrier([256] * (2 * stages))
            with T.ws(2):
                T.dec_max_nreg(24)
                T.tma_copy(Q[bz, by, bx * 2 * ROWS, 0], Q_shared, barrier=ready)
                T.mbarrier_arrive(ready)
                for k in T.serial(steps):
                    slot, phase = k % stages, k // stages % 2
                    T.mbarrier_wait_parity(empty[slot], phase ^ 1)
                    T.tma_copy(K[bz, by, k * block, 0], K_shared[slot, :, :], barrier=full[slot])
                    T.mbarrier_arrive(full[slot])
                    T.mbarrier_wait_parity(empty[stages + slot], phase ^ 1)
                    T.tma_copy(
                        V[bz, by, k * block, 0], V_shared[slot, :, :], barrier=full[stages + slot]
                    )
                    T.mbarrier_arrive(full[stages + slot])
            tiles, signals = (Q_shared, K_shared, V_shared, O), (ready, full, empty)
            attend(0, steps, scale, *tiles, *signals, bz, by, bx)
            attend(1, steps, scale, *tiles, *signals, bz, by, bx)

    return main


def check(batch, heads, length, dim):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((batch, heads, length, dim)).astype("float16") for _ in range(3))
    scores = q.astype("float32") @ k.astype("float32").swapaxes(-1, -2) / dim**0.5
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = weights / weights.sum(axis=-1, keepdims=True) @ v.astype("float32")
    out = attention(batch, heads, length, dim)(q, k, v)
    np.testing.assert_allclose(out.astype("float32"), expected, rtol=1e-2, atol=2e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"attention in turns by hand: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
