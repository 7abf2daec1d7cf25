"""Kernels across ranks against collectives, then kernels: ``python benchmarks/ranks.py [RANKS]``.

Each rank is a process with one thread. `gloo` moves data by torch's collective, `copied` through
the same shared memory as ours: a barrier, copies by NumPy or the sums of its slices, a barrier.
Both then run the same kernel on what they have gathered, or before they scatter it. Contenders take
turns; a time is that of the best round, of the rank that took longest in it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import tile_api as tile
from kernels import matmul

EXAMPLES = Path(__file__).parents[1] / "examples" / "ranks"
SECONDS, FEWEST = 12.0, 15
"""How long a row of the table is measured, and the fewest rounds."""

Contenders = dict[str, Callable[[], object]]


def example(name: str) -> Any:
    """Import an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def whole_numbers(seed: int, *shape: int) -> Any:
    """Return small numbers, whose sums are exact."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype("float32")


def product(M: int, N: int, K: int) -> Any:
    """Return a kernel that multiplies matrices which one rank has."""
    return tile.compile(matmul.get_tir(M, N, K, 64, 64, 32, *["float32"] * 3), target="cpu")


def gather_gemm(ranks: Any, rows: int, N: int, K: int) -> tuple[Contenders, Callable[[], Any]]:
    """All-gather + GEMM."""
    size = ranks.size
    gemm = example("gather_gemm").gather_gemm
    A, b = ranks.zeros((rows, K)), whole_numbers(99, K, N)
    A.local[:] = whole_numbers(ranks.rank, rows, K)
    ours = gemm(size, rows, N, K)
    whole, c = np.zeros((size * rows, K), "float32"), np.zeros((size, rows, N), "float32")
    plain, d = product(size * rows, N, K), c.reshape(size * rows, N)
    targets = torch.from_numpy(whole), torch.from_numpy(A.local)

    def by_gloo() -> None:
        dist.all_gather_into_tensor(*targets)
        plain(whole, b, d)

    def by_copies() -> None:
        ranks.barrier()
        np.copyto(whole.reshape(size, rows, K), A.everyone)
        ranks.barrier()
        plain(whole, b, d)

    runs = {"ours": lambda: ours(A, b, c), "gloo": by_gloo, "copied": by_copies}
    return runs, lambda: c


def gemm_scatter(ranks: Any, rows: int, N: int, K: int) -> tuple[Contenders, Callable[[], Any]]:
    """GEMM + reduce-scatter."""
    size, block_M, block_N = ranks.size, min(256, rows), min(256, N)
    a, b = whole_numbers(ranks.rank, size, rows, K), whole_numbers(9 + ranks.rank, K, N)
    ours = example("gemm_scatter").gemm_scatter(size, rows, N, K, block_M, block_N)
    sums = ranks.zeros((size, rows, N))
    arrived = ranks.signals(-(-rows // block_M) * -(-N // block_N))
    whole, plain = a.reshape(size * rows, K), product(size * rows, N, K)
    parts, c = ranks.zeros((size, rows, N)), np.zeros((rows, N), "float32")
    flat, total = parts.local.reshape(size * rows, N), torch.from_numpy(c)
    given = torch.from_numpy(flat)

    def by_gloo() -> None:
        plain(whole, b, flat)
        dist.reduce_scatter_tensor(total, given)

    def by_copies() -> None:
        plain(whole, b, flat)
        ranks.barrier()
        np.copyto(c, parts.at(0)[ranks.rank])
        for peer in range(1, size):
            np.add(c, parts.at(peer)[ranks.rank], out=c)
        ranks.barrier()

    runs = {"ours": lambda: ours(a, b, c, sums, arrived), "gloo": by_gloo, "copied": by_copies}
    return runs, lambda: c


def all_reduce(ranks: Any, n: int) -> tuple[Contenders, Callable[[], Any]]:
    """All-reduce of a vector, into another one."""
    x, y = ranks.zeros(n), np.zeros(n, "float32")
    mine = whole_numbers(ranks.rank, n)
    x.local[:] = mine
    kernels = example("all_reduce")
    one, two = kernels.one_shot(ranks.size, n), kernels.two_shot(ranks.size, n)
    z, t = ranks.zeros(n), torch.from_numpy(y)

    def in_two() -> None:
        np.copyto(z.local, mine)
        two(z)
        np.copyto(y, z.local)

    def by_gloo() -> None:
        np.copyto(y, mine)
        dist.all_reduce(t)

    def by_copies() -> None:
        ranks.barrier()
        np.add(x.at(0), x.at(1), out=y) if ranks.size > 1 else np.copyto(y, x.local)
        for peer in range(2, ranks.size):
            np.add(y, x.at(peer), out=y)
        ranks.barrier()

    runs = {"ours": lambda: one(x, y), "two shots": in_two, "gloo": by_gloo, "copied": by_copies}
    return runs, lambda: y


def attention(ranks: Any, rows: int, D: int) -> tuple[Contenders, Callable[[], Any]]:
    """Context-parallel attention."""
    size, kernel = ranks.size, example("context_parallel_attention").context_parallel_attention
    q, k, v = (whole_numbers(7 * ranks.rank + i, rows, D) for i in range(3))
    K, V, o = ranks.zeros((rows, D)), ranks.zeros((rows, D)), np.zeros_like(q)
    K.local[:], V.local[:] = k, v
    ours = kernel(size, rows, D)
    alone = tile.ranks.in_threads(1, lambda one: one)[0]
    all_K, all_V = alone.zeros((size * rows, D)), alone.zeros((size * rows, D))
    plain = kernel(1, rows, D, keys=size * rows)
    pairs = [(all_K, K), (all_V, V)]

    def by_gloo() -> None:
        for whole, own in pairs:
            dist.all_gather_into_tensor(torch.from_numpy(whole.local), torch.from_numpy(own.local))
        plain(q, all_K, all_V, o)

    def by_copies() -> None:
        ranks.barrier()
        for whole, own in pairs:
            np.copyto(whole.local.reshape(size, rows, D), own.everyone)
        ranks.barrier()
        plain(q, all_K, all_V, o)

    runs = {"ours": lambda: ours(q, K, V, o), "gloo": by_gloo, "copied": by_copies}
    return runs, lambda: o


ROWS: dict[str, Callable[[Any], tuple[Contenders, Callable[[], Any]]]] = {
    "all-gather + GEMM, 1024 x 1024 x 1024": lambda r: gather_gemm(r, 1024 // r.size, 1024, 1024),
    "all-gather + GEMM, 2048 x 64 x 2048": lambda r: gather_gemm(r, 2048 // r.size, 64, 2048),
    "GEMM + reduce-scatter, 1024 x 1024 x 1024": lambda r: gemm_scatter(
        r, 1024 // r.size, 1024, 1024
    ),
    "GEMM + reduce-scatter, 2048 x 2048 x 64": lambda r: gemm_scatter(r, 2048 // r.size, 2048, 64),
    "all-reduce, 16 Ki": lambda r: all_reduce(r, 1 << 14),
    "all-reduce, 4 Mi": lambda r: all_reduce(r, 1 << 22),
    "attention, 2048 tokens, 64 features": lambda r: attention(r, 2048 // r.size, 64),
}


def measured(ranks: Any, runs: Contenders, result: Callable[[], Any]) -> dict[str, float]:
    """Return seconds of each contender, after their results were compared."""
    found = {}
    for name, run in runs.items():
        result()[:] = np.nan
        run()
        found[name] = result().copy()
    for name, value in found.items():
        np.testing.assert_allclose(value, found["ours"], rtol=1e-5, atol=1e-5, err_msg=name)
    times: dict[str, list[float]] = {name: [] for name in runs}
    is_over, start = ranks.zeros(1), time.perf_counter()
    while not is_over.at(0)[0]:
        for name, run in runs.items():
            ranks.barrier()
            before = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - before)
        enough = len(times["ours"]) >= FEWEST and time.perf_counter() - start > SECONDS
        ranks.barrier()
        is_over.local[0] = enough  # rank 0 decides
        ranks.barrier()
    told: list[Any] = [None] * ranks.size
    dist.all_gather_object(told, times)
    return {name: min(map(max, zip(*(one[name] for one in told)))) for name in runs}  # noqa: B905


def main(place: str, rank: int, size: int) -> None:
    """Measure all rows; rank 0 prints them."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{place}/store", rank=rank, world_size=size)
    ranks = tile.ranks.join(timeout=120)
    if rank == 0:
        print(f"{size} ranks of one thread; ms, and how often ours that is")
    for name, make in ROWS.items():
        times = measured(ranks, *make(ranks))
        if rank == 0:
            ours = times["ours"]
            cells = (f"{who} {t * 1e3:8.3f} ({t / ours:5.2f})" for who, t in times.items())
            print(f"{name:45}", "  ".join(cells), flush=True)
    if rank == 0:
        print(json.dumps({"load": os.getloadavg()}))


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        context = get_context("spawn")
        processes = [context.Process(target=main, args=(folder, r, count)) for r in range(count)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
