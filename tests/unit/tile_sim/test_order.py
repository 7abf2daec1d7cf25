"""Which accesses the emulator takes for ordered: barriers, warps, atomics, blocks, copies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tile_core.errors import DataRace, Deadlock, TileError
from tile_sim import checking
from tile_sim.sources import SourceKernel

SCHEDULES = ("forward", "reverse", "random:5")


@dataclass(frozen=True)
class Case:
    """The body of a kernel on `s`, 256 shared ints, and `O`, a global array of ints."""

    body: str
    threads: int = 128
    blocks: int = 1
    warp_size: int = 32
    line: str = ""
    """Of a race: how the line that is reported, or the other one, ends."""


RIGHT = {
    "a barrier orders": Case("s[tid] = 1;\ntile::sync();\nO[tid] = s[127 - tid];"),
    "a barrier orders reads before writes": Case(
        "s[tid] = 1;\ntile::sync();\nconst int x = s[0];\ntile::sync();\ns[tid] = x;\n"
    ),
    "a barrier of 1024 threads": Case(
        "s[tid & 255] = 1;\ntile::sync();\nO[tid] = s[(tid + 1) & 255];", 1024
    ),
    "a warp's barrier orders its lanes": Case(
        "s[tid] = 1;\ntile::sync_warp();\nO[tid] = s[tid ^ 31];"
    ),
    "a warp of 64 lanes": Case(
        "s[tid] = 1;\ntile::sync_warp();\nO[tid] = s[tid ^ 63];", warp_size=64
    ),
    "part of a warp": Case(
        "if (tid & 1) {\ns[tid] = 1;\ntile::sync_warp(0xaaaaaaaau);\nO[tid] = s[tid ^ 2];\n}", 64
    ),
    "those that arrive come before those that wait": Case(
        "if (tid < 64) {\ns[tid] = 1;\ntile::bar_arrive(2, 128);\n} else {\n"
        "tile::bar_sync(2, 128);\nO[tid] = s[127 - tid];\n}"
    ),
    "a barrier of some orders by way of a third": Case(
        "if (tid < 64) {\ns[tid] = 1;\ntile::bar_sync(1, 96);\n}\n"
        "else if (tid < 96) {\ntile::bar_sync(1, 96);\ntile::bar_sync(2, 64);\n}\n"
        "else {\ntile::bar_sync(2, 64);\nO[tid] = s[tid - 96];\n}"
    ),
    "threads that have exited": Case(
        "s[tid] = tid;\nif (tid >= 64) return;\ntile::sync();\nO[tid] = s[127 - tid];"
    ),
    "neighbours of a byte": Case(
        "tile::sptr<tile::u8> b = tile::view<tile::u8>(s);\n"
        "b[tid] = tile::u8(tid);\ntile::sync_warp();\nO[tid] = b[tid ^ 1];\n"
    ),
    "vectors after scalars": Case(
        "s[tid] = tid;\ntile::sync();\ntile::frag<int, 4> v;\n"
        "if (tid < 32) {\ntile::load<4>(v + 0, s + tid * 4);\n"
        "tile::store<4>(O + tid * 4, v + 0);\n}"
    ),
    "copies of one value": Case("s[tid / 4] = tid / 4;\ntile::sync();\nO[tid / 8] = tid / 8;"),
    "atomics do not conflict": Case(
        "if (tid == 0) {\ns[0] = 0;\n}\ntile::sync();\ntile::atomic_add(s + 0, 1);\n"
        "tile::sync();\nO[tid] = s[0];"
    ),
    "atomics of all blocks": Case("tile::atomic_add(O + 0, 1);", blocks=4),
    "the last block reads what all have written": Case(
        "O[8 + bx * 128 + tid] = bx;\ntile::sync();\n"
        "if (tid == 0) {\ns[0] = tile::atomic_add(O + 0, 1, tile::acq_rel);\n}\ntile::sync();\n"
        "if (s[0] == 3) {\nO[8 + tid] = O[8 + 128 + tid];\n}", blocks=4,
    ),
    "blocks that read the same": Case("O[8 + bx * 128 + tid] = O[tid & 7];", blocks=3),
    "a copy and its wait": Case(
        "tile::cp_async<4>(s + tid, O + tid);\ntile::cp_async_commit();\n"
        "tile::cp_async_wait<0>();\nO[200 + tid] = s[tid];"
    ),
}  # fmt: skip

WRONG = {
    "no barrier": Case("s[tid] = 1;\nO[tid] = s[127 - tid];", line="O[tid] = s[127 - tid];"),
    "no barrier before the next write": Case(
        "s[tid] = 1;\ntile::sync();\nconst int x = s[127 - tid];\ns[tid] = x;", line="s[tid] = x;"
    ),
    "many readers, then a write": Case(
        "s[tid] = 1;\ntile::sync();\nO[tid] = s[0];\nif (tid == 77) {\ns[0] = 5;\n}",
        line="s[0] = 5;",
    ),
    "a shuffle orders nothing": Case(
        "s[tid] = tid;\nconst int x = tile::shfl_xor(tid, 1);\nO[tid] = s[tid ^ 1] + x;",
        line="O[tid] = s[tid ^ 1] + x;",
    ),
    "a warp's barrier between warps": Case(
        "s[tid] = 1;\ntile::sync_warp();\nO[tid] = s[tid ^ 32];", line="O[tid] = s[tid ^ 32];"
    ),
    "those that arrive learn nothing": Case(
        "s[tid] = 1;\nif (tid < 64) {\ntile::bar_arrive(2, 128);\nO[tid] = s[127 - tid];\n"
        "} else {\ntile::bar_sync(2, 128);\n}", line="O[tid] = s[127 - tid];",
    ),
    "half a byte's neighbour": Case(
        "tile::sptr<tile::u8> b = tile::view<tile::u8>(s);\n"
        "b[tid] = tile::u8(tid);\nif (tid < 32) {\nO[tid] = s[tid];\n}", line="O[tid] = s[tid];",
    ),
    "different values at one place": Case("s[tid / 4] = tid;", line="s[tid / 4] = tid;"),
    "an atomic and a plain read": Case(
        "if (tid == 0) {\ns[0] = 0;\n}\ntile::sync();\ntile::atomic_add(s + 0, 1);\nO[tid] = s[0];",
        line="O[tid] = s[0];",
    ),
    "blocks that overlap": Case("O[bx * 64 + tid] = bx;", blocks=2, line="O[bx * 64 + tid] = bx;"),
    "a block reads what another writes": Case(
        "O[bx * 128 + tid] = O[(1 - bx) * 128 + tid] + 1;", blocks=2,
        line="O[bx * 128 + tid] = O[(1 - bx) * 128 + tid] + 1;",
    ),
    "threads of a block in global memory": Case(
        "O[tid] = tid;\nO[256 + tid] = O[127 - tid];", line="O[256 + tid] = O[127 - tid];"
    ),
}  # fmt: skip


def _text(case: Case) -> str:
    return f"""#include "tile.h"
