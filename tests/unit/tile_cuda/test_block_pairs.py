"""Pairs of blocks from `T.gemm`: right in the emulator, and as machine code."""

from __future__ import annotations

import re
from collections import Counter

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.nvrtcs import Named, machine_code_of
from support.toolchain import nvrtc_for
from tile_core.codegen import print_program
from tile_core.compilation.options import BuildOptions
from tile_core.driver import lower
from tile_core.plugins.host import PluginHost
from tile_core.records import dataclass, replace
from tile_cuda import pair_choice
from tile_sim import checking


@dataclass(frozen=True, slots=True)
class Matmul:
    """A product of whole tensors, `m` x `n` to a block; `turned` tells of which factors."""

    m: int = 128
    n: int = 128
    k: int = 64
    shape: tuple[int, int, int] = (256, 128, 256)
    dtype: str = "float16"
    turned: tuple[bool, bool] = (False, False)
    stages: int = 2
    threads: int = 256
    cluster: tuple[int, ...] = (1, 2)
    out: str = "float32"
    tiles: int = 1  # to a block, one after the other along N
    panels: int = 1

    def kernel(self):
        m, n, k, tiles, panels = self.m, self.n, self.k, self.tiles, self.panels
        (M, N, K), (turns_a, turns_b) = self.shape, self.turned

        @T.prim_func
        def matmul(
            A: T.Tensor((K, M) if turns_a else (M, K), self.dtype),
            B: T.Tensor((K, N) if turns_b else (N, K), self.dtype),
            C: T.Tensor((M, N), self.out),
        ):
            with T.Kernel(
                T.ceildiv(N, n * tiles),
                T.ceildiv(M, m),
                threads=self.threads,
                cluster_dims=self.cluster,
            ) as (bx, by):
                a = T.alloc_shared((k, m) if turns_a else (m, k), self.dtype)
                b = T.alloc_shared((k, n) if turns_b else (n, k), self.dtype)
                c = T.alloc_fragment((m, n), "float32")
                T.use_swizzle(panels, enable=panels > 1)
                for t in T.serial(tiles):
                    T.clear(c)
                    for kk in T.Pipelined(T.ceildiv(K, k), num_stages=self.stages):
                        if turns_a:
                            T.copy(A[kk * k, by * m], a)
                        else:
                            T.copy(A[by * m, kk * k], a)
                        if turns_b:
                            T.copy(B[kk * k, (bx * tiles + t) * n], b)
                        else:
                            T.copy(B[(bx * tiles + t) * n, kk * k], b)
                        T.gemm(a, b, c, transpose_A=turns_a, transpose_B=not turns_b)
                    T.copy(c, C[by * m, (bx * tiles + t) * n])

        return matmul

    def check(self, host: PluginHost, arch: str = "sm_100a") -> None:
        """Compare the emulated kernel, which must be of pairs, with the exact result."""
        M, N, K = self.shape
        rng = np.random.default_rng(5)
        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        a, b = (rng.integers(-3, 4, (rows, K)).astype(dtype) for rows in (M, N))
        c = np.full((M, N), np.nan, np.float32)
        factors = (x.T.copy() if turns else x for x, turns in zip((a, b), self.turned, strict=True))
        tile.compile(self.kernel(), target=f"cuda:{arch}@sim")(*factors, c)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def printed(product: Matmul, host: PluginHost, arch: str = "sm_100a", **options) -> str:
    kernel = product.kernel()
    return tile.lower(kernel, target=f"cuda:{arch}", host=host, **options).kernel_source


PAIRS = [
    Matmul(),
    Matmul(stages=3, shape=(512, 256, 448), n=256, k=64),
    Matmul(turned=(True, True), n=64, threads=128, dtype="bfloat16"),
    Matmul(turned=(False, True), n=32, stages=6, k=32, shape=(256, 64, 512)),
    Matmul(m=256, n=96, shape=(512, 96, 256), dtype="float8_e4m3fn", k=128),
    Matmul(n=64, tiles=3, shape=(256, 192, 192), stages=3),
    Matmul(shape=(200, 100, 136), n=128),
]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", ["forward", "random:1", "random:2"])
@pytest.mark.parametrize("product", PAIRS, ids=str)
def test_pairs(product: Matmul, schedule: str, host: PluginHost) -> None:
    text = printed(product, host)
    assert "tcgen05_mma_pair<" in text
    assert "multicast" not in text
    with checking("all", schedule=schedule, async_mode="random" if ":" in schedule else "late"):
        product.check(host)


