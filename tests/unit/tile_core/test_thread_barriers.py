"""Barriers between accesses that explicit programs of threads make: few, and enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tile_api.language as T
from tile_core.errors import DataRace
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel, Launch, Seq
from tile_core.ops.control import Barrier
from tile_core.ops.operator_table import OPERATORS
from tile_core.passes.insert_barriers import insert_barriers
from tile_core.passes.order_threads import order_threads

HEAD = """\
kernel main(A: global int32[64], B: global int32[64]):
  launch bx: int32 in (2) threads tx: int32, ty: int32, tz: int32 in ({threads}):
    alloc s: shared int32[{size}]
    alloc r: shared int32[{size}]
    alloc v: local int32[1]
"""


def program(text: str, threads: str = "64, 1, 1", size: str = "64") -> Kernel:
    body = "".join(f"    {line}\n" for line in text.strip("\n").splitlines())
    return parse_kernel(HEAD.format(threads=threads, size=size) + body, OPERATORS, str)


def outline(kernel: Kernel) -> list[str]:
    lines = print_kernel(order_threads(kernel)).splitlines()[2:]
    return [line[4:] for line in lines if "alloc" not in line]


def barriers(kernel: Node) -> int:
    return sum(isinstance(n, Barrier) for n in walk(kernel))


def added(text: str, threads: str = "64, 1, 1", size: str = "64") -> int:
    kernel = program(text, threads, size)
    return barriers(order_threads(kernel)) - barriers(kernel)


def test_between_a_write_and_a_read_of_another() -> None:
    made = outline(program("s[tx] = A[tx]\nB[tx] = s[63 - tx]"))
    assert made == ["s[tx] = A[tx]", "@barrier()", "B[tx] = s[63 - tx]"]


def test_what_each_thread_has_for_itself_needs_none() -> None:
    assert added("s[tx] = A[tx]\ns[tx] = s[tx] + 1\nB[tx] = s[tx]") == 0


def test_what_the_program_says_counts() -> None:
    assert added("s[tx] = A[tx]\n@barrier()\nB[tx] = s[63 - tx]") == 0
    assert added("s[tx] = A[tx]\n@barrier()\nB[tx] = s[63 - tx]\ns[tx] = 1") == 1


def test_loops_that_never_run_need_none() -> None:
    inside = "for k: int32 in range(0, 0, 1) serial:\n  if tx != k:\n    v[0] = s[63 - tx]"
    assert added(f"s[tx] = A[tx]\n{inside}\nB[tx] = s[tx]") == 0


@pytest.mark.parametrize(
    ("count", "text", "threads", "size"),
    [
        # one element, two threads: exactly by the numbers
        (0, "s[tx] = A[tx]\nB[tx] = s[tx ^ 0]", "64, 1, 1", "64"),
        (1, "s[tx] = A[tx]\nB[tx] = s[tx ^ 1]", "64, 1, 1", "64"),
        (0, "s[tx // 8 * 8 + tx % 8] = A[tx]\nB[tx] = s[tx]", "64, 1, 1", "64"),
        (0, "s[ty * 16 + tx] = 1\nB[tx] = s[tx + ty * 16]", "16, 4, 1", "64"),
        (1, "s[ty * 16 + tx] = 1\nB[tx] = s[tx * 4 + ty]", "16, 4, 1", "64"),
        (0, "s[tx] = 1\nB[tx] = s[tx + 64]", "64, 1, 1", "128"),
        (0, "s[bx * 64 + tx] = 1\nB[tx] = s[bx * 64 + tx]", "64, 1, 1", "128"),
        (1, "s[bx * 64 + tx] = 1\nB[tx] = s[bx * 64 + 63 - tx]", "64, 1, 1", "128"),
        (1, "s[A[tx]] = 1\nB[tx] = s[tx]", "64, 1, 1", "64"),
        # one thread is no race
        (0, "s[0] = 1\nB[0] = s[0]", "1, 1, 1", "64"),
        # several rows of loops
        (0, "for k: int32 in range(0, 4, 1) serial:\n  s[k * 64 + tx] = k", "64, 1, 1", "256"),
        (1, "for k: int32 in range(0, 4, 1) serial:\n  s[k * 32 + tx] = k", "64, 1, 1", "256"),
    ],
)  # fmt: skip
def test_by_the_numbers(count: int, text: str, threads: str, size: str) -> None:
    assert added(text, threads, size) == count


def test_trees_need_the_barriers_of_those_who_write_them_by_hand() -> None:
    tree = """
