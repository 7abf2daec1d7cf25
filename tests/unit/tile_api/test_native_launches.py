"""Launches on GPUs in C, against drivers that take notes: NVIDIA's and AMD's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.native_calls import library_in
from support.stubs import compiled_stub
from tile_api import launching
from tile_api.launching import Launcher
from tile_core.errors import LaunchError
from tile_launch.native.launch_plans import MOST_ATTEMPTS
from tile_launch.streams import allocator

m = T.dynamic("m")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return library_in(tmp_path_factory.mktemp("native"))


@pytest.fixture(autouse=True)
def _in_c(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "native_library", lambda: library)


@dataclass(frozen=True)
class Stub:
    """A driver that takes notes, and what differs between the makers of GPUs.

    Parameters
    ----------
    driver
        Opened, with two devices.
    target
        What is compiled.
    launcher
        The module of that name.
    work_on
        Makes a device the one that this thread works with.
    refuse
        ``refuse(call)`` lets a call of the driver fail; None lets all succeed.
    """

    driver: Any
    target: str
    launcher: Any
    work_on: Callable[[int], object]
    refuse: Callable[[str | None], object]


def cuda_stub(folder: Path) -> Stub:
    from tile_core.plugins import gpu_launch as launcher
    from tile_cuda import driver

    path = str(compiled_stub("tile_cuda", folder))
    opened = driver.open_driver(path)
    library = opened.library
    for name in ("stub_launches", "stub_value", "stub_context"):
        getattr(library, name).restype = ctypes.c_uint64

    def work_on(device: int) -> None:
        library.cuCtxSetCurrent(ctypes.c_void_p(opened.context(device)))

    def refuse(call: str | None) -> None:
        library.stub_set(2, 700 if call == "launch" else 0)

    return Stub(opened, "cuda:sm_80", launcher, work_on, refuse)


def hip_stub(folder: Path) -> Stub:
    from tile_core.plugins import gpu_launch as launcher
    from tile_hip import driver

    opened = driver.open_driver(str(compiled_stub("tile_hip", folder)))
    library = opened.library
    library.stub_launches.restype = ctypes.c_uint64
    calls = {"launch": b"hipModuleLaunchKernel", "device": b"hipGetDevice", None: b""}

    def refuse(call: str | None) -> None:
        library.stub_set(2, calls[call], 700)

    return Stub(opened, "hip:gfx942", launcher, library.hipSetDevice, refuse)


@pytest.fixture(params=[cuda_stub, hip_stub], ids=["cuda", "hip"])
def stub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = request.param(tmp_path_factory.getbasetemp())
    made.refuse(None)
    made.work_on(0)
    yield made
    made.refuse(None)
    made.work_on(0)


@T.prim_func
def shifted(A: T.Tensor((m, 4), "float32"), x: T.float32, n: T.int32):
    with T.Kernel(T.ceildiv(m, 4), n, threads=64) as (bx, by):
        for i, j in T.Parallel(4, 4):
            A[bx * 4 + i, j] = A[bx * 4 + i, j] * x + n


def on_stub(stub: Stub, streams: list[Any], device: int = 0) -> tuple[Launcher, list[int]]:
    """Return the launcher of `shifted`, and the bytes of each argument."""
    lowered = tile.lower(shifted, target=stub.target)
    manifest = stub.launcher.launch_manifest(lowered.device_mod)
    widths = [4 if hasattr(a, "dtype") else 8 for a in manifest.launches[0].arguments]
    stub.driver.library.stub_widths((ctypes.c_int * len(widths))(*widths), len(widths))
    make = partial(
        stub.launcher.callable_of,
        lowered.device_mod,
        b"\x7fELF code",
        stub.driver,
        lambda device: streams[-1],
        lambda *tensors: device,
        allocator(stub.driver.allocate),
    )
    run = stub.launcher.made_at_first_call(make)  # as kernels of GPUs are
    return Launcher(lowered.lowered.kernel, run, "cpu"), widths


def launched(stub: Stub, widths: list[int]) -> tuple[list[int], set[int]]:
    """Return what was launched last, and the arguments."""
    library, found = stub.driver.library, (ctypes.c_uint64 * 10)()
    library.stub_last(found)
    if stub.target.startswith("cuda"):
        return [*found], {library.stub_value(k) for k in range(len(widths))}
    memory, values, offset = ctypes.create_string_buffer(256), set(), 0
    library.stub_kernarg(memory)
    for width in widths:
        offset = -(-offset // width) * width
        values.add(int.from_bytes(memory.raw[offset : offset + width], "little"))
        offset += width
    return [*found], values


def host_array() -> Any:
    """Stands for a tensor on a GPU: it does not say where it lies, as torch's on the host do."""
    return np.zeros((10, 4), np.float32)


