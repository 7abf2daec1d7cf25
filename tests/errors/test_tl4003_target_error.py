"""TL4003: a target string that names no machine."""

from __future__ import annotations

import pickle

import pytest

from tile_core.errors import TargetError
from tile_core.target import parse_target_spec

EXPECTED = """\
[TL4003] 'CPU:haswell' is not a target
hint: spell it kind[:arch][@executor], such as 'cpu', 'cpu:haswell', 'cuda:sm_90a' or 'auto'"""


def test_message() -> None:
    with pytest.raises(TargetError) as caught:
        parse_target_spec("CPU:haswell")
    assert str(caught.value) == EXPECTED
    assert str(pickle.loads(pickle.dumps(caught.value))) == EXPECTED
