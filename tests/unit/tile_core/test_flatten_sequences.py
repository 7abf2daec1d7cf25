"""Sequences in sequences are opened, but for those in which something begins."""

from __future__ import annotations

from dataclasses import replace

from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Seq
from tile_core.ops.operator_table import OPERATORS
from tile_core.passes.flatten_sequences import flatten_sequences

TEXT = """\
kernel k(A: global float32[8]):
  launch bx: int32 in (4) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    A[0] = 1.0
    block:
      A[1] = 2.0
      block:
        A[2] = 3.0
        A[3] = 4.0
    block:
      let x: int32 = bx + 1
      A[x] = 5.0
    A[4] = 6.0
"""

OPENED = """\
kernel k(A: global float32[8]):
  launch bx: int32 in (4) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    A[0] = 1.0
    A[1] = 2.0
    A[2] = 3.0
    A[3] = 4.0
    block:
      let x: int32 = bx + 1
      A[x] = 5.0
    A[4] = 6.0
"""


def test_they_are_opened() -> None:
    assert print_kernel(flatten_sequences(parse_kernel(TEXT, OPERATORS, str))) == OPENED


def test_a_sequence_alone_is_its_statement() -> None:
    """Also one in which a name begins."""
    kernel = parse_kernel(OPENED, OPERATORS, str)
    wrapped = replace(kernel, body=Seq((Seq((kernel.body,)),)))
    assert print_kernel(wrapped) != OPENED
    assert print_kernel(flatten_sequences(wrapped)) == OPENED


def test_nothing_to_open_changes_nothing() -> None:
    kernel = parse_kernel(OPENED, OPERATORS, str)
    assert flatten_sequences(kernel) is kernel
