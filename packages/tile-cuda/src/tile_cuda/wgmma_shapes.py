"""Which products of warpgroups a kernel uses: the device header defines those only.

The header has one inline assembly for each form of product, number of steps and number of
registers that hold accumulators. A compiler reads all of one step in a fifth of a second, and the
few of one kernel in a hundredth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_STEPS = 8
"""Steps of K that one statement of the header takes at most: a power of two, as all numbers."""

_USE = re.compile(r"\bwgmma_(?P<form>[sr]s(?:_set)?)\s*<(?P<chosen>[^<>;]*)>\s*\(")


def shape_flags(text: str) -> tuple[str, ...]:
    """Return the options that leave out of the header what the kernels in `text` do not call.

    A call whose number of columns or of steps is no literal may be any: then nothing is left
    out, and steps are statements of their own.

    Examples
    --------
    >>> shape_flags("tile::wgmma_ss<64, 0, 1, 4>(C, a, b);")
    ('-DTILE_WGMMA_SHAPES=TILE_WGMMA_FLOATS(ss,4,32)TILE_WGMMA_WORDS(ss,4,32)TILE_WGMMA_WORDS(ss,4,16)',)
    """
    found: dict[str, None] = {}
    for use in _USE.finditer(text):
        shape = _shape(use)
        if shape is None:
            return ()
        found.update(dict.fromkeys(_rows(*shape)))
    return (f"-DTILE_WGMMA_SHAPES={''.join(found)}",)


def _shape(use: re.Match[str]) -> tuple[str, int, int] | None:
    """Return form, steps and columns of a call, None if not all of them are literals.

    Between columns and steps it says along which dimensions the factors in memory lie.
    """
    form, (columns, *others) = use["form"], [word.strip() for word in use["chosen"].split(",")]
    steps = "".join(others[1 if form.startswith("r") else 2 :]) or "1"
    known = columns.isdecimal() and steps.isdecimal()
    return (form, int(steps), int(columns)) if known else None


def _rows(form: str, steps: int, columns: int) -> Iterator[str]:
    """Yield the statements of an MMA, whatever the type of its accumulators.

    The text does not tell what type they are of: a register holds a float32, an int32, or
    two of float16.
    """
    if columns % 8 or not 8 <= columns <= 256:
        return  # refused by the header, in words
    count = columns // 2
    if steps > MOST_STEPS or steps & (steps - 1):
        yield from _rows(form, 1, columns)
        yield from _rows(form.removesuffix("_set"), 1, columns)
        return
    yield f"TILE_WGMMA_FLOATS({form},{steps},{count})"
    for words in (count, count // 2):
        yield f"TILE_WGMMA_WORDS({form},{steps},{words})"
