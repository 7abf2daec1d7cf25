"""Histogram by atomics: counted in shared memory, then added to global memory."""

import argparse

import tilelang
import tilelang.language as T
import torch


@tilelang.jit
def histogram(bins, per_block=256, threads=128):
    N = T.dynamic("N")

    @T.prim_func
    def main(
        data: T.Tensor((N,), T.int32),
        counts: T.Tensor((bins,), T.int32),
        top: T.Tensor((1,), T.int32),
    ):
        with T.Kernel(T.ceildiv(N, per_block), threads=threads) as bx:
            local = T.alloc_shared((bins,), T.int32)
            T.clear(local)
            for i in T.Parallel(per_block):
                at = bx * per_block + i
                if at < N:
                    T.atomic_add(local[data[at]], 1)
            for i in T.Parallel(bins):
                T.atomic_add(counts[i], local[i])
                T.atomic_max(top[0], local[i])

    return main


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=3000)
    parser.add_argument("--bins", type=int, default=64)
    opts = parser.parse_args()
    kernel = histogram(opts.bins)
    for n in (opts.n, 17):
        data = torch.randint(0, opts.bins, (n,), dtype=torch.int32, device="cuda")
        counts = torch.zeros(opts.bins, dtype=torch.int32, device="cuda")
        top = torch.zeros(1, dtype=torch.int32, device="cuda")
        kernel(data, counts, top)
        expected = torch.bincount(data.long(), minlength=opts.bins).int()
        assert torch.equal(counts, expected)
        assert 0 < top.item() <= expected.max().item()
    print("histogram: ok")
