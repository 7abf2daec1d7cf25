"""The generated launcher, against a driver that remembers what it was asked."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import EmptyGridError, LaunchError, MissingFeature
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Var
from tile_core.ir.stmt import Kernel, Launch, Let, Seq
from tile_core.plugins.gpu_launch import callable_of
from tile_core.simt.program import DeviceFunction, DeviceProgram
from tile_cuda.driver import arch_of, open_driver
from tile_cuda.machine import machine
from tile_cuda.plugin import tile_default_target
from tile_launch.cuda_driver import CudaDriver as Driver

INT, FLOAT = dtype_of("int32"), dtype_of("float32")


def program(shared_bytes: int = 0, *, cooperative: bool = False) -> tuple[DeviceProgram, Var]:
    """``A: (m, 8), scale`` on ``(m + 3) // 4`` blocks; the host names twice the rows."""
    m, scale, twice = Var("m", INT), Var("scale", FLOAT), Var("twice", INT)
    tensor = Buffer("A", (m, 8), FLOAT, Scope.GLOBAL)
    flat = Buffer("A", (0,), FLOAT, Scope.GLOBAL)
    block, threads = Var("bx", INT), tuple(Var(name, INT) for name in ("tx", "ty", "tz"))
    launch = Launch(
        (block,), ((m + 3) // 4,), (threads[0], threads[1], threads[2]), (64, 2, 1), Seq(())
    )
    function = DeviceFunction(
        "kernel", (flat, scale, m, twice), (tensor, scale, m, twice), launch, {}, shared_bytes,
        cooperative=cooperative,
    )  # fmt: skip
    kernel = Kernel("kernel", (tensor, scale), Seq(()))
    steps = (Let(twice, m * Const(2, INT)), function)
    layouts: Any = None
    return DeviceProgram(kernel, machine("sm_80"), steps, layouts), m


def launcher(
    driver: Driver, device: int = 0, shared_bytes: int = 0, *, cooperative: bool = False
) -> Callable[..., None]:
    driver.library.stub_widths((ctypes.c_int * 4)(8, 4, 4, 4), 4)
    made, _ = program(shared_bytes, cooperative=cooperative)
    return callable_of(
        made, b"cubin", driver, lambda d: 0x500 + d, lambda *args: device, lambda *args: None
    )


def last(driver: Driver) -> list[int]:
    found = (ctypes.c_uint64 * 10)()
    driver.library.stub_last(found)
    return list(found)


def test_extents_parameters_and_stream_reach_the_driver(driver: Driver) -> None:
    tensor = np.zeros((9, 8), np.float32)
    launcher(driver)(tensor, 0.5)
    found = last(driver)
    assert found[1:7] == [3, 1, 1, 64, 2, 1]
    assert found[8] == 0x500
    assert driver.library.stub_value(0) == tensor.__array_interface__["data"][0]
    assert driver.library.stub_value(1) == 0x3F000000  # 0.5f
    assert (driver.library.stub_value(2), driver.library.stub_value(3)) == (9, 18)


def test_each_device_loads_the_code_once(driver: Driver) -> None:
    run = launcher(driver, device=1)
    before = driver.library.stub_modules()
    for _ in range(3):
        run(np.zeros((4, 8), np.float32), 1.0)
    assert driver.library.stub_modules() == before + 1
    assert last(driver)[8:] == [0x501, 1]


@pytest.mark.parametrize(("wanted", "asked"), [(48 * 1024, False), (48 * 1024 + 16, True)])
def test_large_shared_memory_is_asked_for(driver: Driver, wanted: int, asked: bool) -> None:
    before = driver.library.stub_dynamic_shared()
    launcher(driver, shared_bytes=wanted)(np.zeros((4, 8), np.float32), 1.0)
    assert last(driver)[7] == wanted
    assert driver.library.stub_dynamic_shared() == (wanted if asked else before)


def test_a_grid_without_blocks_is_an_error(driver: Driver) -> None:
    with pytest.raises(EmptyGridError) as caught:
        launcher(driver)(np.zeros((0, 8), np.float32), 1.0)
    assert str(caught.value) == (
        "[TL6007] a grid of 0 x 1 x 1 blocks has nothing to run\n"
        "hint: pass tensors whose extents are at least 1"
    )


def test_blocks_that_wait_for_each_other_must_fit(driver: Driver) -> None:
    """The stub has 5 multiprocessors of 1024 threads: 40 blocks of 128."""
    run = launcher(driver, cooperative=True)
    run(np.zeros((160, 8), np.float32), 1.0)
    found = np.zeros((8, 18), np.uint32)
    count = driver.library.stub_attributes(found.ctypes.data_as(ctypes.c_void_p))
    assert (count, last(driver)[1]) == (1, 40)
    assert (found[0, 0], found[0, 2]) == (2, 1)  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    before = driver.library.stub_launches()
    with pytest.raises(LaunchError) as caught:
        run(np.zeros((161, 8), np.float32), 1.0)
    assert str(caught.value) == (
        "[TL6001] the 41 blocks of kernel wait for each other, and at most 40 run at a time: 8 on "
        "each of 5 multiprocessors\n"
        "hint: launch fewer blocks, each of which does more"
    )
    assert driver.library.stub_launches() == before


def test_what_the_driver_refuses_is_said_in_its_words(driver: Driver) -> None:
    run = launcher(driver)
    run(np.zeros((4, 8), np.float32), 1.0)
    driver.library.stub_set(2, 700)
    with pytest.raises(LaunchError, match=r"to launch kernel: the stub was told to refuse"):
        run(np.zeros((4, 8), np.float32), 1.0)


def test_a_machine_without_driver_names_the_emulator() -> None:
    with pytest.raises(MissingFeature) as caught:
        open_driver("libnothing_of_this_name.so")
    assert caught.value.hint == "run the kernel in the emulator: target='cuda:sm_80@sim'"


def test_a_driver_without_devices_is_no_gpu(stub_path: Path, driver: Driver) -> None:
    driver.library.stub_set(0, 0)
    with pytest.raises(MissingFeature) as caught:
        open_driver(str(stub_path))
    assert str(caught.value) == (
        "[TL4004] the NVIDIA driver finds no GPU\n"
        "hint: run the kernel in the emulator: target='cuda:sm_80@sim'"
    )


@pytest.mark.parametrize(
    ("capability", "arch"),
    [
        ((7, 0), "sm_70"),
        ((7, 2), "sm_70"),
        ((8, 6), "sm_86"),
        ((8, 8), "sm_87"),
        ((9, 0), "sm_90a"),
    ],
)
def test_architecture_of_a_device(capability: tuple[int, int], arch: str) -> None:
    assert arch_of(*capability) == arch


def test_a_device_of_no_known_generation() -> None:
    with pytest.raises(MissingFeature) as caught:
        arch_of(6, 1)
    assert str(caught.value) == (
        "[TL4004] no architecture we compile for runs on compute capability 6.1\n"
        "hint: use a GPU of one of sm_70, sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, "
        "sm_100f, sm_100a, sm_103a, sm_110a, sm_120f, sm_120a, sm_121a"
    )


def test_auto_is_the_gpu_that_is_there(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tile_cuda.driver.installed_driver", lambda: driver)
    assert str(tile_default_target()) == "cuda:sm_86"


def test_auto_is_not_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Driver:
        raise MissingFeature("no driver")

    monkeypatch.setattr("tile_cuda.driver.installed_driver", none)
    assert tile_default_target() is None