s[tx] = A[tx]
for level: int32 in range(0, 6, 1) serial:
  let reach: int32 = 64 >> level + 1
  if tx < reach:
    s[tx] = s[tx] + s[tx + reach]
if tx == 0:
  B[bx] = s[0]
"""
    made = outline(program(tree))
    assert made == [
        "s[tx] = A[tx]",
        "for level: int32 in range(0, 6, 1) serial:",
        "  let reach: int32 = 64 >> level + 1",
        "  @barrier()",
        "  if tx < reach:",
        "    s[tx] = s[tx] + s[tx + reach]",
        "if tx == 0:",
        "  B[bx] = s[0]",
    ]


def test_a_barrier_stands_outside_of_branches_that_threads_take_apart() -> None:
    made = outline(program("s[tx] = A[tx]\nif tx < 32:\n  B[tx] = s[63 - tx]\nelse:\n  B[tx] = 1"))
    assert made[:3] == ["s[tx] = A[tx]", "@barrier()", "if tx < 32:"]


def test_conditions_on_threads_are_known() -> None:
    """One thread alone writes and reads; halves do not meet."""
    assert added("if tx == 0:\n  s[0] = 1\nif tx == 0:\n  B[0] = s[0]") == 0
    assert added("if tx == 0:\n  s[0] = 1\nif tx == 1:\n  B[0] = s[0]") == 1
    assert added("if tx < 32:\n  s[tx] = 1\nelse:\n  s[tx] = 2\nB[tx] = s[tx]") == 0


def test_a_barrier_of_the_warp_orders_the_threads_of_a_warp() -> None:
    warp = '@barrier(scope="warp")'
    assert added(f"s[tx] = A[tx]\n{warp}\nB[tx] = s[tx ^ 1]") == 0
    assert added(f"s[tx] = A[tx]\n{warp}\nB[tx] = s[tx ^ 32]") == 1
    kernel = program(f"s[tx] = A[tx]\n{warp}\nB[tx] = s[tx ^ 32]")
    (launch,) = (n for n in walk(kernel) if isinstance(n, Launch))
    assert insert_barriers(launch, warp_size=64) is launch


def test_atomics_wait_for_what_was_stored_and_not_for_each_other() -> None:
    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            counts = T.alloc_shared((16,), "int32")
            if tx < 16:
                counts[tx] = 0
            T.atomic_add(counts[A[tx] % 16], 1)
            T.atomic_add(counts[A[tx] % 8], 1)
            if tx < 16:
                B[tx] = counts[tx]

    assert barriers(order_threads(main.kernel)) == 2


def test_tensors_are_the_programs_own_affair() -> None:
    assert added("B[tx] = A[tx]\nA[tx] = B[63 - tx]") == 0


def test_signals_that_are_waited_for_are_trusted() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            row = T.alloc_shared((64,), "int32")
            ready = T.alloc_barrier(64)
            row[tx] = A[tx]
            T.barrier_arrive(ready)
            T.barrier_wait(ready, 0)
            B[tx] = row[63 - tx]

    assert barriers(order_threads(main.kernel)) == barriers(main.kernel)


def test_no_barrier_helps_threads_of_a_branch() -> None:
    for text in (
        "if tx < 48:\n  s[tx] = 1\n  B[tx] = s[47 - tx]",
        "if tx < 48:\n  B[tx] = s[47 - tx]\n  s[tx] = 1",
        "if tx < 16:\n  B[tx] = 1\nelse:\n  s[tx] = 1\n  B[tx] = s[79 - tx]",
        "if tx < 32:\n  if bx < 1:\n    s[tx] = 1\n    B[tx] = s[31 - tx]",
    ):
        with pytest.raises(DataRace, match="no barrier of the block can stand in a branch"):
            added(text)


def test_branches_that_order_themselves_are_not_refused() -> None:
    for text in (
        "if tx < 32:\n  s[tx] = 1\n  B[tx] = s[tx]",
        'if tx < 32:\n  s[tx] = 1\n  @barrier(scope="warp")\n  B[tx] = s[31 - tx]',
        "if tx < 32:\n  s[tx] = 1\n  B[tx] = s[63 - tx]",
        "if tx < 32:\n  s[A[tx]] = 1\n  B[tx] = s[tx]",
        "if A[tx] > 0:\n  s[tx] = 1\n  B[tx] = s[63 - tx]",
        "if tx == 5:\n  s[3] = 1\n  B[tx] = s[3]",
        "if bx == 0:\n  s[tx] = 1\n  @barrier()\n  B[tx] = s[63 - tx]",
    ):
        assert added(text) == 0


@pytest.mark.parametrize(
    ("condition", "needed"),
    [("k == 1", 0), ("k < 1", 0), ("k != 1", 1), ("k < 2", 1), ("bx == 0", 1), ("k >= bx", 1)],
)
def test_a_branch_that_one_iteration_takes_meets_no_other(condition: str, needed: int) -> None:
    loop = f"for k: int32 in range(0, 3, 1) serial:\n  if {condition}:\n    s[tx ^ k] = tx + k\n"
    assert added(f"s[tx] = 0\n@barrier()\n{loop}") == needed


# Programs of chance -----------------------------------------------------------------------------

INDICES = (
    "tx", "15 - tx", "tx ^ 1", "(tx + 1) % 16", "tx // 2", "tx % 4", "tx % 4 * 4 + tx // 4", "3",
    "tx ^ k", "(tx + k) % 16", "(tx * 2 + k) % 16",
)  # fmt: skip
CONDITIONS = ("tx < 8", "tx % 2 == 0", "tx == 5", "tx > k + 3", "k == 1")


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Draw a few statements of one round, each with a value of its own for each thread."""
    made = []
    for number in range(draw(st.integers(1, 4))):
        tile = draw(st.sampled_from("sr"))
        index = draw(st.sampled_from(INDICES))
        if draw(st.booleans()):
            line = f"v[0] = v[0] + {tile}[{index}]"
        else:
            line = f"{tile}[{index}] = tx * 100 + {number + 1} + k * 1000"
        if draw(st.integers(0, 2)) == 0:
            made += [f"if {draw(st.sampled_from(CONDITIONS))}:", "  " + line]
        else:
            made.append(line)
    return made