ALONE = {
    "along N": (Matmul(cluster=(2,), shape=(128, 256, 256)), "multicast", ""),
    "narrow": (Matmul(n=48, shape=(256, 48, 256)), "multicast", "not of multiples of 128 x 32"),
    "few rows": (Matmul(m=64, shape=(128, 128, 256)), "multicast", "products are of 64 x 128"),
    "no stages": (Matmul(stages=1), "", "there are no producers"),
}
"""Clusters of two whose blocks are no pairs: what is in the text, and what a remark tells."""


@pytest.mark.parametrize("case", ALONE, ids=str)
def test_blocks_are_alone(case: str, host: PluginHost) -> None:
    product, word, why = ALONE[case]
    kernel = tile.lower(product.kernel(), target="cuda:sm_100a", host=host)
    text = kernel.kernel_source
    assert "tcgen05_mma<" in text
    assert "_pair<" not in text
    assert word in text
    names = ("choose_pairs", "pair_blocks")
    told = [remark.message for name in names for remark in kernel.remarks("missed", name)]
    assert all(why in message for message in told)
    assert len(told) == bool(why)


WORTH = Matmul(shape=(2560, 128, 2048), cluster=(1, 1), stages=3)
"""A product whose blocks fill a Thor, and multiply for long enough."""


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("schedule", ["forward", "random:1"])
def test_pairs_that_nobody_asked_for(schedule: str, host: PluginHost) -> None:
    text = printed(WORTH, host, "sm_110a")
    assert "tcgen05_mma_pair<" in text
    assert "TILE_CLUSTER(1, 2, 1)" in text
    with checking("all", schedule=schedule, async_mode="random" if ":" in schedule else "late"):
        WORTH.check(host, "sm_110a")


NOT_WORTH = {
    "few blocks": (replace(WORTH, shape=(2304, 128, 2048)), "18 blocks leave some of 20"),
    "odd": (replace(WORTH, shape=(2688, 128, 2048)), "blocks along 'by' are not an even number"),
    "one row of blocks": (replace(WORTH, shape=(128, 2560, 2048)), "along 'by' are not an even"),
    "few rounds": (
        replace(WORTH, shape=(2560, 128, 1984)),
        "take some 7936 cycles, less than 8192",
    ),
    "narrow": (
        replace(WORTH, n=32, shape=(2560, 32, 8192)),
        "second factors are 4096 bytes of 20480 that are copied",
    ),
    "half rows": (replace(WORTH, m=64), "products are of 64 x 128, not of multiples of 128 x 32"),
    "panels": (
        replace(WORTH, shape=(2560, 256, 2048), panels=4),
        "the program has blocks in panels",
    ),
    "serial": (replace(WORTH, stages=1), ""),
}
"""Products whose blocks stay alone, and what is told."""


@pytest.mark.parametrize("case", NOT_WORTH, ids=str)
def test_pairs_that_would_not_pay(case: str, host: PluginHost) -> None:
    product, why = NOT_WORTH[case]
    kernel = tile.lower(product.kernel(), target="cuda:sm_110a", host=host)
    assert "tcgen05_mma<" in kernel.kernel_source
    assert "TILE_CLUSTER" not in kernel.kernel_source
    told = [remark.message for remark in kernel.remarks("missed", "choose_pairs")]
    assert len(told) == bool(why)
    assert all(why in message and "no pairs of blocks: " in message for message in told)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_90a", "sm_120a"])
def test_what_nobody_asks_for_is_not_chosen_elsewhere(arch: str, host: PluginHost) -> None:
    """A B200 has more multiprocessors than this has blocks; others have no pairs."""
    text = printed(WORTH, host, arch)
    assert "TILE_CLUSTER" not in text
    options = BuildOptions(skip=("choose_pairs",))
    skipped = print_program(lower(WORTH.kernel().kernel, f"cuda:{arch}", host, options).module)
    assert text == skipped.text


@pytest.mark.parametrize("arch", ["sm_90a", "sm_120a"])
def test_others_have_no_pairs(arch: str, host: PluginHost) -> None:
    product = Matmul() if arch == "sm_90a" else Matmul(cluster=(1, 1))
    assert "_pair<" not in printed(product, host, arch)


