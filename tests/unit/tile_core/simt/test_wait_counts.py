"""Waits for groups of copies become waits for numbers of them, on every way through a program."""

from __future__ import annotations

import re
from textwrap import dedent, indent

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.expr import Var
from tile_core.ir.node import walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_stmt
from tile_core.ir.stmt import Launch
from tile_core.ops.operator_table import OPERATORS
from tile_core.simt.wait_counts import insert_wait_counts

HEAD = """\
kernel copies[n: int32, m: int32](A: global float32[n], S: global float32[4096]):
  launch bx: int32 in (8) threads tx: int32, ty: int32, tz: int32 in (256, 1, 1):
"""
COPY = "eval device[int32] counted_load(4, &w S[0], &r A[0], tx, true)"
SHORT = {
    "copy": COPY,
    "close": "eval device[int32] async_copy_commit()",
    "work": "S[tx] = 0.0",
}
LONG = {text: word for word, text in SHORT.items()}


def counted(text: str) -> str:
    """Return the program after the pass, in the same words: ``wait 1`` becomes ``left 8``."""
    body = indent(dedent(text), " " * 4)
    for word, call in SHORT.items():
        body = re.sub(rf"^( *){word}$", rf"\1{call}", body, flags=re.MULTILINE)
    eight = rf"\1for r: int32 in range(0, 8, 1) unroll:\n\1  {COPY}"
    body = re.sub(r"^( *)eight copies$", eight, body, flags=re.MULTILINE)
    body = re.sub(r"wait (\d+)", r"eval device[int32] async_copy_wait(\1)", body)
    kernel = parse_kernel(HEAD + body, OPERATORS, str)
    (launch,) = (node for node in walk(kernel) if isinstance(node, Launch))
    env = ConstraintSet().with_loop(launch.thread_vars[0], 0, 256)
    for node in walk(kernel):
        if isinstance(node, Var) and node.name in ("n", "m"):
            env = env.with_symbol(node)
    made = print_stmt(insert_wait_counts(launch.body, env))
    lines = [line for line in made.splitlines() if not line.lstrip().startswith("view ")]
    short = "".join(f"{line}\n" for line in lines)
    short = re.sub(r"eval device\[int32\] counted_wait\((\d+)\)", r"left \1", short)
    for call, word in LONG.items():
        short = short.replace(call, word)
    return re.sub(
        r"for r(?:_\d)?: int32 in range\(0, 8, 1\) unroll:\n +copy", "eight copies", short
    )


def lefts(text: str) -> list[int]:
    """Return the numbers that are waited for, in the order of the program."""
    return [int(n) for n in re.findall(r"left (\d+)", counted(text))]


def test_a_pipeline_of_three_stages() -> None:
    assert counted(
        """\
        eight copies
        close
        eight copies
        close
        for k: int32 in range(0, 14, 1) serial:
          wait 1
          eight copies
          close
          work
        wait 1
        work
        wait 0
        work
        """
    ) == dedent(
        """\
        eight copies
        eight copies
        for k: int32 in range(0, 14, 1) serial:
          left 8
          eight copies
          work
        left 8
        work
        left 0
        work
        """
    )


def test_copies_of_a_round_that_begin_before_it_waits() -> None:
    text = """\
    eight copies
    close
    for k: int32 in range(0, n, 1) serial:
      copy
      copy
      copy
      close
      wait 1
      work
    wait 0
    """
    assert lefts(text) == [3, 0]


def test_a_group_that_is_still_open_may_be_under_way() -> None:
    assert lefts("copy\nclose\ncopy\ncopy\nclose\ncopy\nwait 1\n") == [3]


def test_nothing_is_older_than_the_first_group() -> None:
    assert lefts("copy\nclose\nwait 3\n") == [63]


def test_no_more_than_the_counter_counts() -> None:
    text = "\n".join(["eight copies\nclose"] * 11) + "\nwait 9\n"
    assert lefts(text) == [63]


def test_guards_of_the_first_copies_are_known_in_the_steady_state() -> None:
    text = """\
    let rounds: int32 = (n + 31) // 32
    if 0 < rounds:
      eight copies
    close
    if 1 < rounds:
      eight copies
    close
    for k: int32 in range(0, rounds - 2, 1) serial:
      wait 1
      eight copies
      close
      work
    if 1 < rounds:
      wait 1
      work
    if 0 < rounds:
      wait 0
      work
    """
    assert lefts(text) == [8, 8, 0]


def test_where_nobody_knows_the_guard_the_group_may_be_empty() -> None:
    text = """\
    copy
    close
    if 1 < m:
      eight copies
    close
    wait 1
    if 1 < m:
      wait 1
    if 0 < m:
      wait 1
    """
    assert lefts(text) == [0, 8, 0]


def test_the_smaller_of_two_branches() -> None:
    text = """\
    copy
    close
    if tx < 128:
      copy
      copy
    else:
      copy
    close
    wait 1
    """
    assert lefts(text) == [1]


def test_what_one_guard_says_of_two_branches_adds_up() -> None:
    text = """\
    copy
    close
    if 1 < m:
      copy
    if 1 < m:
      copy
      copy
    close
    if 1 < m:
      wait 1
    """
    assert lefts(text) == [3]


def test_two_guards_do_not_add_up_to_more_than_there_is() -> None:
    text = """\
    copy
    close
    if 1 < m:
      copy
    if 1 < n:
      copy
    close
    if 1 < m:
      if 1 < n:
        wait 1
    """
    assert lefts(text) == [1]  # 2 would be right, too


def test_rounds_that_do_not_copy_make_the_wait_strict() -> None:
    text = """\
    copy
    close
    copy
    close
    for k: int32 in range(0, 8, 1) serial:
      wait 1
      if k < 6:
        copy
      close
    """
    assert lefts(text) == [0]


def test_loops_of_unknown_length_count_nothing() -> None:
    text = """\
    copy
    close
    for k: int32 in range(0, n, 1) serial:
      copy
    close
    wait 1
    """
    assert lefts(text) == [0]


def test_a_loop_around_a_pipeline_begins_where_it_ended() -> None:
    text = """\
    for tile: int32 in range(0, n, 1) serial:
      copy
      close
      for k: int32 in range(0, 7, 1) serial:
        copy
        close
        wait 1
        work
      wait 0
      work
    """
    assert lefts(text) == [1, 0]


def test_a_loop_that_another_one_follows_unwaited() -> None:
    text = """\
    copy
    copy
    close
    for k: int32 in range(0, n, 1) serial:
      copy
      close
      wait 1
    wait 1
    """
    assert lefts(text) == [1, 1]


def test_ways_out_of_a_loop() -> None:
    text = """\
    eight copies
    close
    for k: int32 in range(0, 9, 1) serial:
      copy
      close
      if m < k:
        break
      eight copies
      close
      if m < tx:
        continue
      copy
      close
      wait 2
    wait 1
    """
    assert lefts(text) == [9, 1]


def test_a_loop_without_end_in_sight() -> None:
    text = """\
    copy
    close
    while S[0] < 1.0:
      copy
      copy
      close
      wait 1
    wait 1
    """
    assert lefts(text) == [2, 1]


def test_programs_without_groups_stay_as_they_are() -> None:
    assert counted("copy\nwork\n") == "copy\nwork\n"
