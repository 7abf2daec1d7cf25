"""A CUDA driver that remembers what it was asked, and orders of threads on the emulator."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from tile_cuda.driver import open_driver
from tile_launch.cuda_driver import CudaDriver as Driver


@pytest.fixture(scope="session")
def stub_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    built = tmp_path_factory.mktemp("driver") / "libcuda_stub.so"
    source = Path(__file__).parent / "stub_driver.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", built, source], check=True)
    return built


@pytest.fixture
def driver(stub_path: Path) -> Driver:
    library = ctypes.CDLL(str(stub_path))  # one library for all tests: as it was
    library.stub_set(2, 0)
    library.cuCtxSetCurrent(None)
    opened = open_driver(str(stub_path))
    for name in (
        "stub_launches",
        "stub_modules",
        "stub_dynamic_shared",
        "stub_value",
        "stub_context",
        "stub_encoded",
        "stub_large_clusters",
    ):
        getattr(opened.library, name).restype = ctypes.c_uint64
    return opened


@pytest.fixture(params=("forward", "random:5"))
def schedule(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let threads run in turn with copies that end late, or both at random."""
    chosen: str = request.param
    monkeypatch.setenv("TILE_SIM_SCHEDULE", chosen)
    monkeypatch.setenv("TILE_SIM_ASYNC", "random" if "random" in chosen else "late")
    return chosen
