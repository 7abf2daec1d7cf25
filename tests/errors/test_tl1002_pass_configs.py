"""TL1002: a value of a pass configuration is none that it can have."""

from __future__ import annotations

import pytest

import tile_api as tile
from tile_core.errors import FrontendValueError


def test_bits_of_indices(program):
    kernel = program(
        """
        @T.prim_func
        def none():
            with T.Kernel(1):
                pass
        """
    )["none"]
    for bits in (32, 64, None):
        tile.compile(kernel, target="cpu", pass_configs={"tl.config_index_bitwidth": bits})
    with pytest.raises(FrontendValueError) as caught:
        tile.compile(kernel, target="cpu", pass_configs={"tl.config_index_bitwidth": 48})
    line = 'tile.compile(kernel, target="cpu", pass_configs={"tl.config_index_bitwidth": 48})'
    told = str(caught.value)
    assert told.startswith("[TL1002] pass config 'tl.config_index_bitwidth' is 32 or 64, got 48\n")
    assert f"| {' ' * 8}{line}\n" in told
    assert told.endswith("\nhint: leave it out: indices have the bits that they need")
