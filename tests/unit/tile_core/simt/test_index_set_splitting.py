"""What loops look like that are split before their guards begin to matter."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from support.device_programs import at, do, flat, load, loop, registers, scalar, shared, store
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Var
from tile_core.ir.node import walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_stmt
from tile_core.ir.stmt import For, If, Launch, Seq, Stmt
from tile_core.ops.operator_table import OPERATORS
from tile_core.simt.index_set_splitting import MOST_NODES, split_index_sets

HEAD = """\
kernel rows[n: int32, m: int32](A: global float32[n], C: global float32[m], S: global int32[8]):
  launch bx: int32 in (8) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
"""


def split(text: str) -> str:
    """Return the program of a thread of 128, in one of 8 blocks, after the pass."""
    kernel = parse_kernel(HEAD + indent(dedent(text), " " * 4), OPERATORS, str)
    (launch,) = (node for node in walk(kernel) if isinstance(node, Launch))
    env = (
        ConstraintSet()
        .with_loop(launch.thread_vars[0], 0, 128)
        .with_loop(launch.block_vars[0], 0, 8)
    )
    for node in walk(kernel):
        if isinstance(node, Var) and node.name in ("n", "m"):
            env = env.with_symbol(node)
    return lines_of(split_index_sets(launch.body, env, launch.thread_vars))


def lines_of(stmt: Stmt) -> str:
    """Return the text of a program, without the declarations of its tensors."""
    lines = print_stmt(stmt).splitlines()
    return "".join(f"{line}\n" for line in lines if not line.lstrip().startswith("view "))


def test_rounds_that_need_no_guard_come_first() -> None:
    text = dedent("""\
    for k: int32 in range(0, (n + 511) // 512, 1) serial:
      if k * 512 + tx * 4 + 3 < n:
        C[k * 512 + tx * 4] = A[k * 512 + tx * 4]
    """)
    assert split(text) == dedent("""\
    let k_whole: int32 = cast[int32](cast[int64](n) // int64(512))
    for k: int32 in range(0, k_whole, 1) serial:
      if true:
        C[k * 512 + tx * 4] = A[k * 512 + tx * 4]
    for k: int32 in range(k_whole, (n + 511) // 512, 1) serial:
      if k * 512 + tx * 4 + 3 < n:
        C[k * 512 + tx * 4] = A[k * 512 + tx * 4]
    """)


def test_numbers_stay_numbers_and_other_conditions_stay() -> None:
    text = dedent("""\
    for k: int32 in range(0, 8, 1) serial:
      C[k * 128 + tx] = (k * 128 + tx < 1000 ? A[k] : 0.0)
      if bx < m and k * 128 + tx < 1000:
        C[0] = A[bx]
    """)
    assert split(text) == dedent("""\
    for k: int32 in range(0, 7, 1) serial:
      C[k * 128 + tx] = (true ? A[k] : 0.0)
      if bx < m:
        C[0] = A[bx]
    for k: int32 in range(7, 8, 1) serial:
      C[k * 128 + tx] = (k * 128 + tx < 1000 ? A[k] : 0.0)
      if bx < m and k * 128 + tx < 1000:
        C[0] = A[bx]
    """)


@pytest.mark.parametrize(
    ("ends", "cond", "whole"),
    [
        # what the worst thread and the last lane say
        ("0, m, 1", "k * 16 + tx % 16 < n", "min(N // int64(16), M)"),
        ("0, n // 8, 1", "k * 8 + 7 < n", None),  # never fails
        ("0, m, 1", "n > k", "min(N, M)"),
        ("0, m, 1", "not (k * 4 >= n)", "min((N + int64(3)) // int64(4), M)"),
        ("bx, m, 1", "k + 8 <= n", "max(cast[int64](bx), min(N + int64(-7), M))"),
        # the rounds of other steps
        (
            "0, m, 4",
            "k < n",
            "(min(N, M) + int64(4) - int64(1)) // int64(4) * int64(4)",
        ),
    ],
    ids=["worst-thread", "never-fails", "mirrored", "negated", "start", "steps"],
)
def test_first_rounds(ends: str, cond: str, whole: str | None) -> None:
    text = f"for k: int32 in range({ends}) serial:\n  if {cond}:\n    C[k] = A[k]\n"
    if whole is None:
        assert split(text) == text
        return
    whole = whole.replace("N", "cast[int64](n)").replace("M", "cast[int64](m)")
    assert split(text).splitlines()[0] == f"let k_whole: int32 = cast[int32]({whole})"


@pytest.mark.parametrize(
    "text",
    [
        # all threads would have to agree
        "for k: int32 in range(tx, n, 128) serial:\n  if k < m:\n    C[k] = A[k]\n",
        # memory may change
        "for k: int32 in range(0, n, 1) serial:\n"
        "  if k < S[0]:\n    C[k] = A[k]\n",
        # who leaves the first loop would enter the second
        "for k: int32 in range(0, n, 1) serial:\n"
        "  if k < m:\n    C[k] = A[k]\n  else:\n    break\n",
        # nothing is gained in the first rounds
        "for k: int32 in range(0, n, 1) serial:\n  if k >= m:\n    C[k] = A[k]\n",
        "for k: int32 in range(0, n, 1) serial:\n  if k >= 2:\n    C[k] = A[k]\n",
        "for k: int32 in range(0, 4, 1) serial:\n  if k < 2:\n    C[k] = A[k]\n",
        # part of the condition would stay
        "for k: int32 in range(0, n, 1) serial:\n  if k < m and bx < m:\n    C[k] = A[k]\n",
        # downwards, unrolled, few rounds that unroll well
        "for k: int32 in range(n, 0, -1) serial:\n  if k < m:\n    C[k] = A[k]\n",
        "for k: int32 in range(0, n, 1) unroll:\n  if k < m:\n    C[k] = A[k]\n",
        "for k: int32 in range(0, 8, 1) serial:\n  if k < m:\n    C[k] = A[k]\n",
    ],
    ids=[
        "starts-by-thread", "loads", "break", "never-first", "prologue", "half", "part-stays",
        "down", "unrolled", "short",
    ],
)  # fmt: skip
def test_loops_that_stay(text: str) -> None:
    assert split(text) == text


def test_loops_inside_are_split_where_it_still_matters() -> None:
    text = dedent("""\
    for i: int32 in range(0, m, 1) serial:
      if i < n:
        C[i] = A[i]
      for k: int32 in range(0, m, 1) serial:
        if k < n:
          C[k] = A[k]
    """)
    lines = split(text).splitlines()
    assert [line.strip().split(" in ")[0] for line in lines if "for " in line] == [
        "for i: int32", "for k: int32", "for k: int32", "for i: int32", "for k: int32",
    ]  # fmt: skip


def test_an_end_that_is_loaded_is_loaded_once() -> None:
    k, n, size = scalar("k"), scalar("n"), flat("size", 1, "int32")
    out = flat("out", 64, "int32")
    body = If(k < n, store(out, k, 1), store(size, 0, 5))
    made = split_index_sets(loop(k, load(size), body), ConstraintSet().with_symbol(n))
    assert lines_of(made).splitlines()[0] == "let k_stop: int32 = size[0]"
    assert lines_of(made).count("= size[0]") == 1


def copying(*more: Stmt, branch: bool = False, times: int = 1) -> Stmt:
    """A loop of copies, with a predicate or in a branch, and more."""
    k, n, tid = (scalar(name) for name in ("k", "n", "tid"))
    a, tile = flat("a", 64, "float32"), shared("tile", 64, "float32")
    copy = do("async_copy", 16, at(tile, k, "w"), at(a, k), k * 4 < n)
    body = [copy] * times
    if branch:
        body.append(If(k * 4 < n, store(a, k, 1.0)))
    return loop(k, scalar("m"), do("sync"), *body, *more)


def is_split(stmt: Stmt) -> bool:
    return sum(isinstance(node, For) for node in walk(split_index_sets(stmt, ConstraintSet()))) == 2


def test_predicates_of_copies_are_guards() -> None:
    made = split_index_sets(copying(), ConstraintSet())
    predicates = [line for line in lines_of(made).splitlines() if "async_copy" in line]
    assert [line.rsplit(", ", 1)[1] for line in predicates] == ["true)", "k * 4 < n)"]


def test_products_are_written_twice_for_branches_only() -> None:
    product = do("mma_m16n8k16", *(at(registers(name, 4)) for name in "cab"))
    assert is_split(copying())
    assert not is_split(copying(product))
    k, n, a = scalar("k"), scalar("n"), flat("a", 64, "float32")
    alternatives = If(k * 4 < n, store(a, k, 1.0), store(a, k, 2.0))
    assert is_split(loop(k, scalar("m"), product, alternatives))


def test_products_are_not_written_twice_for_what_all_threads_skip_together() -> None:
    product = do("mma_m16n8k16", *(at(registers(name, 4)) for name in "cab"))
    assert is_split(copying(branch=True))
    assert not is_split(copying(product, branch=True))


def test_large_bodies_are_not_written_twice() -> None:
    assert not is_split(copying(times=MOST_NODES // 10))


def test_a_guard_at_two_places_has_the_limit_of_both() -> None:
    k, i, n, out = scalar("k"), scalar("i"), scalar("n"), flat("out", 64, "int32")
    guard = k * 8 + i < n
    body = [
        For(i, as_expr(0), as_expr(stop), as_expr(1), If(guard, store(out, i, stop)))
        for stop in (8, 2)
    ]
    made = split_index_sets(loop(k, n, Seq(tuple(body))), ConstraintSet().with_symbol(n))
    (first, *_) = lines_of(made).splitlines()
    assert "cast[int64](n) // int64(8)" in first
    assert "(cast[int64](n) + int64(6)) // int64(8)" in first


def test_loops_that_pick_registers_keep_their_rounds() -> None:
    k = scalar("k")
    for tile, parts in ((registers("held", 64), 1), (flat("out", 64, "float32"), 2)):
        made = loop(k, 64, If(k * 2 < 100, store(tile, k, 1.0)))
        assert (
            sum(isinstance(node, For) for node in walk(split_index_sets(made, ConstraintSet())))
            == parts
        )
