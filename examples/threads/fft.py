"""Fast Fourier transform of rows in shared memory: radix 2, one butterfly per thread and step.

X and Y (M, N, 2) float32, real and imaginary parts side by side; N a power of two.
"""

import math

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64), (3, 256)]


@tilelang.jit(out_idx=[-1])
def fft(M, N):
    """Put the row in bit-reversed order, then combine halves log2(N) times."""
    levels = N.bit_length() - 1
    threads = N // 2

    @T.macro
    def load_reversed(X, re, im, row, at):
        reversed_at = T.alloc_var("int32", init=0)
        for b in T.serial(levels):
            reversed_at = reversed_at | ((at >> b & 1) << (levels - 1 - b))
        re[reversed_at] = X[row, at, 0]
        im[reversed_at] = X[row, at, 1]

    @T.prim_func
    def main(X: T.Tensor((M, N, 2), "float32"), Y: T.Tensor((M, N, 2), "float32")):
        with T.Kernel(M, threads=threads) as bx:
            tx = T.get_thread_binding()
            re = T.alloc_shared((N,), "float32")
            im = T.alloc_shared((N,), "float32")
            load_reversed(X, re, im, bx, tx)
            load_reversed(X, re, im, bx, tx + threads)
            T.sync_threads()
            for level in T.serial(levels):
                half = 1 << level
                k = tx & (half - 1)
                low = ((tx - k) << 1) + k
                angle = -math.pi * k / half
                cosine, sine = T.cos(angle), T.sin(angle)
                turned_re = re[low + half] * cosine - im[low + half] * sine
                turned_im = re[low + half] * sine + im[low + half] * cosine
                first_re, first_im = re[low], im[low]
                re[low] = first_re + turned_re
                im[low] = first_im + turned_im
                re[low + half] = first_re - turned_re
                im[low + half] = first_im - turned_im
                T.sync_threads()
            for part in T.serial(2):
                Y[bx, tx + part * threads, 0] = re[tx + part * threads]
                Y[bx, tx + part * threads, 1] = im[tx + part * threads]

    return main


def check(M, N):
    """Compare one size with NumPy."""
    x = np.random.default_rng(0).standard_normal((M, N, 2), "float32")
    y = fft(M, N)(x)
    expected = np.fft.fft(x[..., 0] + 1j * x[..., 1])
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], expected, rtol=1e-3, atol=1e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"fast Fourier transform: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
