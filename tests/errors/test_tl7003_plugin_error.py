"""TL7003: a plugin is installed but cannot be used."""

from __future__ import annotations

import pytest

from tile_core.errors import PluginError
from tile_core.plugins.host import PluginHost

EXPECTED = """\
[TL7003] the plugin for target 'cuda:sm_90a' is installed but broken: ImportError: libcuda.so.1
hint: python -m pip install --force-reinstall tile-cuda"""


def test_message() -> None:
    host = PluginHost()
    host.broken["cuda"] = ImportError("libcuda.so.1")
    with pytest.raises(PluginError) as caught:
        host.resolve("cuda:sm_90a")
    assert str(caught.value) == EXPECTED
    assert caught.value.__cause__ is host.broken["cuda"]
