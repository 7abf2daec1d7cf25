"""TL8002: a bundle was written by a later version."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tile_launch import load
from tile_launch.errors import NewerBundle


def test_message(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bundle.json", '{"schema": 2, "variants": "written otherwise"}')
    with pytest.raises(NewerBundle) as caught:
        load(path)
    assert str(caught.value).replace(str(path), "x.tile") == (
        "[TL8002] x.tile has form 2; this version of tile-launch reads up to 1\n"
        "hint: pip install --upgrade tile-launch"
    )
