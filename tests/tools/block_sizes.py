"""Blocks of products against all others, by a simulator of caches: ``python -m tools.block_sizes``.

For each machine it prints the cycles that misses cost with the blocks that the model chooses, and
with the best of a sweep. No such machine is needed. Lines that follow each other come ahead of
their use, so a line from the second level costs what its transfer takes.
"""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

from tile_cpu.csource import find_compiler
from tile_cpu.gemm.macrokernel import plan_gemm, plan_steps
from tile_cpu.machine import MACHINES
from tile_cpu.passes.merge_gemm_blocks import MAX_SIDE

SOURCE = Path(__file__).parents[1] / "support" / "cache_simulator.c"

FURTHER = {  # MiB and ways of the last level, entries and ways of both address caches
    "haswell": (8, 16, 64, 4, 1024, 8),
    "znver2": (16, 16, 64, 64, 2048, 16),
    "znver3": (32, 16, 64, 64, 2048, 16),
    "znver5": (32, 16, 96, 96, 4096, 16),
    "skylake-avx512": (22, 11, 64, 4, 1536, 12),
    "sapphirerapids": (60, 15, 96, 6, 2048, 16),
    "neoverse-v2": (112, 14, 48, 48, 2048, 8),
}

CYCLES = (2, 14, 60, 7, 20)
"""What a miss costs: in the three caches, then in both address caches."""
TILE_CYCLES = 25
"""Around the inner loop of a register tile: sums are waited for, loaded and stored."""

SIZE = 640
DEPTHS, ROWS = (64, 128, 192, 256, 320, 384, 512), (48, 96, 192, 256, 384, 640)


@dataclass(frozen=True, slots=True)
class Blocks:
    """A register tile, and the rows and the depth of the blocks around it."""

    mr: int
    nr: int
    rows: int
    depth: int


@cache
def simulator() -> ctypes.CDLL:
    """Return the simulator, compiled."""
    with TemporaryDirectory() as folder:
        library = Path(folder, "simulator.so")
        command = [find_compiler(), "-O3", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(library))


def misses(machine: str, blocks: Blocks, size: int = SIZE) -> tuple[int, ...]:
    """Return the misses of each cache in a product of three square matrices."""
    row, (l3, l3_ways, *tlbs) = MACHINES[machine], FURTHER[machine]
    levels = (row.l1_bytes, row.l1_ways, row.l2_bytes, row.l2_ways, l3 << 20, l3_ways)
    facts = (ctypes.c_long * 10)(*levels, *tlbs)
    columns = 4096 // blocks.nr * blocks.nr
    tile = (blocks.mr, blocks.nr, blocks.rows, columns, blocks.depth)
    found = (ctypes.c_uint64 * 5)()
    simulator().count_misses(facts, (ctypes.c_long * 8)(size, size, size, *tile), found)
    return tuple(found)


def cycles(machine: str, blocks: Blocks, size: int = SIZE) -> float:
    """Return what the misses cost, and the register tiles that are begun."""
    found = misses(machine, blocks, size)
    tiles = ceil(size / blocks.mr) * ceil(size / blocks.nr) * ceil(size / blocks.depth)
    return sum(map(float.__mul__, map(float, CYCLES), map(float, found))) + TILE_CYCLES * tiles


def ours(machine: str, size: int = SIZE) -> Blocks:
    """Return the blocks that a large product runs in."""
    spec = plan_gemm(MACHINES[machine], "float32", "float32", "float32", 256, 256)
    mr = spec.tile.mr
    depth = int(plan_steps(spec, size, MAX_SIDE).step)
    return Blocks(mr, spec.panel_width, MAX_SIDE // mr * mr, depth)


def ratio(
    machine: str,
    depths: Sequence[int] = DEPTHS,
    rows: Sequence[int] = ROWS,
    size: int = SIZE,
) -> tuple[float, Blocks]:
    """Return by which factor our blocks cost more than the best ones, and those."""
    own = ours(machine, size)
    others = [
        Blocks(own.mr, own.nr, m // own.mr * own.mr, k) for k, m in itertools.product(depths, rows)
    ]
    with ThreadPoolExecutor() as pool:
        costs = list(pool.map(lambda blocks: cycles(machine, blocks, size), [own, *others]))
    best = min(costs)
    return costs[0] / best, [own, *others][costs.index(best)]


def rows_of_table() -> Iterator[str]:
    """Yield a row of text for each machine."""
    yield f"{'machine':<16} {'tile':>5} {'rows':>5} {'depth':>5}   best: rows depth   ratio"
    for machine in FURTHER:
        found, best = ratio(machine)
        own = ours(machine)
        tile = f"{own.mr}x{own.nr}"
        yield (
            f"{machine:<16} {tile:>5} {own.rows:>5} {own.depth:>5}"
            f" {best.rows:>12} {best.depth:>5} {found:>7.3f}"
        )


if __name__ == "__main__":
    for text in rows_of_table():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
