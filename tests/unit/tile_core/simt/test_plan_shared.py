"""Where shared tiles lie: lifetimes, places, limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import tile_api.language as T
from tile_core.analysis.liveness import live_intervals
from tile_core.dtypes import dtype_of
from tile_core.errors import OutOfScratch
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.node import walk
from tile_core.ir.stmt import Launch
from tile_core.machine import SimtMachine
from tile_core.simt.plan_shared import add_workspaces, plan_shared

MACHINE = SimtMachine(name="sm_80", family="cuda", shared_bytes=166912, features=frozenset())


@dataclass
class Rows:
    """Places of tiles stored by rows."""

    flats: dict[Buffer, Buffer] = field(default_factory=dict)

    def flat(self, tile: Buffer) -> Buffer:
        shape = (math.prod(tile.static_shape or ()),)
        return self.flats.setdefault(tile, replace(tile, shape=shape))


def launch_of(function: Any) -> Launch:
    (launch,) = [n for n in walk(function.kernel) if isinstance(n, Launch)]
    return launch


def planned(function: Any, **options: Any) -> tuple[dict[str, int], int]:
    places: Any = Rows()
    offsets, total = plan_shared(launch_of(function), places, MACHINE, **options)
    return {flat.name: offset for flat, offset in offsets.items()}, total


def alive(function: Any) -> dict[str, tuple[int, int]]:
    found = live_intervals(launch_of(function).body)
    return {tile.name: (stretch.first, stretch.last) for tile, stretch in found.items()}


@T.prim_func
def in_turn(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=64):
        first = T.alloc_shared((64, 64), "float32")
        second = T.alloc_shared((32, 64), "float32")
        third = T.alloc_shared((5,), "float32")
        T.copy(A, first)
        T.copy(first, B)
        T.clear(second)
        T.copy(second, B[0, 0])
        T.clear(third)
        T.copy(third, B[0, 0:5])


def test_tiles_in_turn_share_bytes() -> None:
    assert planned(in_turn) == ({"first": 0, "second": 0, "third": 0}, 64 * 64 * 4)


def test_sharing_can_be_switched_off() -> None:
    offsets, total = planned(in_turn, reuse=False)
    assert offsets == {"first": 0, "second": 16384, "third": 16384 + 8192}
    assert total == 16384 + 8192 + 20


def test_tiles_at_one_time_are_apart() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((3,), "float32")
            b = T.alloc_shared((70,), "float32")
            c = T.alloc_shared((64,), "int8")
            T.clear(a)
            T.clear(b)
            T.clear(c)
            for i in T.Parallel(3):
                A[i] = a[i] + b[i] + c[i]

    assert planned(main) == ({"a": 352, "b": 0, "c": 288}, 364)


def test_what_rounds_hand_on_is_alive_in_all_of_the_loop() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=64):
            own = T.alloc_shared((64,), "float32")
            kept = T.alloc_shared((64,), "float32")
            other = T.alloc_shared((64,), "float32")
            T.clear(kept)
            for k in range(8):
                T.copy(A[k, 0:64], own)
                for i in T.Parallel(64):
                    kept[i] += own[i]
                T.clear(other)
                T.copy(other, B[k, 0:64])
            T.copy(kept, B[0, 0:64])

    found = alive(main)
    assert found["kept"][0] < found["own"][0]
    assert found["kept"][1] > found["other"][1]
    assert found["own"][1] < found["other"][0]
    offsets, total = planned(main)
    assert offsets["own"] == offsets["other"] != offsets["kept"]
    assert total == 512


def test_a_half_written_tile_is_kept() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=64):
            half = T.alloc_shared((64,), "float32")
            other = T.alloc_shared((64,), "float32")
            T.clear(half)
            for k in range(8):
                T.copy(A[k, 0:32], half[0:32])
                T.copy(half, B[k, 0:64])
                T.clear(other)
                T.copy(other, B[k, 0:64])

    offsets, _ = planned(main)
    assert offsets["half"] != offsets["other"]


def test_too_much_names_the_tiles() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((200, 128), "float32")
            b = T.alloc_shared((200, 128), "float32")
            T.clear(a)
            T.clear(b)
            A[0] = a[0, 0] + b[0, 0]

    with pytest.raises(OutOfScratch) as refused:
        planned(main)
    error = refused.value
    assert error.message == (
        "a block needs 204800 bytes of shared memory, and sm_80 gives it 166912"
    )
    assert error.span is not None
    assert [note.text for note in error.notes] == [
        "a[200, 128] of float32 takes 102400 bytes",
        "b[200, 128] of float32 takes 102400 bytes",
    ]


def test_workspaces_lie_behind_the_tiles() -> None:
    parts = [Buffer(f"w{n}", (n,), dtype_of("float32"), Scope.SHARED) for n in (8, 32)]
    tile = Buffer("s", (5,), dtype_of("float32"), Scope.SHARED)
    offsets, total = add_workspaces(parts, {tile: 0}, 20, MACHINE, None)
    assert (offsets, total) == ({tile: 0, parts[0]: 32, parts[1]: 32}, 160)
    assert add_workspaces([], {tile: 0}, 20, MACHINE, None) == ({tile: 0}, 20)
    with pytest.raises(OutOfScratch, match="a block needs 166928 bytes"):
        add_workspaces(parts, {tile: 0}, MACHINE.shared_bytes - 112, MACHINE, None)
