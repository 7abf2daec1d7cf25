"""TL7006: a package that something needs is missing, too old, or cannot be imported."""

from __future__ import annotations

import sys

import pytest

from tile_core.errors import MissingPackage
from tile_core.needed_packages import needed


def test_a_package_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingPackage) as caught:
        needed("jax", "a function of JAX")
    assert str(caught.value) == (
        "[TL7006] a function of JAX needs jax, which is not installed\n"
        "hint: python -m pip install --upgrade 'tile-api[jax]'"
    )
    assert isinstance(caught.value, ImportError)


def test_a_folder_that_was_left_over(monkeypatch, tmp_path):
    (tmp_path / "jax").mkdir()
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(MissingPackage, match="jax, which has version unknown, and not 0"):
        needed("jax", "a function of JAX")
