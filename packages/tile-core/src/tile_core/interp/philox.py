"""The counter-based generator behind ``T.rng_*``: Philox with four words and ten rounds."""

from __future__ import annotations

import numpy as np

from tile_core.errors import UndefinedOperation
from tile_core.interp.execution_state import Lanes
from tile_core.interp.values import Array

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))


def philox(counter: Array, key: Array) -> Array:
    """Return four random words for each counter, uint32[n, 4], and its key, uint32[n, 2].

    References
    ----------
    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    c = [counter[:, k].astype(np.uint32) for k in range(4)]
    k0, k1 = key[:, 0].astype(np.uint32), key[:, 1].astype(np.uint32)
    for _ in range(10):
        first = _MULTIPLIERS[0] * c[0].astype(np.uint64)
        second = _MULTIPLIERS[1] * c[2].astype(np.uint64)
        low = [(p & np.uint64(0xFFFFFFFF)).astype(np.uint32) for p in (first, second)]
        high = [(p >> np.uint64(32)).astype(np.uint32) for p in (first, second)]
        c = [high[1] ^ c[1] ^ k0, low[1], high[0] ^ c[3] ^ k1, low[0]]
        k0, k1 = k0 + _WEYL[0], k1 + _WEYL[1]
    return np.stack(c, axis=1)


class Generator:
    """The generators of some lanes: key = seed, counter = (draw // 4, sequence), draws so far."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes

    def start(self, seed: Array, sequence: Array, offset: Array) -> Array:
        """Begin stream `sequence` of `seed`, skipping `offset` draws."""
        for name, values in (("seed", seed), ("sequence", sequence), ("drawn", offset)):
            wide = np.broadcast_to(values, (self.lanes.count,)).astype(np.int64)
            before = self.lanes.random.get(name, np.zeros(self.lanes.count, np.int64))
            self.lanes.random[name] = np.where(self.lanes.active, wide, before)
        return np.zeros(1, np.int32)

    def draw(self, function: str) -> Array:
        """Return the next value of every lane and advance the active ones."""
        if function == "rng_rand":
            return self._word()
        if function == "rng_rand_float":
            return self._uniform()
        radius = np.sqrt(-2.0 * np.log(self._uniform().astype(np.float64)))
        angle = 2.0 * np.pi * self._uniform().astype(np.float64)
        return (radius * np.cos(angle)).astype(np.float32)

    def _uniform(self) -> Array:
        """Uniform in (0, 1]."""
        word = self._word().astype(np.float64)
        return (word * 2.0**-32 + 2.0**-33).astype(np.float32)

    def _word(self) -> Array:
        state = self.lanes.random
        if not state:
            raise UndefinedOperation(
                "a random number is drawn before T.rng_init",
                span=self.lanes.span,
                hint="call T.rng_init(seed) first, in every thread that draws",
            )
        drawn, sequence, seed = state["drawn"], state["sequence"], state["seed"]
        quarter = (drawn // 4).astype(np.uint64)
        halves = [quarter, quarter >> np.uint64(32), sequence.astype(np.uint64)]
        halves.append(halves[2] >> np.uint64(32))
        low = np.uint64(0xFFFFFFFF)
        counter = np.stack([(h & low).astype(np.uint32) for h in halves], axis=1)
        wide = seed.astype(np.uint64)
        key = np.stack([(h & low).astype(np.uint32) for h in (wide, wide >> np.uint64(32))], axis=1)
        words = philox(counter, key)[np.arange(len(drawn)), drawn % 4]
        state["drawn"] = drawn + self.lanes.active
        result: Array = words
        return result
