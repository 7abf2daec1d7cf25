"""What the autotuner finds of the best GEMM of this CPU: in 30 seconds, and by its model alone.

Every configuration is compiled and measured in turns first: the exhaustive search; those that
become the same program count once. Then the tuner gets its time, and the model gets none. At last
the three choices are measured in turns, and the ratio is the time of the exhaustive search's choice
over that of the other.

    python benchmarks/tuning.py                        one thread, 30 s
    python benchmarks/tuning.py --threads 2 --budget 60s
    python benchmarks/tuning.py dynamic                cases whose name begins so
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

BLOCKS = (16, 32, 64, 128, 256), (32, 64, 128, 256), (32, 128)
BARS = {"budget": 0.95, "model": 0.85}
FINALISTS = 8


@dataclass(frozen=True, slots=True)
class Case:
    """One GEMM at one size.

    Parameters
    ----------
    make
        Returns the traced function of block shapes.
    shapes
        Of all parameters in order, the output last.
    sizes
        Values of symbols.
    """

    name: str
    make: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    sizes: Mapping[str, int] = field(default_factory=dict)


def cases() -> list[Case]:
    """Return products of fixed sizes, of all sizes at once, and with more behind them."""
    from ranking import dynamic_matmul, matmul_bias_gelu

    from kernels import matmul

    def fixed(*blocks: int) -> Any:
        return matmul.get_tir(512, 512, 512, *blocks, "float32", "float32", "float32")

    def with_gelu(*blocks: int) -> Any:
        return matmul_bias_gelu(512, 768, 512, *blocks)

    found = [Case("fixed 512x512x512", fixed, ((512, 512),) * 3)]
    for m, n, k in ((512, 512, 512), (333, 777, 555), (64, 2048, 2048)):
        shapes = ((m, k), (k, n), (m, n))
        sizes = {"m": m, "n": n, "k": k}
        found.append(Case(f"dynamic {m}x{n}x{k}", dynamic_matmul, shapes, sizes))
    shapes = ((512, 512), (512, 768), (768,), (512, 768))
    return [*found, Case("gelu 512x768x512", with_gelu, shapes)]


def configurations() -> list[dict[str, int]]:
    """Return all combinations of block shapes."""
    names = ("block_M", "block_N", "block_K")
    return [dict(zip(names, v, strict=True)) for v in product(*BLOCKS)]


def tuned(case: Case) -> Any:
    """Return the GEMM of a case, to be tuned."""
    import tile_api as tile

    def gemm(block_M: int, block_N: int, block_K: int) -> Any:
        return case.make(block_M, block_N, block_K)

    factory = tile.jit(gemm, target="cpu", out_idx=[-1])
    named = {"key": lambda given: case.name, "sizes": case.sizes}
    return tile.autotune(factory, configs=configurations(), **named)


def exhaustive(gemm: Any, case: Case, threads: int) -> tuple[dict[str, int], int]:
    """Return the best of all configurations, and how many programs they become."""
    from measure import median_ms

    from tile_api.autotuner.ranking import program_of

    programs: dict[str, int] = {}
    for number, config in enumerate(configurations()):
        programs.setdefault(program_of(gemm.factory.get_tir(**config), "cpu", {}), number)
    runs = {
        str(n): launch(gemm.factory(**configurations()[n]), case.shapes) for n in programs.values()
    }
    first = median_ms(runs, threads, 5.0)
    best = sorted(runs, key=first.__getitem__)[:FINALISTS]
    again = median_ms({n: runs[n] for n in best}, threads, 5.0)
    chosen = min(again, key=again.__getitem__)
    return configurations()[int(chosen)], len(programs)


def launch(kernel: Any, shapes: Sequence[tuple[int, ...]]) -> Callable[[], object]:
    """Return what runs a kernel on whole numbers."""
    import numpy as np

    rng = np.random.default_rng(0)
    tensors = [rng.integers(-2, 3, shape).astype(np.float32) for shape in shapes]
    run: Callable[[], object] = kernel.raw(*tensors)
    return run


@dataclass(frozen=True, slots=True)
class Found:
    """What each way chose for a case: configuration, seconds it took, and milliseconds."""

    chosen: dict[str, Mapping[str, int]]
    seconds: dict[str, float]
    ms: Mapping[str, float]
    programs: int
    tried: int


def found_for(case: Case, budget: str, threads: int) -> Found:
    """Let each way choose, and measure the choices in turns."""
    from measure import median_ms

    gemm = tuned(case)
    start = time.perf_counter()
    best, programs = exhaustive(gemm, case, threads)
    chosen: dict[str, Mapping[str, int]] = {"exhaustive": best}
    seconds = {"exhaustive": time.perf_counter() - start}
    tried = 0
    for name, spelling in (("budget", budget), ("model", "model")):
        start = time.perf_counter()
        result = gemm.with_options(replace(gemm.options, budget=spelling)).tune()
        seconds[name] = time.perf_counter() - start
        chosen[name] = result.config.values
        tried = tried or sum(bool(c.outcome.visits) for c in result.candidates)
    runs = {name: launch(gemm.factory(**c), case.shapes) for name, c in chosen.items()}
    return Found(chosen, seconds, median_ms(runs, threads, 4.0), programs, tried)


def print_table(wanted: str, budget: str, threads: int) -> bool:
    """Print the rows of each case; return whether all bars are reached."""
    total = len(configurations())
    print(f"{total} configurations, {threads} thread{'s' * (threads > 1)}, budget {budget}")
    print(f"{'case':<22}{'way':<12}{'ms':>8}{'ratio':>7}{'bar':>6}{'s':>7}  configuration")
    ratios: dict[str, list[float]] = {"budget": [], "model": []}
    for case in cases():
        if not case.name.startswith(wanted):
            continue
        found = found_for(case, budget, threads)
        for way, config in found.chosen.items():
            ratio, bar = found.ms["exhaustive"] / found.ms[way], BARS.get(way, 0.0)
            told = "x".join(map(str, config.values()))
            told += f" of {found.programs} programs" if way == "exhaustive" else ""
            told += f", {found.tried} configurations measured" if way == "budget" else ""
            print(
                f"{case.name:<22}{way:<12}{found.ms[way]:8.3f}{ratio:7.3f}"
                f"{'!' if ratio < bar else ' '}{bar or '-':>5}{found.seconds[way]:7.1f}  {told}",
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
    parser.add_argument("case", nargs="?", default="", help="cases whose name begins so")
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # before any library reads it
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TILE_TUNE_DIR": folder, "TILE_TUNE_AGAIN": "1", "TILE_TARGET": "cpu"}
        os.environ["TILE_CACHE_DIR"] = f"{folder}/cache"
        from measure import set_threads

        set_threads(args.threads)
        return 0 if print_table(args.case, args.budget, args.threads) else 1


if __name__ == "__main__":
    sys.exit(main())
