"""Random programs of threads: the emulator finds a race exactly where the definition has one.

A kernel interprets a table of reads, writes and barriers. The reference compares all pairs of
accesses by who can know of whom, which is what the emulator's clocks and shadows abbreviate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tile_core.errors import DataRace
from tile_sim import checking
from tile_sim.sources import SourceKernel

READ, WRITE, SYNC, SYNC_WARP, ARRIVE, WAIT = 1, 2, 3, 4, 5, 6
WARPS, LANES, STEPS = 2, 32, 16
THREADS = WARPS * LANES
ACTIVE = 8  # lanes of each warp that touch memory: 2 * 8 * 16 writes have values of their own
BYTES = 48

KERNEL = f"""#include "tile.h"
TILE_KERNEL({THREADS}, 1) void programs(tile::gptr<const tile::u32> P) {{
  const int tid = threadIdx.x;
  tile::sptr<tile::u8> s = tile::smem<tile::u8>(0, {BYTES});
  tile::frag<tile::u8, 16> r;
  for (int i = 0; i < 16; ++i) {{
    r[i] = tile::u8(0);
  }}
  for (int step = 0; step < {STEPS}; ++step) {{
    const int kind = int(tile::u32(P[(step * {THREADS} + tid) * 3]));
    const int at = int(tile::u32(P[(step * {THREADS} + tid) * 3 + 1]));
    const tile::u32 what = P[(step * {THREADS} + tid) * 3 + 2];
    if (kind == {SYNC}) {{
      tile::sync();
    }}
    if (kind == {SYNC_WARP}) {{
      tile::sync_warp(what);
    }}
    if (kind == {ARRIVE}) {{
      tile::bar_arrive(step, {THREADS});
    }}
    if (kind == {WAIT}) {{
      tile::bar_sync(step, {THREADS});
    }}
    if (kind == {WRITE}) {{
      for (int i = 0; i < 16; ++i) {{
        r[i] = tile::u8((tid / {LANES} * {ACTIVE} + tid % {LANES}) * {STEPS} + step);
      }}
    }}
    if (kind == {READ} && what == 1) tile::load<1>(r + 0, s + at);
    if (kind == {READ} && what == 2) tile::load<2>(r + 0, s + at);
    if (kind == {READ} && what == 4) tile::load<4>(r + 0, s + at);
    if (kind == {READ} && what == 16) tile::load<16>(r + 0, s + at);
    if (kind == {WRITE} && what == 1) tile::store<1>(s + at, r + 0);
    if (kind == {WRITE} && what == 2) tile::store<2>(s + at, r + 0);
    if (kind == {WRITE} && what == 4) tile::store<4>(s + at, r + 0);
    if (kind == {WRITE} && what == 16) tile::store<16>(s + at, r + 0);
  }}
}}
TILE_EXPORT(programs)
"""


@dataclass(frozen=True)
class Operation:
    """What one thread does in one step; `what` is a size in bytes or a mask of lanes."""

    kind: int
    at: int = 0
    what: int = 0


Program = list[dict[int, Operation]]
"""For each step, what each thread does; threads that are missing do nothing."""


def _program(rng: np.random.Generator) -> Program:
    """Draw a program: few enough accesses that both outcomes are common."""
    steps: Program = []
    busy = rng.uniform(0.02, 0.25)
    for _ in range(STEPS):
        draw = rng.random()
        if draw < 0.2:
            steps.append({t: Operation(SYNC) for t in range(THREADS)})
            continue
        if draw < 0.35 and steps:  # not in the first: barrier 0 is taken
            waits = rng.random() < 0.5  # of the first warp; the other arrives
            steps.append(
                {t: Operation(WAIT if (t < LANES) == waits else ARRIVE) for t in range(THREADS)}
            )
            continue
        step: dict[int, Operation] = {}
        for warp in range(WARPS):
            if rng.random() < 0.35:
                mask = int(rng.choice([0xFFFFFFFF, 0xFFFFFFFF, 0x0000000F, 0xFFFFFFF0]))
                step |= {
                    warp * LANES + n: Operation(SYNC_WARP, what=mask)
                    for n in range(LANES)
                    if mask >> n & 1
                }
                continue
            for lane in range(ACTIVE):
                if rng.random() < busy:
                    size = int(rng.choice([1, 2, 4, 16]))
                    at = int(rng.integers(0, BYTES // size)) * size
                    kind = WRITE if rng.random() < 0.4 else READ
                    step[warp * LANES + lane] = Operation(kind, at, size)
        steps.append(step)
    return steps


def _has_race(program: Program) -> bool:
    """Compare every access with all earlier ones; `knows[t][u]`: steps of u before it, t knows."""
    knows = np.zeros((THREADS, THREADS), int)
    accesses: list[tuple[int, int, Operation]] = []
    for number, step in enumerate(program):
        meetings: dict[tuple[int, int], list[int]] = {}
        for thread, op in step.items():
            if op.kind == SYNC:
                meetings.setdefault((-1, 0), []).append(thread)
            elif op.kind == SYNC_WARP:
                meetings.setdefault((thread // LANES, op.what), []).append(thread)
        for group in meetings.values():
            knows[group, group] = number
            knows[group] = knows[group].max(axis=0)
        arrive = [t for t, op in step.items() if op.kind == ARRIVE]
        if arrive:
            wait = [t for t, op in step.items() if op.kind == WAIT]
            both = arrive + wait
            released = knows[both].copy()
            released[range(len(both)), both] = number
            knows[wait] = np.maximum(knows[wait], released.max(axis=0))
        for thread, op in step.items():
            if op.kind not in (READ, WRITE):
                continue
            for earlier, other, before in accesses:
                if other == thread or knows[thread, other] > earlier:
                    continue
                overlaps = op.at < before.at + before.what and before.at < op.at + op.what
                if overlaps and WRITE in (op.kind, before.kind):
                    return True
            accesses.append((number, thread, op))
    return False


def _table(program: Program) -> np.ndarray:
    table = np.zeros((STEPS, THREADS, 3), np.uint32)
    for number, step in enumerate(program):
        for thread, op in step.items():
            table[number, thread] = op.kind, op.at, op.what
    return table


@pytest.fixture(scope="module")
def kernel() -> SourceKernel:
    return SourceKernel(KERNEL, "programs", block=THREADS, shared_bytes=BYTES)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:4"])
def test_races_are_found_exactly(kernel: SourceKernel, schedule: str) -> None:
    outcomes = {True: 0, False: 0}
    for seed in range(150):
        program = _program(np.random.default_rng(seed))
        expected = _has_race(program)
        outcomes[expected] += 1
        found = False
        try:
            with checking("race", schedule=schedule):
                kernel(1, P=_table(program))
        except DataRace:
            found = True
        assert found == expected, f"seed {seed}"
    assert min(outcomes.values()) > 20  # the programs are neither all right nor all wrong
