"""Where operands lie in shared memory: rows whose 16-byte chunks change places."""

from __future__ import annotations

from typing import Any

from tile_core.errors import LayoutError
from tile_core.layout import Layout, shared_operand

_CHUNK_BITS, _WORD_BITS = 128, 32


def rows_of_chunks(shape: tuple[int, ...], bits: int, banks: int) -> Layout:
    """Return a layout in which neighbouring lanes read 16 bytes of neighbouring rows at once.

    As many lanes are served together as fill all banks: 8 of 32 banks, 16 of 64. The chunks of
    a row change places by its number, counted in lines of all banks, so that these lanes find
    theirs in different banks. With 32 banks these are the swizzles of all machines.

    Parameters
    ----------
    shape
        Tile of rows and columns; leading dimensions stay outermost.
    bits
        Width of an element.
    banks
        Four-byte banks of the memory.

    Raises
    ------
    LayoutError
        If elements do not fill chunks.
    """
    served = banks * _WORD_BITS // _CHUNK_BITS
    if served == 8 or len(shape) < 2:
        return shared_operand(shape, bits)
    if bits < 1 or _CHUNK_BITS % bits:
        raise LayoutError(f"elements of {bits} bits do not fill 16-byte chunks")
    vector = _CHUNK_BITS // bits
    chunks = shape[-1] // vector
    span = next(s for s in (16, 8, 4, 2, 1) if chunks % s == 0)
    if shape[-1] % vector or span == 1:
        return shared_operand(shape, bits)
    per_line = served // span

    def place(*coords: Any) -> Any:
        *lead, i, j = coords
        chunk = j // vector
        turned = chunk // span * span + (chunk % span ^ i // per_line % span)
        return (*lead, i, turned * vector + j % vector)

    return Layout(shape, place, shape)


def rows_in_turns(shape: tuple[int, ...], bits: int, banks: int) -> Layout:
    """Return the layout of an operand that lies across K: groups of lanes read rows far apart.

    A group of lanes reads a row, and begins `_RUN` rows behind the group before it. Where several
    rows are in one line of all banks, all groups would find theirs at the same place of a line:
    rows of a line change places by the number of the group. Longer rows lie as `rows_of_chunks`.

    Parameters
    ----------
    shape, bits, banks
        As for `rows_of_chunks`.

    Raises
    ------
    LayoutError
        If elements do not fill chunks.
    """
    per_line, rest = divmod(banks * _WORD_BITS, shape[-1] * bits)
    if len(shape) < 2 or rest or per_line not in (2, 4) or shape[-2] % (_RUN * per_line):
        return rows_of_chunks(shape, bits, banks)

    def place(*coords: Any) -> Any:
        *lead, i, j = coords
        turned = i // per_line * per_line + (i % per_line ^ i // _RUN % per_line)
        return (*lead, turned, j)

    return Layout(shape, place, shape)


_RUN = 8
"""Rows along K that a group of lanes holds of 16-bit operands: 16 bytes of the other one."""
