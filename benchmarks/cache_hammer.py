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
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tile_api.disk_cache.entry import Entry
from tile_api.disk_cache.store import ASIDE, SUFFIX, DiskCache

DIFFERENT = 24
"""Kernels that workers choose from."""

LIMITS = {"kernels": 60_000, "bytes": 600_000}
"""What the cache may hold: about half of them."""


def work_on_kernels(cache: DiskCache, seed: int) -> None:
    """Compile and run kernels until killed."""
    import numpy as np

    import tile_api as tile
    import tile_api.language as T
    from tile_api.cache import default_cache

    @tile.jit(out_idx=[-1], target="cpu")
    def scaled(n: int, factor: int):  # type: ignore[no-untyped-def]
        @T.prim_func
        def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):  # type: ignore[valid-type,no-untyped-def]
            with T.Kernel(1, threads=32):
                for i in T.Parallel(n):
                    B[i] = A[i] * factor + n

        return main

    chance = random.Random(seed)
    a = np.arange(64, dtype="int32")
    while True:
        factor = chance.randrange(DIFFERENT)
        default_cache().clear()
        program = scaled.get_tir(64, factor)
        kernel = tile.compile(program, out_idx=[-1], target="cpu")
        if not (kernel(a) == a * factor + 64).all():
            sys.exit(3)
        how = "hits" if set(kernel.phases_ms) == {"load"} else "compiled"
        sys.stdout.write(f"{how}\n")
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
        sys.stdout.write("compiled\n" if entry is None else "hits\n")
        sys.stdout.flush()


class Workers:
    """Processes that work on one cache, and files of what each of them said."""

    def __init__(self, folder: Path, kind: str, chance: random.Random) -> None:
        self.folder, self.kind, self.chance = folder, kind, chance
        self.outputs: list[Path] = []
        self.alive: list[tuple[subprocess.Popen[bytes], Path]] = []
        self.failures: list[str] = []

    def start(self) -> None:
        """Start one more."""
        output = self.folder / f"worker-{len(self.outputs)}"
        self.outputs.append(output)
        environment = os.environ | {
            "TILE_CACHE_DIR": str(self.folder / "cache"),
            "TILE_CACHE_SIZE": str(LIMITS[self.kind]),
            "PYTHONWARNINGS": "error",
        }
        command = [sys.executable, __file__, f"--worker={self.kind}"]
        command.append(f"--seed={self.chance.randrange(1 << 30)}")
        with open(output, "wb") as out, open(f"{output}.err", "wb") as err:
            process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        self.alive.append((process, output))

    def kill_one(self) -> None:
        """Kill any of them that has begun to work, whatever it is doing."""
        begun = [p for p, output in self.alive if output.stat().st_size]
        if begun:
            self.chance.choice(begun).send_signal(signal.SIGKILL)

    def reap(self) -> int:
        """Return how many have ended; those that were not killed are failures."""
        ended = [(p, output) for p, output in self.alive if p.poll() is not None]
        for process, output in ended:
            self.alive.remove((process, output))
            if process.returncode != -signal.SIGKILL:
                told = Path(f"{output}.err").read_text()[-800:]
                self.failures.append(f"a worker ended with {process.returncode}: {told}")
        return len(ended)

    def stop(self) -> None:
        """Kill all."""
        self.reap()
        for process, _ in self.alive:
            process.kill()
            process.wait()
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
        workers = Workers(folder, kind, chance)
        for _ in range(processes):
            workers.start()
        while not workers.said() and not workers.failures:  # until somebody works
            time.sleep(0.05)
            workers.reap()
        end = time.monotonic() + seconds
        next_kill = time.monotonic()
        while time.monotonic() < end and not workers.failures:
            time.sleep(0.02)
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
    parser.add_argument("--worker", choices=sorted(LIMITS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        cache = DiskCache(Path(os.environ["TILE_CACHE_DIR"]), LIMITS[args.worker])
        (work_on_bytes if args.worker == "bytes" else work_on_kernels)(cache, args.seed)
    kind = "bytes" if args.bytes else "kernels"
    told = hammer(kind, args.seconds, args.processes, args.seed)
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    return 1 if told["failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
