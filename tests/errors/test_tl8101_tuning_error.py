"""TL8101: what the autotuner is asked makes no sense."""

from __future__ import annotations

import pytest

from support.tuned import tuned_double
from tile_api.settings.budget import parse_budget
from tile_core.errors import TuningError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_TUNE_DIR", str(tmp_path / "tuning"))


def test_a_configuration_of_another_function():
    with pytest.raises(TuningError) as caught:
        tuned_double([{"blocks": 3}])(64)
    assert str(caught.value) == (
        "[TL8101] a configuration sets 'blocks', which is no parameter of the function\n"
        "hint: its parameters are n, block"
    )


def test_a_budget():
    with pytest.raises(TuningError) as caught:
        parse_budget("soon")
    assert str(caught.value) == (
        "[TL8101] 'soon' is not a time budget\n"
        'hint: write "model", a time such as "10s" or "2m", or "full"'
    )
