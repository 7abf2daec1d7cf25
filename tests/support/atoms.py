"""Matrix instructions run on integers, to see whether their tables are sound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tile_core.layout import Fragment
from tile_core.simt.atoms import MatrixAtom

Array = npt.NDArray[np.float64]


def defects(atom: MatrixAtom, seed: int = 0) -> tuple[str, ...]:
    """Return what is wrong with the layouts of `atom`, in words; nothing if it is sound.

    Integers are spread over the registers, the instruction runs, and the collected sum is
    compared with numpy's. Every register of every thread must have an element, and no two.
    """
    found = [
        f"{name} leaves registers of some thread unused, or uses one twice"
        for name, f in (("a", atom.a), ("b", atom.b), ("c", atom.c))
        if not f.is_injective() or f.size * f.replication != atom.threads * f.slots
    ]
    if (atom.a.shape[1], atom.c.shape) != (atom.b.shape[0], (atom.m, atom.n)):
        return (*found, "the shapes of a, b and c do not agree")
    if atom.c.replication != 1:
        return (*found, "two threads hold one sum")
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(-8, 8, f.shape).astype(float) for f in (atom.a, atom.b, atom.c))
    registers = [distribute(f, x) for f, x in ((atom.a, a), (atom.b, b), (atom.c, c))]
    total = collect(atom.c, execute(atom, registers[0], registers[1], registers[2]))
    if not np.array_equal(total, a @ b + c):
        found.append("the sum differs from a @ b + c, or a group of threads lacks an element")
    return tuple(found)


def distribute(fragment: Fragment, values: npt.ArrayLike) -> Array:
    """Return the registers of all threads that hold `values`: shape (threads, slots).

    Registers that hold no element are NaN.
    """
    registers = np.full((fragment.thread_extent, fragment.slots), np.nan)
    threads = fragment.thread_table()
    slots = np.broadcast_to(fragment.slot_table()[..., None], threads.shape)
    registers[threads, slots] = np.asarray(values, dtype=np.float64)[..., None]
    return registers


def collect(fragment: Fragment, registers: Array) -> Array:
    """Return the tile that `registers` of shape (threads, slots) hold; NaN if replicas differ."""
    threads = fragment.thread_table()
    slots = np.broadcast_to(fragment.slot_table()[..., None], threads.shape)
    copies = registers[threads, slots]
    first: Array = copies[..., 0]
    agreed = (copies == first[..., None]).all(axis=-1)
    tile: Array = np.where(agreed, first, np.nan)
    return tile


def execute(atom: MatrixAtom, a: Array, b: Array, c: Array) -> Array:
    """Return the registers of ``c`` after the instruction has run on those of all threads.

    Each group of `atom.parts` sees its own registers only: an element that none of its threads
    holds is NaN, and so is every sum that needs it.

    Parameters
    ----------
    a, b, c
        Registers, of shape (threads, slots).
    """
    result: Array = c.copy()
    for part in atom.parts or (tuple(range(atom.threads)),):
        left, right = _seen(atom.a, a, part), _seen(atom.b, b, part)
        product = left @ right
        threads = atom.c.thread_table()[..., 0]
        slots = atom.c.slot_table()
        mine = np.isin(threads, part)
        result[threads[mine], slots[mine]] += product[mine]
    return result


def _seen(fragment: Fragment, registers: Array, part: tuple[int, ...]) -> Array:
    """Return the tile as far as the threads `part` hold it, NaN elsewhere."""
    tile = np.full(fragment.shape, np.nan)
    slots = fragment.slot_table()
    threads = fragment.thread_table()
    for replica in range(fragment.replication):
        holders = threads[..., replica]
        mine = np.isin(holders, part)
        tile[mine] = registers[holders[mine], slots[mine]]
    return tile
