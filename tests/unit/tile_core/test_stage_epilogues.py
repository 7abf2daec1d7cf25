"""Results of products on their way to tensors: which stores take two steps, why others do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.remarked import remarked
from tile_core.interp import interpret
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel, Stmt
from tile_core.ir.verify import verify
from tile_core.machine import Multiprocessor, SimtMachine
from tile_core.ops.copy import Copy
from tile_core.passes.stage_epilogues import stage_epilogues
from tile_core.testing import build_ir as ir

KIB = 1024
MACHINE = SimtMachine(
    name="sm_75",
    family="cuda",
    shared_bytes=64 * KIB,
    features=frozenset(),
    multiprocessor=Multiprocessor(1024, 16, 64 * KIB),
)
TWO_STEPS = ["sums > sums_rows", "sums_rows > C"]


def product(
    out: str = "float16",
    columns: int = 32,
    *,
    stores: int = 1,
    again: bool = False,
    threads: int = 64,
    **wishes: Any,
) -> Kernel:
    """Return a kernel that stores a product of 32 rows as elements of type `out`.

    Parameters
    ----------
    stores
        How often it is multiplied and stored.
    again
        Whether the factors are needed again behind the last store.
    """
    a, b = ir.tensor("A", (32, 32), "float16"), ir.tensor("B", (32, columns), "float16")
    c = ir.tensor("C", (32, columns), out)
    a_s, b_s = (ir.shared(t.name.lower(), t.shape, "float16") for t in (a, b))
    sums = ir.fragment("sums", (32, columns))
    multiply = [ir.fill(sums, 0), ir.gemm(a_s, b_s, sums)]
    body = [*ir.alloc(a_s, b_s, sums), ir.copy(a, a_s), ir.copy(b, b_s)]
    for _ in range(stores):
        body += [ir.gemm(a_s, b_s, sums, clear=True), replace(ir.copy(sums, c), **wishes)]
    body += multiply if again else []
    return ir.kernel([a, b, c], 1, lambda bx: body, threads=threads)


def ways(kernel: Kernel) -> list[str]:
    """Return the copies from register tiles, and those to tensors."""
    copies = (n for n in walk(kernel) if isinstance(n, Copy))
    return [
        f"{op.src.buffer.name} > {op.dst.buffer.name}"
        for op in copies
        if op.dst.buffer.scope is Scope.GLOBAL or op.src.buffer.scope is Scope.FRAGMENT
    ]


def test_a_store_takes_two_steps() -> None:
    done = remarked(stage_epilogues, product(), MACHINE)
    verify(done.kernel)
    text = [line.strip() for line in print_kernel(done.kernel).splitlines()]
    assert text[-3:] == [
        "alloc sums_rows: shared float16[32, 32]",
        "@copy(src=sums[0:32, 0:32], dst=sums_rows[0:32, 0:32])",
        "@copy(src=sums_rows[0:32, 0:32], dst=C[0:32, 0:32])",
    ]
    assert done.notes == ()
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float16) for _ in range(2))
    c = np.full((32, 32), np.nan, np.float16)
    interpret(done.kernel, [a, b, c])
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("out", ["int8", "float8_e4m3fn", "bfloat16"])
def test_short_elements_are_staged(out: str) -> None:
    assert ways(stage_epilogues(product(out), MACHINE)) == TWO_STEPS


def test_wishes_for_the_tensor_are_kept() -> None:
    done = remarked(
        stage_epilogues, product(disable_bulk=True, eviction_policy="evict_first"), MACHINE
    )
    last = [n for n in walk(done.kernel) if isinstance(n, Copy)][-1]
    assert (last.disable_bulk, last.eviction_policy) == (True, "evict_first")


@pytest.mark.parametrize(
    "kernel",
    [
        product("float32"),
        product("int4"),
        product(columns=8),
        product("int8", columns=40),
        product(coalesced_width=2),
        product(prefer_instruction="cp_async"),
    ],
    ids=["words", "parts of bytes", "short rows", "parts of chunks", "a width", "an instruction"],
)
def test_other_stores_stay(kernel: Kernel) -> None:
    done = remarked(stage_epilogues, kernel, MACHINE)
    assert done.kernel is kernel
    assert done.notes == ()


TILES = {
    "A": ir.tensor("A", (16, 16)),
    "C": ir.tensor("C", (16, 16), "float16"),
    "s": ir.shared("s", (16, 16), "float16"),
    "sums": ir.fragment("sums", (16, 16)),
    "half": ir.fragment("half", (16, 16), "float16"),
    "more": ir.fragment("more", (16, 16), "float16"),
    "column": ir.fragment("column", (16,)),
}


def step(words: str) -> Stmt:
    """Return what brings the contents of a tile to another, as in ``"sums > half"``."""
    source, target = (TILES[name] for name in words.split(" > "))
    if target.scope is not Scope.FRAGMENT:
        return ir.copy(source, target)

    def of(tile: Buffer, indices: Sequence[Any]) -> Sequence[Any]:
        return indices[: tile.rank]

    return ir.parallel(
        (16, 16),
        lambda i, j: ir.store(target, of(target, (i, j)), ir.load(source, *of(source, (i, j)))),
    )


@pytest.mark.parametrize(
    ("steps", "is_staged"),
    [
        (["sums > C"], True),
        (["sums > half", "half > C"], True),
        (["half > more", "sums > half", "more > C"], True),
        (["sums > column", "column > half", "half > C"], False),
        (["A > half", "half > C"], False),
        (["sums > s", "s > C"], False),
    ],
)
def test_results_are_followed_from_tile_to_tile(steps: list[str], *, is_staged: bool) -> None:
    tiles = [tile for tile in TILES.values() if tile.scope is not Scope.GLOBAL]
    a, c, sums = TILES["A"], TILES["C"], TILES["sums"]
    body = [*ir.alloc(*tiles), ir.gemm(a, a, sums), *map(step, steps)]
    kernel = ir.kernel([a, c], 1, lambda bx: body, threads=32)
    assert (stage_epilogues(kernel, MACHINE) is not kernel) is is_staged


@pytest.mark.parametrize("rows", [8, 16])
def test_parts_of_results_are_stored_in_loops_and_branches(rows: int) -> None:
    a, c = ir.tensor("A", (16, 16)), ir.tensor("C", (4, rows, 16), "float16")
    sums = TILES["sums"]
    part = ir.region(sums, (16 - rows, 0), (rows, 16))

    def store(k: Any) -> Any:
        return ir.when(k > 0, ir.copy(part, ir.region(c, (k, 0, 0), (1, rows, 16))))

    body = [*ir.alloc(sums), ir.gemm(a, a, sums, clear=True), ir.serial(4, store)]
    kernel = ir.kernel([a, c], 1, lambda bx: body, threads=32)
    done = stage_epilogues(kernel, MACHINE)
    assert ways(done) == TWO_STEPS
    verify(done)
    values = np.arange(256, dtype=np.float32).reshape(16, 16) % 7
    results = np.full((2, 4, rows, 16), -1, np.float16)
    for program, result in zip((kernel, done), results, strict=True):
        interpret(program, [values, result])
    np.testing.assert_array_equal(results[1], results[0])
    assert (results[0, 1:] == (values @ values)[16 - rows :]).all()


def test_a_whole_tensor_takes_a_part_of_a_tile_from_registers() -> None:
    """A tile for the part alone would be compared with the tensor, and has another shape."""
    a, c = ir.tensor("A", (16, 16)), ir.tensor("C", (1, 8, 16), "float16")
    sums = TILES["sums"]
    store = ir.copy(ir.region(sums, (0, 0), (8, 16)), c)
    body = [*ir.alloc(sums), ir.gemm(a, a, sums), store]
    kernel = ir.kernel([a, c], 1, lambda bx: body, threads=32)
    assert stage_epilogues(kernel, MACHINE) is kernel


# Room ----------------------------------------------------------------------------------------


def test_rows_take_the_place_of_factors() -> None:
    """The factors are 4 KiB, their room is enough for 2 KiB of results."""
    none_more = replace(MACHINE, shared_bytes=4 * KIB)
    assert ways(stage_epilogues(product(), none_more)) == TWO_STEPS


def test_a_block_gets_no_more_than_the_machine_gives_it() -> None:
    done = remarked(stage_epilogues, product(again=True), replace(MACHINE, shared_bytes=4 * KIB))
    assert [note.message for note in done.notes] == [
        "'sums' is stored from registers: with its rows in shared memory the block would need "
        "6144 bytes, and sm_75 gives it 4096"
    ]
    assert ways(done.kernel) == ["sums > C"]


def test_blocks_that_ran_at_once_still_do() -> None:
    """Registers, 16 for sums and 64 for the rest, admit 12 blocks; 6 of 64 KiB each admit 10."""
    done = remarked(stage_epilogues, product(again=True), MACHINE)
    assert [note.message for note in done.notes] == [
        "'sums' is stored from registers: with its rows in shared memory the block would need "
        "6144 bytes instead of 4096, and 10 of them could run at once instead of 12"
    ]
    assert ways(done.kernel) == ["sums > C"]


def test_blocks_that_could_not_run_anyway_are_not_counted() -> None:
    """Eight blocks of 128 threads are all that a multiprocessor holds."""
    assert ways(stage_epilogues(product(again=True, threads=128), MACHINE)) == TWO_STEPS


def test_nobody_knows_how_many_run_at_once() -> None:
    unknown = replace(MACHINE, multiprocessor=None)
    assert ways(stage_epilogues(product(again=True), unknown)) == TWO_STEPS


def test_some_stores_are_staged_where_not_all_can_be() -> None:
    """The first leaves the factors alive, the second may take their place."""
    done = remarked(stage_epilogues, product(stores=2), replace(MACHINE, shared_bytes=4 * KIB))
    assert ways(done.kernel) == ["sums > C", *TWO_STEPS]
    assert len(done.notes) == 1
