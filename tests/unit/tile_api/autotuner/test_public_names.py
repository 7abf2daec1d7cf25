"""Names that are resolved on first use are where the table says."""

from __future__ import annotations

import pytest

from tile_api import autotuner


@pytest.mark.parametrize("name", autotuner.__all__)
def test_every_name_is_found(name: str) -> None:
    assert getattr(autotuner, name).__name__ == name
