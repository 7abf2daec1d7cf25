"""TL7002: two plugins claim the same name."""

from __future__ import annotations

from types import ModuleType

import pytest

from tile_core.errors import PluginConflict
from tile_core.plugins.host import PluginHost

EXPECTED = """\
[TL7002] two plugins are called 'twin'
hint: set TILE_DISABLE_PLUGINS=twin to leave one out"""


def test_message() -> None:
    host = PluginHost()
    host.add("twin", ModuleType("one"))
    with pytest.raises(PluginConflict) as caught:
        host.add("twin", ModuleType("other"))
    assert str(caught.value) == EXPECTED
