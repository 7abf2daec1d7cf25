"""TL8104: a file is no table of results."""

from __future__ import annotations

import pytest

from tile_api.autotuner.store import read_table
from tile_core.errors import InvalidTuningTable


def test_a_file_that_is_no_table(tmp_path):
    path = tmp_path / "table.json"
    path.write_text('{"form": "tile tuning table 9"}')
    with pytest.raises(InvalidTuningTable) as caught:
        read_table(path)
    assert str(caught.value) == (
        f"[TL8104] {path} is no tuning table: its form is 'tile tuning table 9', "
        "not 'tile tuning table 1'\n"
        "hint: name a file that tile tune wrote"
    )
