"""TL1102: a kernel breaks an invariant of tile IR; the verifier names it."""

from __future__ import annotations

import pytest

from tile_core.errors import VerifyError
from tile_core.ir.parser import parse_kernel
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS

MESSAGES = {
    "A[0] = 1": "[TL1102] store of int32 into 'A' of float32",
    "let x: int32 = 1.0": "[TL1102] 'x' is int32, not float32",
}
TEXT = """\
kernel k(A: global float32[8]):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    {}
"""


@pytest.mark.parametrize("statement", MESSAGES)
def test_message(statement):
    with pytest.raises(VerifyError) as caught:
        verify(parse_kernel(TEXT.format(statement), OPERATORS, str))
    assert str(caught.value) == MESSAGES[statement]
