"""Signals in tile IR: text, and what is refused."""

import pytest

from tile_core.errors import DtypeMismatch, ScopeMismatch, ShapeMismatch
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.ranks import is_symmetric, rank_parameters
from tile_core.ir.stmt import Kernel
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS

TEXT = """\
kernel handed_on[s: int64, f: int64](A: global float32[ranks, 8] strides [s, 1], \
B: global float32[8], F: global.signals uint32[ranks, 4] strides [f, 16], rank: int32, \
ranks: int32):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    @copy(src=B[0:8], dst=A[(rank + 1) % ranks:1, 0:8])
    @signal(flag=F[(rank + 1) % ranks:1, 2:1], value=1)
    @wait_signal(flag=F[rank, 2], value=1)
    @wait_signal(flag=F[rank:1, 3:1], value=2, takes=true)
"""


def parse(text: str) -> Kernel:
    return parse_kernel(text, OPERATORS, str)


def test_text_reads_back():
    kernel = parse(TEXT)
    verify(kernel)
    assert "@wait_signal(flag=F[rank, 2], value=1)" in (text := print_kernel(kernel))
    assert print_kernel(parse(text)) == text


def test_hidden_parameters_and_what_exists_on_each_rank():
    kernel = parse(TEXT)
    a, b, f, rank, ranks = kernel.params
    assert rank_parameters(kernel) == (rank, ranks)
    assert [is_symmetric(p, kernel) for p in (a, b, f)] == [True, False, True]
    plain = parse("kernel k(A: global float32[8]):\n  break\n")
    assert rank_parameters(plain) is None
    assert not is_symmetric(plain.params[0], plain)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("flag=F[rank, 2], value=1", "flag=A[rank:1, 2:1], value=1", ScopeMismatch),
        ("flag=F[rank, 2], value=1", "flag=F[rank:1, 0:4], value=1", ShapeMismatch),
        ("flag=F[rank, 2], value=1", "flag=F[rank:1, 2:1], value=1.5", DtypeMismatch),
    ],
)
def test_what_is_no_flag(old, new, error):
    with pytest.raises(error):
        verify(parse(TEXT.replace(old, new)))
