"""Products of tiles whose groups along K have scales, and how they are run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import tile_api.language as T
from support.kept_kernels import built
from tile_core.compilation.results import Built
from tile_core.interp.values import Array
from tile_core.ir.stmt import Kernel

E8M0, E4M3, E5M2, E2M1 = "float8_e8m0fnu", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"


@dataclass(frozen=True)
class ScaledProduct:
    """``C = (A * SFA) @ (B * SFB).T`` in one block of `threads` threads, in `steps` rounds.

    Parameters
    ----------
    step
        Elements along K of a round.
    group, group_b
        Elements along K that share a scale of A, and of B if not as many.
    each
        Whether tiles of scales are those of a round, and not of all.
    turned
        Whether A and B lie along M and N.
    """

    a: str = E4M3
    b: str = E4M3
    scales: str = E8M0
    group: int = 32
    m: int = 128
    n: int = 64
    step: int = 64
    steps: int = 2
    threads: int = 128
    group_b: int = 0
    each: bool = False
    turned: bool = False
    total: str = "float32"
    clear: bool = False
    stages: int = 2

    @property
    def depth(self) -> int:
        """Elements along K."""
        return self.step * self.steps

    @property
    def groups(self) -> tuple[int, int]:
        """Elements of A and of B that share a scale."""
        return self.group, self.group_b or self.group

    def kernel(self) -> Kernel:
        """Return the kernel."""
        (m, n, step, depth), (ga, gb) = (self.m, self.n, self.step, self.depth), self.groups
        turned, each = self.turned, self.each
        wide = step if each else depth

        def matrix(rows: int, columns: int) -> tuple[int, int]:
            return (columns, rows) if turned else (rows, columns)

        @T.prim_func
        def kernel(
            A: T.Tensor(matrix(m, depth), self.a),
            B: T.Tensor(matrix(n, depth), self.b),
            SFA: T.Tensor((m, depth // ga), self.scales),
            SFB: T.Tensor((n, depth // gb), self.scales),
            C: T.Tensor((m, n), self.total),
        ):
            with T.Kernel(1, threads=self.threads):
                a = T.alloc_shared(matrix(m, step), self.a)
                b = T.alloc_shared(matrix(n, step), self.b)
                sfa = T.alloc_shared((m, wide // ga), self.scales)
                sfb = T.alloc_shared((n, wide // gb), self.scales)
                c = T.alloc_fragment((m, n), self.total)
                if not each:
                    T.copy(SFA, sfa)
                    T.copy(SFB, sfb)
                if not self.clear:
                    T.clear(c)
                for s in T.Pipelined(self.steps, num_stages=self.stages):
                    T.copy(A[matrix(0, s * step)], a)
                    T.copy(B[matrix(0, s * step)], b)
                    if each:
                        T.copy(SFA[0, s * (step // ga)], sfa)
                        T.copy(SFB[0, s * (step // gb)], sfb)
                    T.gemm_blockscaled(
                        a, b, c, sfa, sfb, turned, not turned,
                        clear_accum=s == 0 if self.clear else False,
                        k_start=0 if each else s * step,
                        sf_a_granularity_k=ga, sf_b_granularity_k=gb,
                    )  # fmt: skip
                T.copy(c, C)

        return kernel.kernel

    def arguments(self, seed: int = 0) -> list[Array]:
        """Return numbers whose products, and the sums of these, are exact; a poisoned result."""
        rng = np.random.default_rng(seed)
        few = [0.25, 0.5, 1, 2, 4] if self.scales == E8M0 else [0.25, 0.75, 1, 1.5, 3.5]
        factors, scales = [], []
        for kind, rows, group in zip((self.a, self.b), (self.m, self.n), self.groups, strict=True):
            values = rng.integers(-4, 5, (rows, self.depth)) / 2
            factors.append(values.astype(getattr(ml_dtypes, kind)))
            chosen = rng.choice(few, (rows, self.depth // group))
            scales.append(chosen.astype(getattr(ml_dtypes, self.scales)))
        result = np.full((self.m, self.n), np.nan, self.total)
        return [*factors, *scales, result]

    def expected(self, a: Array, b: Array, sfa: Array, sfb: Array) -> Array:
        """Return the exact product."""
        x, y = (
            v.astype(np.float64) * s.astype(np.float64).repeat(group, axis=1)
            for v, s, group in zip((a, b), (sfa, sfb), self.groups, strict=True)
        )
        result: Array = (x @ y.T).astype(self.total)
        return result

    def run(self, kernel: Built) -> tuple[Array, Array]:
        """Return what a compiled kernel computes, and what it should."""
        a, b, sfa, sfb, c = self.arguments()
        given = [stored(np.ascontiguousarray(x.T) if self.turned else x) for x in (a, b)]
        kernel.executable(*given, sfa, sfb, c)
        return c, self.expected(a, b, sfa, sfb)


def stored(x: Any) -> Any:
    """Return elements as tensors have them: two of 4 bits to a byte, the first in the low half."""
    if x.dtype != ml_dtypes.float4_e2m1fn:
        return x
    codes = x.view(np.uint8) & 15
    return codes[:, 0::2] | codes[:, 1::2] << 4


def check(product: ScaledProduct, arch: str) -> None:
    """Run `product` on the emulator with all checks, and compare with the exact result."""
    got, wanted = product.run(built(product.kernel(), f"cuda:{arch}@sim"))
    np.testing.assert_array_equal(got, wanted)
