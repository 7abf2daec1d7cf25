"""A HIP runtime that remembers what it was asked, for tests of the host side."""

import ctypes
from pathlib import Path

import pytest

from support.stubs import compiled_stub
from tile_hip.driver import open_driver
from tile_launch.hip_driver import HipDriver


@pytest.fixture(scope="session")
def stub_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_stub("tile_hip", tmp_path_factory.getbasetemp())  # one for all tests


@pytest.fixture
def driver(stub_path: Path) -> HipDriver:
    library = ctypes.CDLL(str(stub_path))  # one library for all tests: as it was
    library.stub_set(2, b"", 0)
    library.stub_architecture(b"gfx942:sramecc+:xnack-")
    library.hipSetDevice(0)
    library.hipGetLastError()
    opened = open_driver(str(stub_path))
    for name in ("stub_launches", "stub_modules", "stub_dynamic_shared"):
        getattr(opened.library, name).restype = ctypes.c_uint64
    return opened
