"""TL7001: no installed plugin understands a target."""

from __future__ import annotations

import pytest

from tile_core.errors import BackendNotFound
from tile_core.plugins.host import PluginHost

EXPECTED = """\
[TL7001] no backend serves target 'cuda:sm_90a'; installed: none
note: plugin 'hip' is broken: OSError: libamdhip64.so: not found
note: plugin 'other' is disabled
hint: pip install 'tile-api[cuda]'"""


def test_message() -> None:
    host = PluginHost(disabled=["other"])
    host.broken["hip"] = OSError("libamdhip64.so: not found")
    with pytest.raises(BackendNotFound) as caught:
        host.resolve("cuda:sm_90a")
    assert str(caught.value) == EXPECTED
