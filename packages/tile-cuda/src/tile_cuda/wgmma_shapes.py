"""Which products of warpgroups a kernel uses: the device header defines those only.

The header has one inline assembly for each number of registers that hold sums. A compiler reads
all of them in a fifth of a second, and the few of one kernel in a hundredth.
"""

from __future__ import annotations

import re

_USE = re.compile(r"\bwgmma_[sr]s(?:_set)?\s*<\s*(?P<columns>\d+)?")


def shape_flags(text: str) -> tuple[str, ...]:
    """Return the options that leave out of the header what the kernels in `text` do not call.

    A call whose number of columns is no literal may be any: then nothing is left out.

    Examples
    --------
    >>> shape_flags("tile::wgmma_ss<64, 0, 1>(C, a, b);")
    ('-DTILE_WGMMA_SHAPES=TILE_WGMMA_FLOATS(32)TILE_WGMMA_WORDS(32)TILE_WGMMA_WORDS(16)',)
    """
    uses = [use["columns"] for use in _USE.finditer(text)]
    if None in uses:
        return ()
    floats = sorted({int(n) // 2 for n in uses if n and int(n) % 8 == 0 and 8 <= int(n) <= 256})
    words = sorted({*floats, *(count // 2 for count in floats)}, reverse=True)
    rows = [f"TILE_WGMMA_FLOATS({n})" for n in floats] + [f"TILE_WGMMA_WORDS({n})" for n in words]
    return (f"-DTILE_WGMMA_SHAPES={''.join(rows)}",)
