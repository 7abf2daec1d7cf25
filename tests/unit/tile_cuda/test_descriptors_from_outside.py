"""Descriptors of matrix operands against constants that other code for Hopper works with.

Nothing here follows from this project's reading of the manual. Constants were computed by the host
functions of CUTLASS 4.2.0 (`make_gmma_desc` and `tile_to_shape` of
``cute/atom/mma_traits_sm90_gmma.hpp``) for tiles at the address 0x400. Swizzles are the functions
that ``cute/swizzle.hpp`` names ``Swizzle<1..3, 4, 3>``, of addresses in bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from support.cuda_header import ptx
from tile_core.layout import OperandTile

ADDRESS = 0x400
UNIT = 16
MODES = {0: 0, 32: 3, 64: 2, 128: 1}
LEADING = 0x3FFF << 16
"""The bits of a descriptor that say how far boxes are apart."""


@dataclass(frozen=True)
class Known:
    """What is known of one tile.

    Parameters
    ----------
    bits
        Width of an element.
    is_k_last
        Whether neighbours along K are neighbours in memory.
    x, k
        Extents of the tile: rows of A or columns of B, and steps of K.
    n
        How much of `x` one instruction takes; of K it takes 32 bytes.
    descriptor
        Of the first instruction.
    units
        How much is added to it for the others, in the order of `k` and then of `x`.
    """

    bits: int
    is_k_last: bool
    span: int
    x: int
    k: int
    n: int
    descriptor: int
    units: tuple[int, ...]

    def __str__(self) -> str:
        major = "k" if self.is_k_last else "x"
        return f"{self.bits}{major}{self.span}-{self.x}x{self.k}by{self.n}"

    @property
    def tile(self) -> OperandTile:
        """Return the tile as this project describes it."""
        shape = (self.x, self.k) if self.is_k_last else (self.k, self.x)
        return OperandTile(*shape, self.bits, self.span)


def along_k(bits: int, span: int, x: int, k: int, n: int, descriptor: int, *units: int) -> Known:
    return Known(bits, True, span, x, k, n, descriptor, units)


def along_x(span: int, x: int, k: int, n: int, descriptor: int, *units: int) -> Known:
    return Known(16, False, span, x, k, n, descriptor, units)


FOUR, TWICE = (0, 2, 4, 6), (0, 2, 4, 6, 512, 514, 516, 518)
KNOWN = (
    along_k(16, 128, 128, 64, 128, 0x4000004000010040, *FOUR),
    along_k(16, 128, 24, 64, 24, 0x4000004000010040, *FOUR),
    along_k(16, 128, 64, 128, 64, 0x4000004000010040, *TWICE),
    along_k(
        16, 128, 256, 128, 128, 0x4000004000010040, *(0, 2, 4, 6, 2048, 2050, 2052, 2054),
        *(1024, 1026, 1028, 1030, 3072, 3074, 3076, 3078),
    ),
    along_k(16, 64, 64, 32, 64, 0x8000002000010040, 0, 2),
    along_k(
        16, 64, 128, 96, 64, 0x8000002000010040, *(0, 2, 512, 514, 1024, 1026),
        *(256, 258, 768, 770, 1280, 1282),
    ),
    along_k(16, 32, 64, 48, 64, 0xC000001000010040, 0, 128, 256),
    along_k(16, 16, 64, 16, 64, 0x0000000800400040, 0),
    along_k(16, 16, 64, 80, 64, 0x0000000800400040, 0, 128, 256, 384, 512),
    along_k(8, 128, 128, 128, 128, 0x4000004000010040, *FOUR),
    along_k(8, 128, 64, 256, 64, 0x4000004000010040, *TWICE),
    along_k(8, 64, 64, 64, 64, 0x8000002000010040, 0, 2),
    along_k(8, 32, 64, 32, 32, 0xC000001000010040, 0, 64),
    along_k(32, 128, 128, 32, 128, 0x4000004000010040, *FOUR),
    along_k(32, 128, 64, 64, 64, 0x4000004000010040, *TWICE),
    along_k(32, 64, 64, 16, 64, 0x8000002000010040, 0, 2),
    along_k(32, 32, 64, 24, 64, 0xC000001000010040, 0, 128, 256),
    along_x(128, 64, 64, 64, 0x4000004000000040, 0, 128, 256, 384),
    along_x(128, 128, 64, 128, 0x4000004002000040, 0, 128, 256, 384),
    along_x(128, 256, 64, 256, 0x4000004002000040, 0, 128, 256, 384),
    along_x(128, 256, 32, 128, 0x4000004001000040, 0, 128, 512, 640),
    along_x(128, 256, 32, 64, 0x4000004000000040, 0, 128, 256, 384, 512, 640, 768, 896),
    along_x(64, 96, 64, 96, 0x8000002001000040, 0, 64, 128, 192),
    along_x(64, 160, 16, 160, 0x8000002000400040, 0),
    along_x(64, 32, 64, 32, 0x8000002000000040, 0, 64, 128, 192),
    along_x(32, 48, 64, 48, 0xC000001000800040, 0, 32, 64, 96),
    along_x(32, 80, 32, 16, 0xC000001000000040, *range(0, 320, 32)),
    along_x(16, 8, 64, 8, 0x0000000000080040, 0, 16, 32, 48),
    along_x(16, 24, 64, 24, 0x0000004000080040, 0, 16, 32, 48),
    along_x(16, 72, 32, 24, 0x0000002000080040, 0, 16, 96, 112, 192, 208),
)  # fmt: skip


def bits_of(known: Known, x: int, k: int) -> int:
    """Return the descriptor of this project, put together as ``wgmma_operand`` does."""
    walk = known.tile.walk(is_k_last=known.is_k_last)
    units = known.tile.units(x, k, is_k_last=known.is_k_last)
    high = MODES[walk.swizzle] << 30 | walk.stride // UNIT
    return high << 32 | (ADDRESS // UNIT + (walk.leading // UNIT << 16) + units)


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_descriptors_are_those_of_other_code(known: Known) -> None:
    depth = 256 // known.bits
    found = [
        bits_of(known, x, k) for x in range(0, known.x, known.n) for k in range(0, known.k, depth)
    ]
    # No instruction comes to a second box: each says of it what it likes.
    unread = 0
    if not known.is_k_last and known.n * known.bits // 8 <= known.span:
        unread = LEADING if known.span > UNIT else 0x3FFF << 32
    wanted = [known.descriptor + units for units in known.units]
    assert [hex(d & ~unread) for d in found] == [hex(d & ~unread) for d in wanted]


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_bytes_lie_where_other_code_puts_them(known: Known) -> None:
    tile = known.tile
    rows, columns = np.indices((tile.rows, tile.columns))
    inside = columns * known.bits // 8 % tile.span
    box = columns * known.bits // 8 // tile.span
    in_order = box * (tile.rows * tile.span) + rows * tile.span + inside
    swizzle = {128: 3, 64: 2, 32: 1, 16: 0}[tile.span]
    exchanged = in_order ^ (in_order >> 3 & ((1 << swizzle) - 1) << 4)
    table = tile.layout().linear_table().reshape(rows.shape) * known.bits // 8
    assert np.array_equal(table, exchanged)


HEADER: list[tuple[tuple[int, ...], int, int]] = [
    ((128, 16, 1024), 0x00010000, 0x40000040),
    ((64, 16, 512), 0x00010000, 0x80000020),
    ((32, 16, 256), 0x00010000, 0xC0000010),
    ((0, 1024, 128), 0x00400000, 0x00000008),
    ((128, 8192, 1024), 0x02000000, 0x40000040),
    ((0, 128, 1024), 0x00080000, 0x00000040),
]
"""Swizzle and distances, and both words of the descriptor above but for where its tile begins."""


def test_the_header_puts_bits_where_other_code_does() -> None:
    body = "const tile::sptr<half_t> p = tile::smem<half_t>(0, 64);\n"
    for i, (chosen, _, _) in enumerate(HEADER):
        numbers = ", ".join(map(str, chosen))
        body += (
            f"{{ const auto x = tile::wgmma_operand<{numbers}, 2, 4, 512>(p, 0);\n"
            f"U[{4 * i}] = x.low - tile::matrix_descriptor_encode(tile::shared_address(p));\n"
            f"U[{4 * i + 1}] = x.high;\n"
            f"U[{4 * i + 2}] = tile::u32(x.at(5)) - x.low;\n"
            f"U[{4 * i + 3}] = tile::u32(x.at(5) >> 32); }}\n"
        )
    stored = _constants(ptx(body, "sm_90a"))
    for i, (_, low, high) in enumerate(HEADER):
        assert stored[4 * i : 4 * i + 4] == [low, high, 514, high]


def test_an_address_in_a_cluster_leaves_the_other_fields_alone() -> None:
    """The number of a block stands above the 18 bits that descriptors have room for."""
    body = (
        'static_assert(tile::matrix_descriptor_encode(0x0300A420) == 0x0A42, "");\n'
        "U[0] = tile::wgmma_operand<128, 8192, 1024>(tile::smem<half_t>(0, 64) + n, 0).low;\n"
    )
    masks = re.findall(r"(?:and\.b32\s.*, (\d+)|bfe\.u32\s.*, 4, (14));", ptx(body, "sm_90a"))
    assert any(mask in ("262143", "262128", "16383") or bits for mask, bits in masks)


def _constants(text: str) -> list[int]:
    """Return the 32-bit constants that a kernel stores one after the other."""
    known: dict[str, int] = {}
    places: dict[int, int] = {}
    for line in text.splitlines():
        moved = re.match(r"\s*mov\.[bu]32\s+(%r\d+), (-?\d+);", line)
        if moved:
            known[moved[1]] = int(moved[2])
        stored = re.match(r"\s*st\.global\.[bu]32\s+\[%rd\d+(?:\+(\d+))?\], (%?\w+);", line)
        if stored:
            value: Any = known.get(stored[2], stored[2])
            places[int(stored[1] or 0)] = int(value) % (1 << 32)
    return [places[at] for at in sorted(places)]
