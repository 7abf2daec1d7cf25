"""What the autotuner finds of the best GEMM of this CPU: in 30 seconds, and by its model alone.

Every configuration is compiled and measured in turns first: the exhaustive search. Then the tuner
gets its time, and the model gets none. At last the three choices are measured in turns, and the
ratio is the time of the exhaustive search's choice over that of the other.

    python benchmarks/tuning.py                        one thread, 30 s
    python benchmarks/tuning.py --threads 2 --budget 60s
    python benchmarks/tuning.py --case 512x512x512
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

CASES = ("512x512x512", "1024x1024x256", "384x1536x384", "2048x128x512")
BLOCKS_M, BLOCKS_N, BLOCKS_K = (16, 32, 64, 128, 256), (16, 32, 64, 128, 256), (32, 64, 128)
THREADS = (128,)
BARS = {"budget": 0.95, "model": 0.85}
FINALISTS = 8


def configurations() -> list[dict[str, int]]:
    """Return all combinations of block shapes."""
    names = ("block_M", "block_N", "block_K", "threads")
    return [
        dict(zip(names, v, strict=True)) for v in product(BLOCKS_M, BLOCKS_N, BLOCKS_K, THREADS)
    ]


def tuned_matmul() -> Any:
    """Return the GEMM of the other benchmarks, tuned."""
    import tile_api as tile
    from kernels import matmul

    return tile.autotune(matmul, configs=configurations(), early_stop=True)


def arguments(case: str) -> dict[str, Any]:
    """Return what the GEMM is called with for ``MxNxK``."""
    m, n, k = map(int, case.split("x"))
    types = dict.fromkeys(("dtype", "out_dtype", "accum"), "float32")
    return {"M": m, "N": n, "K": k, **types, "stages": 2}


def exhaustive(gemm: Any, case: str, threads: int) -> tuple[dict[str, int], float]:
    """Return the best of all configurations, and the seconds it took to find it."""
    from measure import median_ms

    start = time.perf_counter()
    runs = {}
    for number, config in enumerate(configurations()):
        kernel = gemm.factory(**arguments(case), **config)
        runs[str(number)] = launch(kernel, case)
    first = median_ms(runs, threads, 5.0)
    best = sorted(runs, key=first.__getitem__)[:FINALISTS]
    again = median_ms({n: runs[n] for n in best}, threads, 5.0)
    chosen = min(again, key=again.__getitem__)
    return configurations()[int(chosen)], time.perf_counter() - start


def launch(kernel: Any, case: str) -> Any:
    """Return what runs a kernel on tensors of the case."""
    import numpy as np

    m, n, k = map(int, case.split("x"))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, s).astype(np.float32) for s in ((m, k), (k, n)))
    return kernel.raw(a, b, np.empty((m, n), np.float32))


def row(case: str, budget: str, threads: int) -> dict[str, Any]:
    """Return the configurations that each way chooses for a case, and their times."""
    from measure import median_ms

    gemm = tuned_matmul()
    best, took = exhaustive(gemm, case, threads)
    chosen: dict[str, Mapping[str, int]] = {"exhaustive": best}
    seconds = {"exhaustive": took}
    tried = 0
    for name, spelling in (("budget", budget), ("model", "model")):
        one = gemm.with_options(replace(gemm.options, budget=spelling))
        start = time.perf_counter()
        found = one.tune(**arguments(case))
        seconds[name] = time.perf_counter() - start
        chosen[name] = found.config.values
        tried = tried or sum(bool(c.outcome.visits) for c in found.candidates)
    runs = {n: launch(gemm.factory(**arguments(case), **c), case) for n, c in chosen.items()}
    return {"chosen": chosen, "ms": median_ms(runs, threads, 4.0), "s": seconds, "tried": tried}


def print_table(cases: Sequence[str], budget: str, threads: int) -> bool:
    """Print a row for each case; return whether all bars are reached."""
    total = len(configurations())
    print(f"{total} configurations, {threads} thread{'s' * (threads > 1)}, budget {budget}")
    print(f"{'case':<15}{'way':<12}{'ms':>8}{'ratio':>7}{'bar':>6}{'s':>7}  configuration")
    ratios: dict[str, list[float]] = {"budget": [], "model": []}
    for case in cases:
        found = row(case, budget, threads)
        for way, config in found["chosen"].items():
            ratio = found["ms"]["exhaustive"] / found["ms"][way]
            bar = BARS.get(way)
            told = " ".join(str(v) for v in list(config.values())[:3])
            if way == "budget":
                told += f"  ({found['tried']} of {total} measured)"
            flag = "!" if bar and ratio < bar else " "
            bar_text = f"{bar:.2f}" if bar else "-"
            print(
                f"{case:<15}{way:<12}{found['ms'][way]:8.3f}{ratio:7.3f}{flag}{bar_text:>5}"
                f"{found['s'][way]:7.1f}  {told}",
                flush=True,
            )
            if bar:
                ratios[way].append(ratio)
    for way, values in ratios.items():
        mean = statistics.geometric_mean(values)
        print(f"{way}: least {min(values):.3f}, geometric mean {mean:.3f}")
    return all(min(values) >= BARS[way] for way, values in ratios.items())


def main() -> int:
    """Print the table; 1 if a bar is not reached."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", metavar="MxNxK", help="instead of all")
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # before any library reads it
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TILE_TUNE_DIR": folder, "TILE_TUNE_AGAIN": "1", "TILE_TARGET": "cpu"}
        os.environ["TILE_CACHE_DIR"] = f"{folder}/cache"  # the tuner compiles all by itself
        from measure import set_threads

        set_threads(args.threads)
        return 0 if print_table(args.case or CASES, args.budget, args.threads) else 1


if __name__ == "__main__":
    sys.exit(main())
