"""The Philox generator, four words and ten rounds, in Python integers."""

from __future__ import annotations

MASK = 0xFFFFFFFF


def philox(seed: int, sequence: int, draw: int) -> int:
    """Return number `draw` of stream `sequence`, as 32 bits.

    References
    ----------
    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    block = draw // 4
    c = [block & MASK, block >> 32, sequence & MASK, sequence >> 32]
    key = [seed & MASK, seed >> 32]
    for _ in range(10):
        first, second = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [
            (second >> 32) ^ c[1] ^ key[0],
            second & MASK,
            (first >> 32) ^ c[3] ^ key[1],
            first & MASK,
        ]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return c[draw % 4]