def test_the_choice_is_told_of(host: PluginHost) -> None:
    kernel = tile.lower(Matmul().kernel(), target="cuda:sm_100a", host=host)
    (told,) = kernel.remarks("passed", "pair_blocks")
    assert told.message.startswith("pairs of blocks share products")


def test_without_the_choice_blocks_share_copies(host: PluginHost) -> None:
    options = BuildOptions(skip=("choose_pairs",))
    text = print_program(lower(Matmul().kernel().kernel, "cuda:sm_100a", host, options).module).text
    assert "tma_load_multicast<" in text
    assert "_pair<" not in text


def test_estimates_know_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """All operations count once, tiles have all stages, and half of B is left to fetch."""
    product = Matmul(n=256, shape=(4096, 4096, 4096), dtype="bfloat16", stages=4, out="bfloat16")
    pairs = tile.estimate(product.kernel(), target="cuda:sm_100a")
    monkeypatch.setattr(pair_choice, "LEAST_CYCLES", 1 << 30)
    alone = tile.estimate(replace(product, cluster=(1, 1)).kernel(), target="cuda:sm_100a")
    assert pairs.total_flops == alone.total_flops
    assert pairs.notes == alone.notes
    assert pairs.milliseconds < 0.75 * alone.milliseconds


def test_more_tiles_than_four_have_more_barriers(host: PluginHost) -> None:
    """The first block may be as many products ahead of what the second knows as there are tiles."""
    text = printed(Matmul(n=32, stages=6, k=32, shape=(256, 64, 512)), host)
    assert re.search(r"products = tile::smem<tile::u64>\(\d+, 8\)", text)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
def test_machine_code(arch: str, host: PluginHost) -> None:
    """Four products of 256 x 256 a round, of which each block has copied 32 KiB.

    The descriptor says float32 sums, bfloat16 factors, N / 8 and M / 16 of the pair.
    """
    product = Matmul(
        n=256, shape=(4096, 4096, 4096), dtype="bfloat16", stages=6, out="bfloat16"
    )  # fmt: skip
    text = printed(product, host, arch)
    assert "mbarrier_arrive_expect_tx(a_full + a_filled_slot, 65536)" in text
    code = machine_code_of(text, Named(nvrtc_for(arch)), arch)
    found = Counter()
    for opcode, count in code.counts.items():
        found[re.match(r"\w+(\.2CTA|\.2D\.2CTA)?(\.MULTICAST)?", opcode)[0]] += count
    wanted = {"UTCHMMA.2CTA": 4, "UTCBAR.2CTA.MULTICAST": 1, "UTMALDG.2D.2CTA": 2, "UTCHMMA": 0}
    assert {name: found[name] for name in wanted} == wanted
    kind = 1 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 16 << 24
    assert f"{kind:#x}" in code.text
    assert code.spills == 0


def test_copies_of_every_rank(host: PluginHost) -> None:
    """Each tells the barrier of the even block: the bit of the odd one is cleared."""
    at = ["n", "tid", "3", "n + 1", "-2"]
    copies = [f"tile::tma_load_pair<{r}>(S, X, bar + n, {', '.join(at[:r])});" for r in range(1, 6)]
    hinted = "tile::tma_load_pair<2, tile::evict_first>(S, X, bar + n, n, 1);"
    text = (
        '#include "tile.h"\nTILE_KERNEL(128, 1) TILE_CLUSTER(2, 1, 1) void k(TILE_TENSOR_MAP(X), '
        "int n) {\nconst int tid = threadIdx.x;\n"
        "tile::sptr<tile::u64> bar = tile::smem<tile::u64>(0, 8);\n"
        "tile::sptr<half_t> S = tile::smem<half_t>(1024, 8192);\n"
        + "\n".join([*copies, hinted])
        + "\n}\n"
    )
    code = machine_code_of(text, Named(nvrtc_for("sm_100a")), "sm_100a")
    for rank in range(1, 6):
        assert code.counts[f"UTMALDG.{rank}D.2CTA"] == 1 + (rank == 2)
    assert code.ptx.count("cta_group::2.L2::cache_hint") == 1
    assert "SR_CgaCtaId" in code.text  # addresses have the number of the block
    assert "0xfefffff8" in code.text