TILE_KERNEL({case.threads}, 1) void order(tile::gptr<int> O) {{
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  tile::sptr<int> s = tile::smem<int>(0, 256);
{case.body}
}}
TILE_EXPORT(order)
"""


def _run(case: Case, schedule: str) -> None:
    kernel = SourceKernel(
        _text(case), "order", block=case.threads, shared_bytes=1024, warp_size=case.warp_size
    )
    with checking("all", schedule=schedule):
        kernel(case.blocks, O=np.zeros(1032, np.int32))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", RIGHT)
def test_ordered_accesses_are_no_race(name: str, schedule: str) -> None:
    _run(RIGHT[name], schedule)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", WRONG)
def test_unordered_accesses_are_a_race(name: str, schedule: str) -> None:
    case = WRONG[name]
    with pytest.raises(TileError) as caught:
        _run(case, schedule)
    error = caught.value
    assert isinstance(error, DataRace), str(error)
    spans = [error.span, *(note.span for note in error.notes)]
    lines = {span.line for span in spans if span is not None}
    assert _text(case).splitlines().index(case.line) + 1 in lines, str(error)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "body",
    ["if (tid < 100) {\ntile::sync();\n}\nO[tid] = 1;", "if (tid >= 32) {\ntile::sync();\n}"],
)
def test_a_barrier_of_all_that_some_run_past(body: str, schedule: str) -> None:
    """Machines let it open once the others have exited: nothing hangs, and it is wrong."""
    with pytest.raises(Deadlock, match="ran to the end without it") as caught:
        _run(Case(body), schedule)
    assert caught.value.span is not None
    assert _text(Case(body)).splitlines()[caught.value.span.line - 1] == "tile::sync();"
