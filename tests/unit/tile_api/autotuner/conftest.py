"""Results of tuning in a folder of the test's own, and one process that compiles."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def tuning(tmp_path, monkeypatch):
    """Return the folder of tables and logs."""
    folder = tmp_path / "tuning"
    monkeypatch.setenv("TILE_TUNE_DIR", str(folder))
    monkeypatch.setenv("TILELANG_AUTO_TUNING_CPU_COUNTS", "1")
    for name in ("TILE_TUNE_BUDGET", "TILE_TUNE_TABLES", "TILE_TUNE_AGAIN"):
        monkeypatch.delenv(name, raising=False)
    return folder
