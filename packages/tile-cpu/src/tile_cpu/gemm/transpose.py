"""Square transposes, and sums over lanes, in registers."""

from __future__ import annotations

from collections.abc import Sequence

from tile_cpu.tir.build import Temporaries, shuffle
from tile_cpu.tir.nodes import PrimExpr


def transpose(
    keep: Temporaries, rows: Sequence[PrimExpr], element_bits: int = 32
) -> list[PrimExpr]:
    """Return the transpose of 4, 8 or 16 vectors of as many elements, of 32 or 64 bits.

    `keep` collects the shuffles: run its statements before using the result. There are
    ``n log2(n)`` of two inputs, each one instruction: unpacks inside 128-bit lanes first, then
    whole lanes.
    """
    n = len(rows)
    per_lane = 128 // element_bits
    step = list(rows)
    width = 1
    while width < per_lane:
        step = _unpack(keep, step, width, per_lane)
        width *= 2
    # step[g*per_lane + c], lane l, is column per_lane*l + c of rows g*per_lane ...
    result: list[PrimExpr] = [None] * n
    for c in range(per_lane):
        columns = _swap_lanes(keep, step[c::per_lane], per_lane)
        for lane, vector in enumerate(columns):
            result[lane * per_lane + c] = vector
    return result


def _unpack(
    keep: Temporaries, rows: Sequence[PrimExpr], width: int, per_lane: int
) -> list[PrimExpr]:
    """Interleave blocks of `width` elements of rows `width` apart, within 128-bit lanes."""
    n = len(rows)
    result: list[PrimExpr] = [None] * n
    halves = [
        [
            base + side * n + block * width + e
            for base in range(0, n, per_lane)
            for block in range(half * per_lane // (2 * width), (half + 1) * per_lane // (2 * width))
            for side in (0, 1)
            for e in range(width)
        ]
        for half in (0, 1)
    ]
    for group in range(0, n, 2 * width):
        for i in range(width):
            pair = [rows[group + i], rows[group + width + i]]
            for half in (0, 1):
                result[group + 2 * i + half] = keep(shuffle(pair, halves[half]))
    return result


def _swap_lanes(
    keep: Temporaries, vectors: Sequence[PrimExpr], per_lane: int
) -> Sequence[PrimExpr]:
    """Transpose the square matrix of 128-bit lanes of `vectors`."""
    count = len(vectors)
    if count == 1:
        return vectors
    even = _pick(count, range(0, 2 * count, 2), per_lane)
    odd = _pick(count, range(1, 2 * count, 2), per_lane)
    if count == 2:
        return [keep(shuffle(vectors, even)), keep(shuffle(vectors, odd))]
    a, b, c, d = vectors
    p = [keep(shuffle([a, b], lanes)) for lanes in (even, odd)]
    q = [keep(shuffle([c, d], lanes)) for lanes in (even, odd)]
    low = [keep(shuffle([p[i], q[i]], even)) for i in (0, 1)]
    high = [keep(shuffle([p[i], q[i]], odd)) for i in (0, 1)]
    return [low[0], low[1], high[0], high[1]]


def _pick(count: int, lanes: range, per_lane: int) -> list[int]:
    assert len(lanes) == count
    return [lane * per_lane + e for lane in lanes for e in range(per_lane)]


def lane_sums(keep: Temporaries, vectors: Sequence[PrimExpr], lanes: int) -> tuple[PrimExpr, int]:
    """Return one vector of the sums of `vectors`, padded to a power of two, and its width.

    Halves of neighbours are added and joined, so each round halves the number of vectors.
    """
    size, rest = lanes, list(vectors)  # `size` lanes belong to one sum
    while len(rest) > 1 or size > 1:
        pairs = [rest[x : x + 2] for x in range(0, len(rest), 2)]
        if len(rest) > 1:
            pairs[-1] = pairs[-1] if len(pairs[-1]) == 2 else [*pairs[-1], *pairs[-1]]
        low = [x for x in range(len(pairs[0]) * lanes) if x % size < size // 2]
        high = [x + size // 2 for x in low]
        lanes, size = len(low), size // 2
        rest = [keep(shuffle(pair, low) + shuffle(pair, high)) for pair in pairs]
    return rest[0], lanes
