"""TL1101: the text of a printed kernel is not well-formed."""

from __future__ import annotations

import pytest

from tile_core.errors import ParseError
from tile_core.ir.parser import parse_kernel
from tile_core.ops.operator_table import OPERATORS

HINT = "\nhint: compare with what print_kernel writes for a kernel like it"
MESSAGES = {
    "": "[TL1101] the text is empty",
    "what is this": "[TL1101] line 1, column 1: expected 'kernel', got 'what'",
    "kernel f(": "[TL1101] line 1, column 10: expected a name, got ''",
    "kernel f(A: global float32[8]) {": "[TL1101] line 1, column 32: unexpected '{'",
    "kernel f(A: global float32[8]):\n  A[0 = 1.0": (
        "[TL1101] line 2, column 7: expected ',', got '='"
    ),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_message(text):
    with pytest.raises(ParseError) as caught:
        parse_kernel(text, OPERATORS, str)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == MESSAGES[text] + HINT
