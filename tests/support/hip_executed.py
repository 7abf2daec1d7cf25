"""Small kernels against the device header of HIP, compiled and run instruction by instruction."""

from __future__ import annotations

import numpy as np

from support.hip_header import POINTERS, assembly
from tile_sim.gfx9 import WaveReport, run

THREADS = 128


def executed(
    arch: str,
    body: str,
    n: int = 0,
    *,
    shared_bytes: int = 0,
    threads: int = THREADS,
    seed: int | None = None,
    **arrays: np.ndarray,
) -> WaveReport:
    """Run one block of the kernel with `body`; `arrays` are changed in place.

    Parameters
    ----------
    n
        The kernel's last argument.
    arrays
        By the names of `support.hip_header.POINTERS`; the others are no buffers.
    """
    arguments = [arrays.get(name) for name in POINTERS.values()]
    text = assembly(arch, body)
    return run(
        text, "k0", grid=1, block=threads, arguments=[*arguments, n], shared_bytes=shared_bytes,
        seed=seed,
    )  # fmt: skip
