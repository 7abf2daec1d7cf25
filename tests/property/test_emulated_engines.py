"""Random programs of threads, copies and barriers in memory: order is known exactly where it is.

Each step, a thread touches a chunk of shared memory, starts a copy to one, arrives at a barrier in
memory or waits for it. The reference keeps for each thread the set of all accesses that come before
it; the emulator's clocks abbreviate that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from tile_core.errors import DataRace, MissingWait
from tile_sim import checking
from tile_sim.sources import SourceKernel

READ, WRITE, COPY, ARRIVE, WAIT, SYNC = 1, 2, 3, 4, 5, 6
THREADS, STEPS, CHUNKS = 64, 14, 6
ACTORS = (0, 1, 32, 33)
"""The threads that do something: two of each warp."""

KERNEL = f"""#include "tile.h"
TILE_KERNEL({THREADS}, 1) void programs(tile::gptr<const int> P, tile::gptr<const int> A) {{
  const int tid = threadIdx.x;
  tile::sptr<int> s = tile::smem<int>(0, {4 * CHUNKS});
  tile::sptr<tile::u64> bar = tile::smem<tile::u64>({16 * CHUNKS}, {STEPS});
  tile::frag<int, 4> r;
  for (int i = 0; i < 4; ++i) {{
    r[i] = tid;
  }}
  if (tid == 0) {{
    for (int i = 0; i < {STEPS}; ++i) {{
      const int arrivals = int(P[{STEPS} * {THREADS} * 3 + i]);
      tile::mbarrier_init(bar + i, arrivals > 0 ? arrivals : 1);
    }}
    for (int i = 0; i < {CHUNKS}; ++i) {{
      tile::store<4>(s + i * 4, r);
    }}
    tile::fence_mbarrier_init();
    tile::fence_proxy_async();
  }}
  tile::sync();
  for (int step = 0; step < {STEPS}; ++step) {{
    const int kind = int(P[(step * {THREADS} + tid) * 3]);
    const int chunk = int(P[(step * {THREADS} + tid) * 3 + 1]);
    const int barrier = int(P[(step * {THREADS} + tid) * 3 + 2]);
    if (kind == {READ}) {{
      tile::load<4>(r + 0, s + chunk * 4);
      tile::fence_proxy_async();  // that copies are told of accesses is another question
    }}
    if (kind == {WRITE}) {{
      r[0] = step * {THREADS} + tid;  // equal values would be no conflict
      tile::store<4>(s + chunk * 4, r + 0);
      tile::fence_proxy_async();
    }}
    if (kind == {COPY}) {{
      tile::mbarrier_arrive_expect_tx(bar + barrier, 16);
      tile::bulk_load(s + chunk * 4, A + chunk * 4, 16, bar + barrier);
    }}
    if (kind == {ARRIVE}) tile::mbarrier_arrive(bar + barrier);
    if (kind == {WAIT}) tile::mbarrier_wait(bar + barrier, 0);
    if (kind == {SYNC}) tile::sync();
  }}
  const int mine = tid - 40;  // a copy that nobody waits for would be another mistake
  if (mine >= 0 && mine < {STEPS} && int(P[{STEPS} * {THREADS} * 3 + mine]) > 0) {{
    tile::mbarrier_wait(bar + mine, 0);
  }}
}}
TILE_EXPORT(programs)
"""


@dataclass(frozen=True)
class Operation:
    """What one thread does in one step: to a chunk, at a barrier."""

    kind: int
    chunk: int = 0
    barrier: int = 0


@dataclass
class Program:
    """Steps, each with what some threads do; arrivals that each barrier needs."""

    steps: list[dict[int, Operation]] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=lambda: [0] * STEPS)


def draw(rng: np.random.Generator) -> Program:
    """Draw a program in which nobody waits for ever: barriers complete before they are awaited."""
    program = Program()
    complete: list[int] = []
    for number in range(STEPS):
        step: dict[int, Operation] = {}
        if rng.random() < 0.1:
            program.steps.append({t: Operation(SYNC) for t in range(THREADS)})
            continue
        for thread in ACTORS:
            chunk, choice = int(rng.integers(CHUNKS)), rng.random()
            if choice < 0.08:
                step[thread] = Operation(READ, chunk)
            elif choice < 0.11:
                step[thread] = Operation(WRITE, chunk)
            elif choice < 0.16:
                step[thread] = Operation(COPY, chunk, number)
            elif choice < 0.30:
                step[thread] = Operation(ARRIVE, barrier=number)
            elif choice < 0.70 and complete:
                step[thread] = Operation(WAIT, barrier=int(rng.choice(complete)))
        arriving = [t for t, op in step.items() if op.kind in (COPY, ARRIVE)]
        if arriving:
            program.arrivals[number] = len(arriving)
            complete.append(number)
        program.steps.append(step)
    return program


@dataclass(frozen=True)
class Access:
    """One access; a copy is known by those that waited for its barrier."""

    number: int
    chunk: int
    writes: bool


def is_unordered(program: Program) -> bool:
    """Whether two accesses to one chunk, one of which writes, have no order."""
    known: dict[int, set[int]] = {t: set() for t in range(THREADS)}
    left: dict[int, set[int]] = {}
    accesses: list[Access] = []

    def conflicts(access: Access, before: set[int]) -> bool:
        return any(
            a.chunk == access.chunk and (a.writes or access.writes) and a.number not in before
            for a in accesses
        )

    for number, step in enumerate(program.steps):
        found: set[int] = set()
        if step and next(iter(step.values())).kind == SYNC:
            everything = set().union(*known.values())
            known = {t: set(everything) for t in known}
            continue
        for thread, op in sorted(step.items()):
            if op.kind in (READ, WRITE, COPY):
                access = Access(len(accesses), op.chunk, op.kind != READ)
                if conflicts(access, known[thread]):
                    return True
                accesses.append(access)
                if op.kind == COPY:
                    found |= known[thread] | {access.number}
                else:
                    known[thread] = known[thread] | {access.number}
            elif op.kind == ARRIVE:
                found |= known[thread]
            elif op.kind == WAIT:
                known[thread] = known[thread] | left[op.barrier]
        left[number] = found
    return False


def table(program: Program) -> np.ndarray:
    rows = np.zeros((STEPS, THREADS, 3), np.int32)
    for number, step in enumerate(program.steps):
        for thread, op in step.items():
            rows[number, thread] = op.kind, op.chunk, op.barrier
    return np.concatenate([rows.ravel(), np.array(program.arrivals, np.int32)])


@pytest.fixture(scope="module")
def kernel() -> SourceKernel:
    return SourceKernel(KERNEL, "programs", block=THREADS, shared_bytes=16 * CHUNKS + 8 * STEPS)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("async_mode", ["late", "early", "random"])
@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:4"])
def test_order_is_known_exactly(kernel: SourceKernel, schedule: str, async_mode: str) -> None:
    outcomes = {True: 0, False: 0}
    memory = np.arange(4 * CHUNKS, dtype=np.int32)
    for seed in range(120):
        program = draw(np.random.default_rng(seed))
        expected = is_unordered(program)
        outcomes[expected] += 1
        found = False
        try:
            with checking("race,wait", schedule=schedule, async_mode=async_mode):
                kernel(1, P=table(program), A=memory)
        except (DataRace, MissingWait):
            found = True
        assert found == expected, f"seed {seed}"
    assert min(outcomes.values()) > 15, outcomes