def _runs(kernel: Kernel) -> None:
    import numpy as np

    a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    interpret(kernel, [a, b], options=InterpretOptions())


def _without(kernel: Kernel, dropped: Barrier) -> Kernel:
    def rule(node: Node) -> Node:
        return Seq(()) if node is dropped else node

    return rewrite(kernel, rule)


@settings(max_examples=60, deadline=None)
@given(lines(), lines(), st.booleans())
def test_programs_of_chance_do_not_race(first: list[str], then: list[str], again: bool) -> None:
    """The interpreter, which knows nothing of the pass, finds no race, and one without a barrier.

    Statements that race with themselves are left out: no barrier helps them.
    """
    text = ["v[0] = 0", "s[tx] = tx", "r[tx] = tx", "@barrier()"]
    text += ["for k: int32 in range(0, 3, 1) serial:", *("  " + x for x in first)]
    if again:
        text += ["  for j: int32 in range(0, 2, 1) serial:", *("    " + x for x in then)]
    text += ["@barrier()", "B[bx * 16 + tx] = v[0]"]
    kernel = program("\n".join(text), "16, 1, 1", "16")
    if _races_alone(kernel):
        return
    made = order_threads(kernel)
    _runs(made)
    known = {n for n in walk(kernel) if isinstance(n, Barrier)}
    for barrier in [n for n in walk(made) if isinstance(n, Barrier) and n not in known]:
        if not again:
            _needed(made, barrier)


def _needed(kernel: Kernel, barrier: Barrier) -> None:
    """A barrier that was put in: without it, some order of threads goes wrong."""
    with pytest.raises(DataRace):
        _runs(_without(kernel, barrier))


def _races_alone(kernel: Kernel) -> bool:
    """Whether threads race within one statement: no barrier can help."""

    def rule(node: Node) -> Node:
        if isinstance(node, Seq):
            parts = [p for s in node.body for p in (Barrier(), s)]
            return replace(node, body=(*parts, Barrier()))
        return node

    try:
        _runs(rewrite(kernel, rule))
    except DataRace:
        return True
    return False
