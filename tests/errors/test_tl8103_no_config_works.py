"""TL8103: every configuration failed."""

from __future__ import annotations

import pytest

from support.tuned import tuned_double
from tile_core.errors import NoConfigWorks


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_TUNE_DIR", str(tmp_path / "tuning"))


def test_nothing_works():
    with pytest.raises(NoConfigWorks) as caught:
        tuned_double([{"block": 0}, {"block": 7}], budget="model")(64)
    assert str(caught.value) == (
        "[TL8103] none of 2 configurations of double works\n"
        "note: block=0: [TL1002] integer division or modulo by zero\n"
        "note: block=7: [KeyError] 'seven'\n"
        "hint: call it with one of them to see the whole error: the values are its arguments"
    )
