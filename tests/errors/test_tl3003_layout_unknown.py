"""TL3003: nothing determines the layout of a buffer."""

from __future__ import annotations

import pickle

import pytest

from tile_core.errors import LayoutUnknown

EXPECTED = """\
[TL3003] rule 'toy.gemm' reads the layout of 'tile', which nothing determines
hint: answer for it in the rule's infer_layout"""


def test_message():
    with pytest.raises(LayoutUnknown) as caught:
        raise LayoutUnknown(
            "rule 'toy.gemm' reads the layout of 'tile', which nothing determines",
            hint="answer for it in the rule's infer_layout",
        )
    assert str(pickle.loads(pickle.dumps(caught.value))) == EXPECTED
