"""Loops that draw random numbers are dealt out to threads; others stay."""

from __future__ import annotations

from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS
from tile_core.ops.random_loops import distribute_random_loops

BEFORE = """\
kernel k(A: global uint32[10, 8], B: global uint32[8]):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (16, 2, 1):
    eval rng_init(7, tx, 0)
    parallel i: int32, j: int32 in (10, 8):
      let random: uint32 = rng_rand()
      A[i, j] = random
    parallel i_1: int32 in (8):
      B[i_1] = A[0, i_1]
"""
AFTER = """\
kernel k(A: global uint32[10, 8], B: global uint32[8]):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (16, 2, 1):
    eval rng_init(7, tx, 0)
    block:
      @barrier()
      for turn: int32 in range(0, 3, 1) serial:
        let iteration: int32 = turn * 32 + ((tz * 2 + ty) * 16 + tx)
        if iteration < 80:
          let i: int32 = iteration // 8
          let j: int32 = iteration % 8
          block:
            let random: uint32 = rng_rand()
            A[i, j] = random
      @barrier()
    parallel i_1: int32 in (8):
      B[i_1] = A[0, i_1]
"""


def test_iterations_go_round_the_threads() -> None:
    kernel = parse_kernel(BEFORE, OPERATORS, str)
    dealt = distribute_random_loops(kernel)
    verify(dealt)
    assert print_kernel(dealt) == AFTER


def test_a_kernel_that_draws_in_no_loop_stays() -> None:
    text = BEFORE.replace("rng_rand()", "B[0]")
    kernel = parse_kernel(text, OPERATORS, str)
    assert distribute_random_loops(kernel) is kernel
