"""Arguments of generated programs: seeded, and at the edges of memory that nobody may touch."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from fuzz.elements import ELEMENTS
from fuzz.program import Program

PAGE = mmap.PAGESIZE


def argument(
    seed: int, position: int, shape: tuple[int, ...], dtype: str, low: int, high: int, output: bool
) -> np.ndarray:
    """Return an argument as memory holds it: whole numbers, or poison for an output."""
    element = ELEMENTS[dtype]
    if output:
        made = np.empty(element.shape_in_memory(shape), element.in_memory)
        made.view(np.uint8)[...] = 0x3D
        return made
    rng = np.random.default_rng([seed, position])
    return element.pack(rng.integers(low, high, shape, dtype=np.int64, endpoint=True))


def arguments(program: Program) -> list[np.ndarray]:
    """Return the tensors of a program, before it runs."""
    return [
        argument(program.seed, n, t.shape, t.dtype, t.low, t.high, t.output)
        for n, t in enumerate(program.tensors)
    ]


def guarded(array: np.ndarray, *, at_end: bool) -> np.ndarray:
    """Return a copy whose first byte, or last one, has a page beside it that cannot be touched.

    The pages are given back with the copy.
    """
    size = array.nbytes
    pages = -(-size // PAGE) or 1
    memory = mmap.mmap(-1, (pages + 2) * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (address, address + (pages + 1) * PAGE):
        if _mprotect(page, PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = PAGE + (pages * PAGE - size if at_end else 0)
    made = np.frombuffer(memory, np.uint8, size, offset).view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


_mprotect = ctypes.CDLL(None, use_errno=True).mprotect
_mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
