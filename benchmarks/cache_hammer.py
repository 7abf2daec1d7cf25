"""Many processes on one cache, some of which die, while files in it are cut and overwritten.

    python benchmarks/cache_hammer.py                       # 8 processes, 60 s, real kernels
    python benchmarks/cache_hammer.py --bytes --seconds 3   # files of bytes in place of kernels

Each worker looks for a kernel, compiles and keeps it if it is not there, and checks what it
computes. Meanwhile workers are killed with SIGKILL and started anew, and files are truncated,
overwritten and removed. The cache is so small that kernels are evicted all the time. A wrong
result, a worker that ends by itself, a file that is neither a kernel nor will be removed by
pruning: each ends the run with status 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import tile_api as tile
from tile_api.disk_cache.atomic_write import ASIDE
from tile_api.disk_cache.entry import Entry
from tile_api.disk_cache.store import SUFFIX, DiskCache, disk_cache

DIFFERENT = 24
"""Kernels that workers choose from."""

LIMITS = {"kernels": 60_000, "bytes": 600_000}
"""What the cache may hold: about half of them."""

PAUSES = {"kernels": 2.0, "bytes": 0.02}
"""Seconds between two damaged files."""


def program(factor: int) -> Any:
    """Return a traced function that multiplies by `factor`."""
    import tile_api.language as T

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):  # type: ignore[valid-type,no-untyped-def]
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                B[i] = A[i] * factor + 64

    return main


def work_on_kernels(cache: DiskCache, seed: int) -> None:
    """Compile and run kernels until killed."""
    import numpy as np

    from tile_api.cache import default_cache

    chance = random.Random(seed)
    a = np.arange(64, dtype="int32")
    while True:
        factor = chance.randrange(DIFFERENT)
        default_cache().clear()
        kernel = tile.compile(program(factor), out_idx=[-1], target="cpu")
        if not (kernel(a) == a * factor + 64).all():
            sys.exit(3)
        say("hits" if set(kernel.phases_ms) == {"load"} else "compiled")


def say(word: str) -> None:
    """Write a word at once."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def work_on_bytes(cache: DiskCache, seed: int) -> None:
    """Keep and find entries of known bytes until killed."""
    chance = random.Random(seed)
    while True:
        number = chance.randrange(DIFFERENT)
        key = f"key {number}"
        digest = hashlib.sha256(key.encode()).hexdigest()
        code = random.Random(number).randbytes(20_000 + 3000 * number)
        entry = cache.find(digest, key)
        if entry is None:
            cache.keep(digest, Entry(key, f"k{number}", "cpu", 1.0, "{}", code))
        elif entry.code != code or entry.kernel != f"k{number}":
            sys.exit(3)
        say("compiled" if entry is None else "hits")


WORK: dict[str, Callable[[DiskCache, int], None]] = {
    "kernels": work_on_kernels,
    "bytes": work_on_bytes,
}


def be_a_worker(kind: str, seed: int, output: Path) -> None:
    """Work in a process of its own; what goes wrong is written beside `output`."""
    try:
        sys.stdout = open(output, "w")
        warnings.simplefilter("error")
        WORK[kind](disk_cache(), seed)
    except Exception:
        Path(f"{output}.err").write_text(traceback.format_exc())
        raise


class Workers:
    """Processes that work on one cache, and files of what each of them said.

    They are forked from this one, which has imported everything, so that none of the time is
    spent on imports.
    """

    def __init__(self, folder: Path, kind: str, chance: random.Random) -> None:
        self.folder, self.kind, self.chance = folder, kind, chance
        self.outputs: list[Path] = []
        self.alive: list[tuple[Any, Path]] = []
        self.failures: list[str] = []

    def start(self) -> None:
        """Start one more."""
        output = self.folder / f"worker-{len(self.outputs)}"
        output.touch()
        self.outputs.append(output)
        forked = multiprocessing.get_context("fork")
        arguments = (self.kind, self.chance.randrange(1 << 30), output)
        process = forked.Process(target=be_a_worker, args=arguments)
        process.start()
        self.alive.append((process, output))

    def kill_one(self) -> None:
        """Kill any of them that has begun to work, whatever it is doing."""
        begun = [p for p, output in self.alive if output.stat().st_size]
        if begun:
            self.chance.choice(begun).kill()

    def reap(self) -> int:
        """Return how many have ended; those that were not killed are failures."""
        ended = [(p, output) for p, output in self.alive if p.exitcode is not None]
        for process, output in ended:
            self.alive.remove((process, output))
            if process.exitcode != -signal.SIGKILL:
                reason = Path(f"{output}.err")
                told = reason.read_text()[-1000:] if reason.exists() else ""
                self.failures.append(f"a worker ended with {process.exitcode}: {told}")
        return len(ended)

    def stop(self) -> None:
        """Kill all."""
        self.reap()
        for process, _ in self.alive:
            process.kill()
            process.join()
        self.alive.clear()

    def said(self) -> Counter[str]:
        """Return how often each word was said."""
        return Counter(word for path in self.outputs for word in path.read_text().split())


def spoil(folder: Path, chance: random.Random) -> str:
    """Damage a file of the cache as a bad disk would; return how."""
    files = sorted(folder.glob(f"*{SUFFIX}"))
    how = chance.choice(["truncated", "overwritten", "removed"])
    with suppress(OSError, IndexError):
        path = chance.choice(files)
        if how == "removed":
            path.unlink()
            return how
        with open(path, "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if how == "truncated":
                file.truncate(chance.randrange(size))
            else:
                file.seek(chance.randrange(size))
                file.write(b"spoilt")
        return how
    return "missed"


def hammer(kind: str, seconds: float, processes: int, seed: int) -> dict[str, object]:
    """Run workers, kill and spoil for a while; return what happened."""
    chance = random.Random(seed)
    events: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="tile-hammer-") as name:
        folder = Path(name)
        os.environ["TILE_CACHE_DIR"] = str(folder / "cache")
        os.environ["TILE_CACHE_SIZE"] = str(LIMITS[kind])
        if kind == "kernels":
            tile.lower(program(0), target="cpu").kernel_source  # imports all that compiling needs
        workers = Workers(folder, kind, chance)
        for _ in range(processes):
            workers.start()
        while not workers.said() and not workers.failures:  # until somebody works
            time.sleep(0.05)
            workers.reap()
        end = time.monotonic() + seconds
        next_kill = next_damage = time.monotonic()
        while time.monotonic() < end and not workers.failures:
            time.sleep(0.02)
            if time.monotonic() >= next_damage:
                next_damage += PAUSES[kind]
                events[spoil(folder / "cache" / "kernels", chance)] += 1
            if time.monotonic() >= next_kill:
                next_kill += seconds / (4 * processes)
                workers.kill_one()
            for _ in range(workers.reap()):
                events["killed"] += 1
                workers.start()
        workers.stop()
        cache = DiskCache(folder / "cache", LIMITS[kind])
        aside = len([*cache.folder.glob(f".*{ASIDE}")])
        cache.prune()
        left = [p.name for p in cache.folder.iterdir() if p.suffix != SUFFIX]
        if left:
            workers.failures.append(f"files are left over: {left}")
        return {
            **dict(sorted((workers.said() + events).items())),
            "abandoned and pruned": aside,
            "failures": workers.failures,
        }


def main() -> int:
    """Read the arguments, run, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bytes", action="store_true", help="files of bytes, no kernels")
    args = parser.parse_args()
    kind = "bytes" if args.bytes else "kernels"
    told = hammer(kind, args.seconds, args.processes, args.seed)
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    return 1 if told["failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
