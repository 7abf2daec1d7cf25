"""NF4 weights through a table in registers of shared memory, and a double-quantised absmax."""

import tilelang
import tilelang.language as T
import torch

QUANTILES = torch.erfinv(torch.linspace(-0.97, 0.97, 16)) * 2**0.5
QUANTILES = QUANTILES / QUANTILES.abs().max()


@tilelang.jit(out_idx=[5])
def nf4_gemv(N, K, group=64, rows=8, threads=128):
    @T.prim_func
    def main(
        x: T.Tensor((K,), T.float32),
        codes: T.Tensor((N, K // 2), T.uint8),
        table: T.Tensor((16,), T.float32),
        absmax: T.Tensor((N, K // group), T.uint8),
        absmax_scale: T.Tensor((N,), T.float32),
        y: T.Tensor((N,), T.float32),
    ):
        with T.Kernel(T.ceildiv(N, rows), threads=threads) as bx:
            lut = T.alloc_shared((16,), T.float32)
            packed = T.alloc_shared((rows, K // 2), T.uint8)
            product = T.alloc_fragment((rows, K), T.float32)
            out = T.alloc_fragment((rows,), T.float32)
            T.copy(table, lut)
            T.copy(codes[bx * rows : (bx + 1) * rows, :], packed)
            for i, j in T.Parallel(rows, K):
                code = (packed[i, j // 2] >> T.Cast("uint8", j % 2 * 4)) & T.Cast("uint8", 15)
                biggest = (
                    T.Cast("float32", absmax[bx * rows + i, j // group])
                    * absmax_scale[bx * rows + i]
                )
                product[i, j] = lut[T.Cast("int32", code)] * biggest * x[j]
            T.reduce_sum(product, out, dim=-1)
            T.copy(out, y[bx * rows : (bx + 1) * rows])

    return main


device = "cuda" if torch.cuda.is_available() else "cpu"
N, K = 40, 256
x = torch.randn(K, device=device)
codes = torch.randint(0, 256, (N, K // 2), dtype=torch.uint8, device=device)
absmax = torch.randint(1, 256, (N, K // 64), dtype=torch.uint8, device=device)
scales = torch.rand(N, device=device) / 256
y = nf4_gemv(N, K)(x, codes, QUANTILES.to(device), absmax, scales)
weights = QUANTILES.to(device)[torch.stack([codes & 15, codes >> 4], -1).flatten(1).long()]
weights = weights * (absmax.float() * scales[:, None]).repeat_interleave(64, 1)
torch.testing.assert_close(y, weights @ x, rtol=1e-4, atol=1e-4)
print("NF4 GEMV: ok")
