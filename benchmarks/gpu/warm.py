"""Compiles TileLang's kernels into its cache, several at a time, beside the first measurements."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

from problems import all_problems


def warm(name: str) -> str:
    """Compile the kernels of a problem; return what went wrong."""
    try:
        import peers_tilelang

        problem = next(p for p in all_problems() if p.name == name)
        for kernel in peers_tilelang.kernels_of(problem.family, problem.sizes):
            kernel()
    except Exception as error:  # the run tells of it
        return f"{name}: {type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Compile for all problems, the most important first."""
    names = [p.name for p in all_problems()]
    with ProcessPoolExecutor(max(1, min(8, (os.cpu_count() or 2) // 2))) as pool:
        for words in pool.map(warm, names):
            if words:
                print(words)


if __name__ == "__main__":
    main()
