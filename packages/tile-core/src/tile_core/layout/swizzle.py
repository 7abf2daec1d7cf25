"""Swizzled layouts of shared memory, and what an access costs there and in global memory.

Shared memory serves one 4-byte word from each of 32 banks at a time. A column of a row-major
tile whose rows are a multiple of 128 bytes lies in one bank, so reading it takes as many
transactions as it has rows. A swizzle exchanges the 16-byte chunks of a row, differently in each of
8 rows, so that rows and columns are both spread over all banks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt

from tile_core.errors import LayoutError
from tile_core.layout.box import extents_of
from tile_core.layout.constructors import padded, row_major
from tile_core.layout.formulas import inputs
from tile_core.layout.index_tables import Table
from tile_core.layout.layout import Layout
from tile_core.records import dataclass

PERIOD = 8
"""Rows after which a swizzle repeats."""

CHUNK_BITS = 128
"""What a swizzle moves: 16 bytes stay together."""


class Swizzle(Enum):
    """How many bytes of a row are exchanged among each other."""

    QUARTER = 32
    HALF = 64
    FULL = 128

    @property
    def chunks(self) -> int:
        """Number of 16-byte chunks that change places."""
        return self.value // 16


def swizzled(shape: Sequence[int], bits: int, swizzle: Swizzle) -> Layout:
    """Return the layout in which the chunks of each row are exchanged by exclusive or.

    Parameters
    ----------
    shape
        Tile of rows and columns; leading dimensions stay outermost. Rows are a multiple of 8,
        or 4; a row holds a whole number of swizzled spans.
    bits
        Width of an element.
    swizzle
        The span. Chunk `c` of row `s` (both within their period) moves to ``c ^ s`` for 128
        bytes, ``c ^ s // 2`` for 64, ``c ^ s // 4`` for 32: the patterns of the tensor memory
        accelerator.

    Raises
    ------
    LayoutError
        If rows or columns do not fit.

    Notes
    -----
    Physical coordinates are (span of columns, group of 8 rows, element inside of both): all
    rows of one span of columns come before the next span.
    """
    box = extents_of(shape)
    if len(box) < 2:
        raise LayoutError(f"a swizzle needs rows and columns, got the shape {box}")
    rows, cols = box[-2:]
    vector = _vector(bits)
    span = swizzle.chunks * vector
    if cols % span:
        raise LayoutError(
            f"rows of {cols} elements of {bits} bits are no multiple of {swizzle.value} bytes"
        )
    if rows % PERIOD and rows != 4:
        raise LayoutError(f"{rows} rows are neither a multiple of {PERIOD} nor 4")
    *lead, i, j = inputs(len(box))
    row = i % PERIOD
    chunk = j // vector % swizzle.chunks ^ row // (PERIOD // swizzle.chunks)
    inside = (chunk + swizzle.chunks * row) * vector + j % vector
    return Layout(
        box,
        [*lead, j // span, i // PERIOD, inside],
        [*box[:-2], cols // span, -(-rows // PERIOD), PERIOD * span],
    )


def _vector(bits: int) -> int:
    if bits < 1 or CHUNK_BITS % bits:
        raise LayoutError(f"elements of {bits} bits do not fill 16-byte chunks")
    return CHUNK_BITS // bits


def widest_swizzle(cols: int, bits: int) -> Swizzle | None:
    """Return the widest swizzle whose span divides rows of `cols` elements, None if none does."""
    vector = _vector(bits)
    for swizzle in (Swizzle.FULL, Swizzle.HALF, Swizzle.QUARTER):
        if cols % (swizzle.chunks * vector) == 0:
            return swizzle
    return None


def shared_operand(shape: Sequence[int], bits: int, allow_pad: bool = True) -> Layout:
    """Return the layout of a matrix operand in shared memory.

    Parameters
    ----------
    shape
        Tile of rows and columns; leading dimensions stay outermost.
    bits
        Width of an element.
    allow_pad
        True: the widest swizzle that divides a row, else rows, padded by 16 bytes if they are
        a multiple of 32 bytes. False, for instructions that read whole swizzled tiles: the
        widest swizzle, else rows of whole 16-byte chunks, never padded.

    Raises
    ------
    LayoutError
        Without padding, if the rows are no multiple of 16 bytes.
    """
    box = extents_of(shape)
    rows, cols = box[-2:] if len(box) >= 2 else (1, box[-1])
    swizzle = widest_swizzle(cols, bits)
    if swizzle is not None and rows % PERIOD == 0:
        return swizzled(box, bits, swizzle)
    vector = _vector(bits)
    if allow_pad:
        return padded(box, vector if cols * bits % 256 == 0 else 0)
    if cols % vector:
        raise LayoutError(f"rows of {cols} elements of {bits} bits are no multiple of 16 bytes")
    return row_major(box)


def staged_rows(shape: Sequence[int], bits: int) -> Layout:
    """Return the layout of a tile that is written by columns of chunks and read by rows.

    Threads that hold parts of a matrix product write 16 bytes of each of 8 rows at a time; those
    that store the tile read neighbouring chunks of a row, across its end into the next one.
    Neither asks a bank twice.

    Parameters
    ----------
    shape
        Tile of rows and columns; leading dimensions stay outermost.
    bits
        Width of an element.

    Returns
    -------
    The swizzle whose span is the row, or the widest where a row is several of its spans. Else
    rows in order, in which chunk `c` of row `i` moves to ``c ^ i // (8 / g) % g``, with `g` the
    greatest common divisor of 8 and the chunks of a row: with an odd number of chunks, rows
    begin in different banks by themselves.

    Raises
    ------
    LayoutError
        If the rows are no multiple of 16 bytes.
    """
    box = extents_of(shape)
    vector = _vector(bits)
    if len(box) < 2 or box[-1] % vector:
        raise LayoutError(f"a tile of {box} has no rows of whole 16-byte chunks")
    rows, chunks = box[-2], box[-1] // vector
    swizzle = widest_swizzle(box[-1], bits)
    is_one_span = swizzle is not None and swizzle.chunks == chunks
    if swizzle is not None and (swizzle is Swizzle.FULL or is_one_span) and rows % PERIOD == 0:
        return swizzled(box, bits, swizzle)
    group = math.gcd(chunks, PERIOD)
    if group == 1:
        return row_major(box)
    *lead, i, j = inputs(len(box))
    turned = (j // vector ^ i // (PERIOD // group) % group) * vector + j % vector
    return Layout(box, [*lead, i, turned], box)


@dataclass(frozen=True, slots=True)
class BankCost:
    """What one access of a group of threads costs in banked memory."""

    transactions: int  # times the memory is read or written
    ideal: int  # the fewest transactions that can move these words

    @property
    def conflicts(self) -> int:
        """Turns that a better layout would save."""
        return self.transactions - self.ideal


def bank_cost(
    byte_addresses: npt.ArrayLike, access_bytes: int, banks: int = 32, word_bytes: int = 4
) -> BankCost:
    """Return the transactions that an access of one warp takes.

    Parameters
    ----------
    byte_addresses
        Where each thread's access starts; in the order of the threads.
    access_bytes
        Bytes per thread: 1, 2, 4, 8 or 16, starting at a multiple of itself.
    banks, word_bytes
        Geometry of the memory. Threads that touch one word share it.

    Raises
    ------
    LayoutError
        For a width that no instruction has, or a misaligned address.

    Notes
    -----
    Accesses wider than a word are served in parts of so many threads that each part fills all
    banks once: half a warp for 8 bytes, a quarter for 16.
    """
    starts = np.asarray(byte_addresses, dtype=np.int64).reshape(-1)
    if access_bytes not in (1, 2, 4, 8, 16):
        raise LayoutError(f"no access is {access_bytes} bytes wide")
    if (starts % access_bytes).any():
        raise LayoutError(f"an address is no multiple of the access width, {access_bytes} bytes")
    words_each = max(1, access_bytes // word_bytes)
    group = max(1, banks // words_each)
    transactions = ideal = 0
    for first in range(0, starts.size, group):
        words = starts[first : first + group, None] // word_bytes + np.arange(words_each)
        distinct = np.unique(words)
        transactions += int(np.bincount(distinct % banks).max())
        ideal += math.ceil(distinct.size / banks)
    return BankCost(transactions, ideal)


def sectors(byte_addresses: npt.ArrayLike, access_bytes: int, sector_bytes: int = 32) -> int:
    """Return how many sectors of global memory the accesses of a warp touch."""
    starts = np.asarray(byte_addresses, dtype=np.int64).reshape(-1, 1)
    touched = (starts + np.arange(access_bytes)) // sector_bytes
    return int(np.unique(touched).size)


def byte_addresses(layout: Layout, coords: Sequence[Table], bits: int) -> Table:
    """Return the byte addresses of the elements at `coords`, one int64 array per dimension.

    Raises
    ------
    LayoutError
        If an element does not start on a byte, or a coordinate is outside the layout.
    """
    for axis, (x, extent) in enumerate(zip(coords, layout.shape, strict=False)):
        if np.min(x) < 0 or np.max(x) >= extent:
            raise LayoutError(f"coordinates of dimension {axis} are outside 0 ... {extent - 1}")
    at = np.asarray(layout.address(*coords), dtype=np.int64) * bits
    if (at % 8).any():
        raise LayoutError(f"elements of {bits} bits do not start on whole bytes")
    return at // 8
