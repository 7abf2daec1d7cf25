"""TL8401: TileLang's name, or the target that stands in for a GPU, is taken."""

from __future__ import annotations

import sys
import types

import pytest

from tile_api.tilelang import install
from tile_core.errors import AliasConflict


def test_another_target() -> None:
    with install("interpret"), pytest.raises(AliasConflict) as caught:
        install("cuda:sm_80@sim")
    assert str(caught.value) == (
        "[TL8401] programs are run for interpret already, and cuda:sm_80@sim was asked for\n"
        "hint: call tile_api.tilelang.uninstall() first"
    )


def test_tilelang_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("tilelang")
    other.__file__ = "/somewhere/tilelang/__init__.py"
    monkeypatch.setitem(sys.modules, "tilelang", other)
    with pytest.raises(AliasConflict) as caught:
        install("interpret")
    assert str(caught.value) == (
        "[TL8401] tilelang is imported already, from /somewhere/tilelang/__init__.py\n"
        "hint: call tile_api.tilelang.install() before anything imports tilelang"
    )
