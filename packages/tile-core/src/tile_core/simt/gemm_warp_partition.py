"""How warps divide a matrix product, and what each thread holds of its operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from tile_core.layout import Fragment
from tile_core.layout.mixed_radix import flatten_row_major
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.records import dataclass
from tile_core.simt.atoms import MatrixAtom

_REMEMBERED = 64
"""Tilings whose fragments are kept: one kernel asks for them many times."""


def partitions(rows: int, columns: int, warps: int) -> Iterator[tuple[int, int]]:
    """Yield every (warps along M, warps along N) that divides a grid of atoms exactly.

    There are so many atoms along M and N; all warps get the same share.
    """
    for m_warps in range(1, warps + 1):
        if warps % m_warps or rows % m_warps or columns % (warps // m_warps):
            continue
        yield m_warps, warps // m_warps


def choose_partition(
    rows: int, columns: int, warps: int, policy: GemmWarpPolicy, shape: tuple[int, int]
) -> tuple[int, int] | None:
    """Return how many warps go along M and along N, or None if none divides the grid exactly.

    `FullRow` takes as many along M as can be, `FullCol` along N. `Square` makes the rectangles
    of the warps as nearly square as can be: a warp then reads fewest elements of the operands.
    Of equally good ones it takes the one that leaves rows whole.

    There are so many atoms along M and N, which are `shape` elements.

    Examples
    --------
    >>> choose_partition(8, 16, 4, GemmWarpPolicy.Square, (128, 128))
    (2, 2)
    >>> choose_partition(3, 6, 4, GemmWarpPolicy.Square, (48, 48)) is None
    True
    """
    found = list(partitions(rows, columns, warps))
    if not found:
        return None
    if policy is GemmWarpPolicy.FullRow:
        return found[-1]
    if policy is GemmWarpPolicy.FullCol:
        return found[0]
    m, n = shape
    return min(found, key=lambda p: (m // p[0] + n // p[1], p[1]))


@dataclass(frozen=True, slots=True)
class WarpTiling:
    """A matrix product of one block, spread over its warps.

    The warps form a grid, those along M first: warp `w` has the rectangle in row
    ``w % m_warps`` and column ``w // m_warps`` of C. In it atoms follow each other row by row,
    and their registers too.

    One warp has `rows`, `columns` and `steps` atoms along M, N and K.
    """

    atom: MatrixAtom
    m_warps: int
    n_warps: int
    rows: int
    columns: int
    steps: int

    @property
    def warps(self) -> int:
        """Number of warps."""
        return self.m_warps * self.n_warps

    def c_fragment(self) -> Fragment:
        """Return who holds which sum: shape (M, N), each element once."""
        return _c_fragment(self)

    def a_fragment(self) -> Fragment:
        """Return who holds the first operand: shape (M, K), once per warp along N."""
        return _a_fragment(self)

    def b_fragment(self) -> Fragment:
        """Return who holds the second operand: shape (K, N), once per warp along M.

        Registers of one column of atoms follow each other along K.
        """
        return _b_fragment(self)


@lru_cache(maxsize=_REMEMBERED)
def _c_fragment(tiling: WarpTiling) -> Fragment:
    tile = tiling.atom.c.repeat((tiling.rows, tiling.columns))
    return tile.repeat((tiling.m_warps, tiling.n_warps), True, lower_dim_first=False)


@lru_cache(maxsize=_REMEMBERED)
def _a_fragment(tiling: WarpTiling) -> Fragment:
    tile = tiling.atom.a.repeat((tiling.rows, tiling.steps))
    return tile.repeat((tiling.m_warps, 1), True).replicate(tiling.n_warps)


@lru_cache(maxsize=_REMEMBERED)
def _b_fragment(tiling: WarpTiling) -> Fragment:
    tile = tiling.atom.b.repeat((tiling.steps, tiling.columns), lower_dim_first=False)
    return tile.replicate(tiling.m_warps).repeat((1, tiling.n_warps), True)


def tiling_of(
    atoms: Sequence[MatrixAtom], mnk: tuple[int, int, int], warps: int, policy: GemmWarpPolicy
) -> WarpTiling | None:
    """Return the tiling with the first of `atoms` that divides the product, or None.

    Each atom is tried with the partition that `policy` prefers among those that give every
    warp the same whole number of atoms. Extents need not be powers of two.
    """
    m, n, k = mnk
    for atom in atoms:
        if m % atom.m or n % atom.n or k % atom.k:
            continue
        rows, columns = m // atom.m, n // atom.n
        grid = choose_partition(rows, columns, warps, policy, (m, n))
        if grid is not None:
            return WarpTiling(atom, *grid, rows // grid[0], columns // grid[1], k // atom.k)
    return None


def best_shared_first(
    atoms: Sequence[MatrixAtom],
    mnk: tuple[int, int, int],
    warps: int,
    policy: GemmWarpPolicy,
    penalty: Callable[[MatrixAtom], int] = lambda atom: 0,
) -> tuple[MatrixAtom, ...]:
    """Return `atoms` of several sizes in the order of how well so many warps share them.

    `FullRow` and `FullCol` want as many warps along M or N as can be; `Square` the rectangles
    with the smallest circumference. Of equally good ones those of least `penalty` come first, of
    these the largest, and else their order stays. Those that cannot be shared come last.
    """
    m, n, k = mnk

    def cost(atom: MatrixAtom) -> tuple[int, int, int]:
        size = (penalty(atom), -atom.m * atom.n)
        if m % atom.m or n % atom.n or k % atom.k:
            return m + n + 1, *size
        grid = choose_partition(m // atom.m, n // atom.n, warps, policy, (m, n))
        if grid is None:
            return m + n + 1, *size
        if policy is GemmWarpPolicy.Square:
            return m // grid[0] + n // grid[1], *size
        return -grid[policy is GemmWarpPolicy.FullCol], *size

    return tuple(sorted(atoms, key=cost))


def permuted(fragment: Fragment, order: Sequence[int], lead: Sequence[int] = ()) -> Fragment:
    """Return the fragment with dimensions in another order, behind leading ones.

    Dimension ``k`` of the result (after `lead`) is dimension ``order[k]`` of `fragment`. Each
    coordinate of a new leading dimension has registers of its own.
    """
    if not lead and list(order) == list(range(fragment.rank)):
        return fragment
    places = [len(lead) + list(order).index(axis) for axis in range(fragment.rank)]
    shape = (*lead, *(fragment.shape[axis] for axis in order))
    rank = len(shape)

    def thread(*coords: Any) -> Any:
        own = [coords[p] for p in places]
        return fragment.forward_thread(*own, rep=coords[rank] if len(coords) > rank else 0)

    def slots(*coords: Any) -> Any:
        own = fragment.slot_at(*(coords[p] for p in places))
        return flatten_row_major(coords[: len(lead)], lead) * fragment.slots + own

    return Fragment(
        shape,
        forward_thread_fn=thread,
        replicate=fragment.replication,
        forward_index_fn=slots,
        threads=fragment.thread_extent,
    )