def test_launches_on_gpus(stub: Stub) -> None:
    streams = [0x500]
    launch, widths = on_stub(stub, streams)
    tensor = host_array()
    launch(tensor, 0.5, 3)
    function = launched(stub, widths)[0][0]
    for stream, x, n in ((0x510, 1.0, 3), (0x520, 0.5, 3)):
        streams.append(stream)
        before = stub.driver.library.stub_launches()
        assert launch.quick(tensor, x, n) is None
        assert stub.driver.library.stub_launches() == before + 1
        found, values = launched(stub, widths)
        assert found[0] == function
        assert found[1:7] == [3, 3, 1, 64, 1, 1]
        assert (found[8], found[9]) == (stream, 0)
        assert {tensor.ctypes.data, int(np.float32(x).view(np.uint32)), 10, 3} == values
    assert launch.quick(tensor, 1.0, 4) is NotImplemented
    assert launch.quick(tensor[:9], 1.0, 3) is NotImplemented


def test_another_device_is_pythons_matter(stub: Stub) -> None:
    launch, widths = on_stub(stub, [0])
    tensor = host_array()
    launch(tensor, 0.5, 3)
    assert launch.quick(tensor, 0.5, 3) is None
    stub.work_on(1)
    assert launch.quick(tensor, 0.5, 3) is NotImplemented
    before = stub.driver.library.stub_launches()
    for _ in range(2 * MOST_ATTEMPTS):
        launch(tensor, 0.5, 3)
        assert launched(stub, widths)[0][9] == 0
    assert stub.driver.library.stub_launches() == before + 2 * MOST_ATTEMPTS
    assert not launch._is_learning  # C knows the kind: it is not handed over again and again
    stub.work_on(0)
    assert launch.quick(tensor, 0.5, 3) is None


def test_tensors_of_the_second_device(stub: Stub) -> None:
    launch, widths = on_stub(stub, [0x77], device=1)
    tensor = host_array()
    launch(tensor, 0.5, 3)
    assert launch.quick(tensor, 0.5, 3) is NotImplemented
    stub.work_on(1)
    assert launch.quick(tensor, 0.5, 3) is None
    found, _ = launched(stub, widths)
    assert (found[8], found[9]) == (0x77, 1)


def test_refused_launches(stub: Stub) -> None:
    launch, _ = on_stub(stub, [0])
    tensor = host_array()
    launch(tensor, 0.5, 3)
    stub.refuse("launch")
    with pytest.raises(LaunchError) as in_c:
        launch.quick(tensor, 0.5, 3)
    launch.quick = lambda *args: NotImplemented
    with pytest.raises(LaunchError) as by_python:
        launch(tensor, 0.5, 3)
    assert str(in_c.value) == str(by_python.value)
    assert "the stub was told to refuse" in str(in_c.value)


def test_a_device_that_hip_does_not_tell_is_not_the_first(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    stub = hip_stub(tmp_path_factory.getbasetemp())
    stub.refuse(None)
    stub.work_on(0)
    launch, _ = on_stub(stub, [0])
    tensor = host_array()
    launch(tensor, 0.5, 3)
    assert launch.quick(tensor, 0.5, 3) is None
    stub.refuse("device")
    before = stub.driver.library.stub_launches()
    assert launch.quick(tensor, 0.5, 3) is NotImplemented
    assert stub.driver.library.stub_launches() == before
    stub.refuse(None)
