"""Torch that another thread is importing: as if it were not there yet."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

from tile_launch.loaded_torch import loaded_torch
from tile_launch.manifest import Tensor
from tile_launch.native.caller import libraries
from tile_launch.outputs import output_maker
from tile_launch.streams import DEFAULT_STREAM, device_of, stream_reader
from tile_launch.views import key_function, view_of


@pytest.fixture
def half_imported(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    torch = ModuleType("torch")
    torch.__spec__ = ModuleSpec("torch", None)
    torch.__spec__._initializing = True  # type: ignore[attr-defined]  # as importlib says it
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def test_torch_is_not_there_before_its_import_ends(half_imported: ModuleType) -> None:
    assert loaded_torch() is None
    half_imported.__spec__._initializing = False  # type: ignore[union-attr]
    assert loaded_torch() is half_imported


def test_this_is_how_imports_say_so(tmp_path) -> None:
    (tmp_path / "torch.py").write_text(
        "from tile_launch.loaded_torch import loaded_torch\nfound = loaded_torch()\n"
    )
    text = (
        "from tile_launch.loaded_torch import loaded_torch\n"
        "assert loaded_torch() is None\n"
        "import torch\n"
        "assert torch.found is None\n"
        "assert loaded_torch() is torch\n"
    )
    subprocess.run([sys.executable, "-c", text], cwd=tmp_path, check=True)


def test_arrays_are_looked_at_meanwhile(half_imported: ModuleType) -> None:
    found = view_of(np.zeros((2, 3)))
    assert found is not None
    assert found.shape == (2, 3)
    assert view_of("text") is None
    assert key_function(np.ndarray) is not None
    assert key_function(str) is None
    param = Tensor(name="A", dtype="float32", shape=(3,))
    assert output_maker(param, (3,), np.zeros(3), "cpu")().shape == (3,)
    assert stream_reader("cuda")(0) == DEFAULT_STREAM
    assert device_of(np.zeros(3)) == 0
    known, _ = libraries()
    assert (known.array, known.tensor) == (id(np.ndarray), None)
