"""Barriers of grids whose blocks all run at a time: the text that GPUs run, in the emulator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.toolchain import amd_compiler_for
from tile_core.errors import DataRace, Deadlock, LaunchError
from tile_sim import checking
from tile_sim.executable import Executable

TARGETS = ("cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
SCHEDULES = ("forward", "reverse", "random:1", "random:2")


@T.prim_func
def exchange(A: T.Tensor((3, 2, 64), "int32"), B: T.Tensor((3, 2, 64), "int32"), n: T.int32):
    """Blocks give their row to the next block, `n` times, and add what they get."""
    with T.Kernel(2, 3, threads=64) as (bx, by):
        tx = T.get_thread_binding()
        mine = T.alloc_var("int32", 0)
        mine = A[by, bx, tx]
        for k in T.serial(n):
            B[by, bx, tx] = mine
            T.sync_grid()
            mine += B[(by + 1) % 3, 1 - bx, 63 - tx] + k
            T.sync_grid()
        A[by, bx, tx] = mine


@T.prim_func
def products(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), rounds: T.int32):
    """Powers of a matrix, two blocks of rows: each reads what the other has written."""
    with T.Kernel(2, threads=128) as bx:
        left = T.alloc_shared((32, 64), "float16")
        right = T.alloc_shared((64, 64), "float16")
        sums = T.alloc_fragment((32, 64), "float32")
        for _ in T.serial(rounds):
            T.clear(sums)
            for _ in T.Pipelined(1, num_stages=1):
                T.copy(A[bx * 32 : bx * 32 + 32, :], left)
                T.copy(A, right)
                T.gemm(left, right, sums)
            T.copy(sums, B[bx * 32 : bx * 32 + 32, :])
            T.sync_grid()
            T.copy(B[bx * 32 : bx * 32 + 32, :], A[bx * 32 : bx * 32 + 32, :])
            T.sync_grid()


def exchanged(a: np.ndarray, rounds: int) -> np.ndarray:
    for k in range(rounds):
        a = a + np.roll(a, -1, 0)[:, ::-1, ::-1] + k
    return a


def rows() -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 10, (3, 2, 64)).astype(np.int32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_gives_the_result(target: str, schedule: str) -> None:
    run, a = tile.compile(exchange, target=target), rows()
    got = a.copy()
    with checking("all", schedule=schedule):
        run(got, np.zeros_like(a), 5)
    np.testing.assert_array_equal(got, exchanged(a, 5))


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_what_others_have_written(target: str) -> None:
    run = tile.compile(products, target=target)
    turns = np.eye(64, dtype=np.float16)[np.random.default_rng(1).permutation(64)]
    got = turns.copy()
    with checking("all", schedule="random:3"):
        run(got, np.zeros_like(turns), 2)
    np.testing.assert_array_equal(got, np.linalg.matrix_power(turns.astype(np.float32), 4))


def weakened(text: str) -> Iterator[tuple[str, str]]:
    """Yield texts that lack a barrier of the block, an order of memory, or a whole barrier."""
    for what in ("tile::sync();", "tile::release", "tile::acquire"):
        instead = "" if "sync" in what else "tile::relaxed"
        for found in re.finditer(re.escape(what), text):
            number = text[: found.start()].count("\n") + 1
            yield f"{what} in line {number}", text[: found.start()] + instead + text[found.end() :]
    meeting = r" +tile::sync\(\);[^\n]*\n +if \(tx == 0\) \{\n.*?\n +tile::sync\(\);\n"
    whole = re.compile(meeting, re.DOTALL)
    for found in whole.finditer(text):
        yield "a barrier of the grid", text[: found.start()] + text[found.end() :]


def fault_of(run: Executable, schedule: str) -> str | None:
    """Return what is wrong with three rounds: a race that is reported, or the result."""
    a = rows()
    try:
        with checking("race", schedule=schedule):
            run(a, np.zeros_like(a), 3)
    except DataRace:
        return "race"
    return None if np.array_equal(a, exchanged(rows(), 3)) else "result"


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
def test_nothing_of_it_can_be_left_out(target: str) -> None:
    artifact: Any = tile.compile(exchange, target=target).artifact
    found = []
    for what, text in weakened(artifact.printed.text):
        changed = replace(artifact, printed=replace(artifact.printed, text=text))
        broken = Executable(changed, artifact.program.kernel)
        caught = [fault_of(broken, schedule) for schedule in SCHEDULES]
        # Without a whole barrier a block may write ahead of who reads, and tell of it in time.
        assert None not in caught, (what, caught)
        assert "race" in caught, (what, caught)
        found.append(what)
    assert len(found) == 4 + 2 + 2 + 2, found


def test_one_launch_of_the_program_is_cooperative() -> None:
    source = tile.compile(exchange, target="cuda:sm_80@sim").get_kernel_source()
    assert source.count("tile::atomic_add(grid_arrivals, bx == 0 && by == 0 ? 2147483643u : 1u, "
                        "tile::release)") == 2  # fmt: skip
    program: Any = tile.compile(exchange, target="cuda:sm_80@sim").artifact
    assert [f.cooperative for f in program.program.functions] == [False, True]


def test_top_level_barriers_split_launches_of_any_size() -> None:
    @T.prim_func
    def many(A: T.Tensor((1000, 32), "int32"), B: T.Tensor((1000, 32), "int32")):
        with T.Kernel(1000, threads=32) as bx:
            tx = T.get_thread_binding()
            A[bx, tx] = bx
            T.sync_grid()
            B[bx, tx] = A[999 - bx, tx]

    run = tile.compile(many, target="cuda:sm_80@sim")
    a, b = np.zeros((2, 1000, 32), np.int32)
    run(a, b)
    np.testing.assert_array_equal(b[:, 0], np.arange(1000)[::-1])
    program: Any = run.artifact
    assert [f.cooperative for f in program.program.functions] == [False, False]


def test_more_blocks_than_run_at_a_time() -> None:
    @T.prim_func
    def wide(A: T.Tensor((1000,), "int32"), n: T.int32, blocks: T.int32):
        with T.Kernel(blocks, threads=256) as bx:
            for k in T.serial(n):
                if bx % 2 == k % 2:
                    A[bx] += A[(bx + 1) % blocks] + 1
                T.sync_grid()

    run = tile.compile(wide, target="cuda:sm_80@sim")
    a = np.zeros(1000, np.int32)
    run(a, 2, 100)
    np.testing.assert_array_equal(a[:100], [1, 2] * 50)
    with pytest.raises(LaunchError) as caught:
        run(a, 3, 103)
    assert str(caught.value).startswith(
        "[TL6001] wide_2: the 103 blocks of the grid wait for each other, and at most 102 of 256 "
        "threads run at a time in the emulator\n"
    )
    assert caught.value.span is not None


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_block_that_does_not_come(schedule: str) -> None:
    @T.prim_func
    def uneven(A: T.Tensor((3,), "int32"), n: T.int32):
        with T.Kernel(3, threads=32) as bx:
            for _ in T.serial(n - bx // 2):
                T.sync_grid()
            A[bx] = n

    run = tile.compile(uneven, target="cuda:sm_80@sim")
    with checking("all", schedule=schedule), pytest.raises(Deadlock) as caught:
        run(np.zeros(3, np.int32), 4)
    assert str(caught.value).startswith(
        "[TL6504] blocks of the grid wait for each other for ever\n"
    )
    assert "block 0: threads 0 read memory that nobody changes" in str(caught.value)
    assert "block 2: threads 0-31 have exited" in str(caught.value)


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_the_machine_code_orders_memory(target: str) -> None:
    kernel: Any = tile.compile(exchange, target=target)
    function = kernel.artifact.ptx.partition("exchange_2")[2]
    parts = [r"bar\.sync", r"(membar|fence)\S*\.(gl|gpu)", r"atom\.\S*add\.u32",
             r"ld\.volatile\.\S*u32", r"(membar|fence)\S*\.(gl|gpu)", r"bar\.sync"]  # fmt: skip
    assert len(re.findall(".*?".join(parts), function, re.DOTALL)) == 2


def test_the_machine_code_of_amd_orders_memory() -> None:
    """All of the wave's writes reach the other caches before the count, and old lines are left."""
    amd_compiler_for("gfx942")
    kernel: Any = tile.compile(exchange, target="hip:gfx942")
    parts = ["buffer_wbl2 sc1", "global_atomic_add ", "global_load_dword .*sc1", "buffer_inv sc1"]
    assert len(re.findall(".*?".join(parts), kernel.artifact.asm(), re.DOTALL)) >= 1
