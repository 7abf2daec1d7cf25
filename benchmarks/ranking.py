"""How well the cost model ranks configurations of kernels on this CPU, before any is run.

Each case is one kernel at one size, in many configurations. All of them are measured in turns;
the model orders them without. Printed are Spearman's rank correlation, and what the model's
choice reaches of the best: the best time over that of the choice. Configurations that become
the same program count once: their times differ by noise alone.

    python benchmarks/ranking.py                    all cases on one thread
    python benchmarks/ranking.py gemm --threads 2   cases whose name begins so
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import Run, set_threads, wait_for_idle_workers

import tile_api as tile
import tile_api.language as T
from kernels import add, attention, gelu, matmul, softmax

Config = tuple[int, ...]
BAR = 0.85
"""What the model's choice shall reach of the best GEMM."""

ROUNDS, SHARE_S = 9, 0.6


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel at one size.

    Parameters
    ----------
    make
        Returns the traced function of a configuration.
    args
        All parameters in order, outputs too.
    sizes
        Values of symbols.
    """

    name: str
    configs: Sequence[Config]
    make: Callable[..., Any]
    args: tuple[Any, ...]
    sizes: Mapping[str, int]


def dynamic_matmul(block_M: int, block_N: int, block_K: int, dtype: str = "float32") -> Any:
    """C = A B for all sizes: nothing is known that blocks could be merged by."""
    m, n, k = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(T.ceildiv(n, block_N), T.ceildiv(m, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for step in T.Pipelined(T.ceildiv(k, block_K), num_stages=3):
                T.copy(A[by * block_M, step * block_K], A_shared)
                T.copy(B[step * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def matmul_bias_gelu(
    M: int, N: int, K: int, block_M: int, block_N: int, block_K: int, dtype: str = "float32"
) -> Any:
    """C = gelu(A B + bias)."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        bias: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for step in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, step * block_K], A_shared)
                T.copy(B[step * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                x = C_local[i, j] + bias[bx * block_N + j]
                C_local[i, j] = 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


GEMM_TILES = tuple(product((16, 32, 64, 128, 256), (32, 64, 128, 256), (32, 128)))


def _numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def gemm_cases() -> Iterator[Case]:
    """Products of several sizes: fixed, for all sizes at once, and with more behind them."""
    fixed = ((512, 512, 512), (1024, 1024, 1024), (333, 777, 555), (64, 2048, 2048))
    for m, n, k in fixed:
        args = (_numbers(m, k), _numbers(k, n), torch.empty(m, n))

        def make(*tiles: int, size: Config = (m, n, k)) -> Any:
            return matmul.get_tir(*size, *tiles, "float32", "float32", "float32")

        yield Case(f"gemm fixed {m}x{n}x{k}", GEMM_TILES, make, args, {})
    for m, n, k in (*fixed, (2048, 256, 512), (200, 3000, 600), (768, 768, 1536)):
        args = (_numbers(m, k), _numbers(k, n), torch.empty(m, n))
        sizes = {"m": m, "n": n, "k": k}
        yield Case(f"gemm dynamic {m}x{n}x{k}", GEMM_TILES, dynamic_matmul, args, sizes)
    for dtype in ("float32", "bfloat16"):
        m, n, k = 512, 768, 512
        kind = getattr(torch, dtype)
        args = (_numbers(m, k, dtype=kind), _numbers(k, n, dtype=kind), _numbers(n))
        args = (*args, torch.empty(m, n))

        def with_gelu(*tiles: int, dtype: str = dtype) -> Any:
            return matmul_bias_gelu(512, 768, 512, *tiles, dtype)

        yield Case(f"gemm {dtype} + bias + gelu", GEMM_TILES, with_gelu, args, {})


def attention_cases() -> Iterator[Case]:
    """Flash attention with all pairs of block sizes."""
    blocks = tuple(product((16, 32, 64, 128, 256), repeat=2))
    for dim, causal in ((64, False), (64, True), (128, False)):
        q, k, v = (_numbers(1, 4, 512, dim) for _ in range(3))

        def make(*b: int, dim: int = dim, causal: bool = causal) -> Any:
            return attention.get_tir(4, 512, dim, "float32", *b, causal=causal)

        name = f"attention {dim}{' causal' * causal}"
        yield Case(name, blocks, make, (q, k, v, torch.empty_like(q)), {})


def row_cases() -> Iterator[Case]:
    """Rows and elements: block sizes that are too small, too large, and in between."""
    blocks = tuple((2**b,) for b in range(9))
    for rows, columns in ((4096, 256), (1024, 4096), (8192, 64)):
        x = _numbers(rows, columns)

        def make(block: int, size: Config = (rows, columns)) -> Any:
            return softmax.get_tir(*size, block)

        yield Case(f"softmax {rows}x{columns}", blocks, make, (x, torch.empty_like(x)), {})
    sizes = tuple((2**b,) for b in range(8, 21, 2))
    for n in (1 << 16, 1 << 22):
        x = _numbers(n)

        def added(block: int, n: int = n) -> Any:
            return add.get_tir(n, block)

        def activated(block: int, n: int = n) -> Any:
            return gelu.get_tir(n, block)

        fits = tuple(s for s in sizes if s[0] <= n)
        yield Case(f"add {n}", fits, added, (x, x, torch.empty_like(x)), {})
        yield Case(f"gelu {n}", fits, activated, (x, torch.empty_like(x)), {})


def measured_ms(runs: Mapping[Config, Run], threads: int) -> dict[Config, float]:
    """Return the least milliseconds of each run; all take turns, so that drift is shared."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    best = dict.fromkeys(runs, float("inf"))
    repeats = {}
    for config, run in runs.items():
        start = clock()
        run()
        repeats[config] = max(1, min(20, int(2e-3 / (clock() - start + 1e-9))))
    deadline, rounds = time.perf_counter() + SHARE_S * len(runs), 0
    while rounds < ROUNDS and (rounds < 3 or time.perf_counter() < deadline):
        rounds += 1
        for config, run in runs.items():
            if threads > 1:
                wait_for_idle_workers()
            run()
            start = clock()
            for _ in range(repeats[config]):
                run()
            best[config] = min(best[config], (clock() - start) / repeats[config] * 1e3)
    return best


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the correlation of ranks; equal values share their mean rank."""
    return float(np.corrcoef(_ranks(x), _ranks(y))[0, 1]) if len(set(y)) > 1 else 0.0


def _ranks(values: Sequence[float]) -> np.ndarray[Any, Any]:
    array = np.asarray(values)
    return (array[:, None] > array).sum(1) + ((array[:, None] == array).sum(1) - 1) / 2


def compare(case: Case, threads: int, known: dict[str, float]) -> str:
    """Measure and rank one case; return its line of the table."""
    programs: dict[str, Config] = {}
    runs: dict[Config, Run] = {}
    told: dict[Config, float] = {}
    seconds = 0.0
    for config in case.configs:
        func = case.make(*config)
        start = time.perf_counter()
        told[config] = tile.estimate(func, "cpu", **case.sizes).milliseconds
        seconds += time.perf_counter() - start
        key = f"{case.name}|{config}"
        if known and key not in known:
            continue
        if not known:
            kernel = tile.compile(func, target="cpu")
            text = kernel.ir("planned")
            if text in programs:
                continue
            programs[text] = config
            runs[config] = kernel.raw(*case.args)
        else:
            runs[config] = lambda: None
    found = {c: known[f"{case.name}|{c}"] for c in runs} if known else measured_ms(runs, threads)
    for config, ms in found.items():
        known.setdefault(f"{case.name}|{config}", ms)
    order = [*found]
    best, pick = min(found.values()), min(order, key=lambda c: told[c])
    ratios = [told[c] / found[c] for c in order]
    return (
        f"{case.name:<28} {len(case.configs):>4} {len(order):>4} "
        f"{max(found.values()) / best:6.2f} "
        f"{spearman([found[c] for c in order], [told[c] for c in order]):7.2f} "
        f"{best / found[pick]:7.2f} {float(np.median(ratios)):7.2f} "
        f"{seconds / len(case.configs) * 1e3:6.0f}  {'x'.join(map(str, pick))}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="beginnings of names of cases")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--times", type=Path, help="keep what was measured, and use it again")
    given = parser.parse_args()
    set_threads(given.threads)
    known: dict[str, float] = {}
    if given.times and given.times.exists():
        known = json.loads(given.times.read_text())
    print(
        f"{'case':<28} {'all':>4} {'own':>4} {'spread':>6} {'rank':>7} {'choice':>7} "
        f"{'model/t':>7} {'ms':>6}  choice"
    )
    measured: dict[str, float] = {}
    for case in (*gemm_cases(), *attention_cases(), *row_cases()):
        if given.only and not case.name.startswith(tuple(given.only)):
            continue
        mine = {k: v for k, v in known.items() if k.startswith(f"{case.name}|")}
        print(compare(case, given.threads, mine), flush=True)
        measured |= mine
        if given.times:
            given.times.write_text(json.dumps(known | measured))


if __name__ == "__main__":
    main()
