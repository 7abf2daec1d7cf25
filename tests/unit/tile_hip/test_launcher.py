"""Launches on AMD GPUs, against a HIP runtime that remembers what it was asked."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.stubs import stub_under_its_name
from tile_core.dtypes import dtype_of
from tile_core.errors import EmptyGridError, LaunchError, MissingFeature
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Var
from tile_core.ir.stmt import Kernel, Launch, Let, Seq
from tile_core.plugins.gpu_launch import callable_of
from tile_core.simt.program import DeviceFunction, DeviceProgram
from tile_core.target import Target
from tile_hip.driver import device_arch, open_driver
from tile_hip.machine import machine
from tile_hip.plugin import BACKEND, tile_default_target
from tile_launch.hip_driver import HipDriver
from tile_launch.libraries import candidates
from tile_launch.streams import allocator, device_of, stream_reader

INT, FLOAT, BYTE = (dtype_of(name) for name in ("int32", "float32", "int8"))
CODE = b"\x7fELF code object"


class Tensor:
    """A tensor that says it lies on a GPU, as torch's do."""

    def __init__(self, shape: tuple[int, ...], device: int = 0, address: int = 0x7000) -> None:
        self.shape, self.device, self.address = shape, device, address

    def data_ptr(self) -> int:
        return self.address

    def get_device(self) -> int:
        return self.device


def program(
    shared_bytes: int = 0, arch: str = "gfx942", *, cooperative: bool = False
) -> DeviceProgram:
    """``flag, A: (m, 8), scale`` on ``(m + 3) // 4`` blocks; the host names twice the rows."""
    m, scale, twice, flag = (Var(n, t) for n, t in (
        ("m", INT), ("scale", FLOAT), ("twice", INT), ("flag", BYTE),
    ))  # fmt: skip
    tensor = Buffer("A", (m, 8), FLOAT, Scope.GLOBAL)
    flat = Buffer("A", (0,), FLOAT, Scope.GLOBAL)
    x, y, z, bx, by = (Var(name, INT) for name in ("tx", "ty", "tz", "bx", "by"))
    launch = Launch((bx, by), ((m + 3) // 4, Const(2, INT)), (x, y, z), (256, 1, 1), Seq(()))
    function = DeviceFunction(
        "kernel", (flag, flat, scale, twice), (flag, tensor, scale, twice), launch, {},
        shared_bytes, cooperative=cooperative,
    )  # fmt: skip
    kernel = Kernel("kernel", (flag, tensor, scale), Seq(()))
    layouts: Any = None
    steps = (Let(twice, m * Const(2, INT)), function)
    return DeviceProgram(kernel, machine(arch), steps, layouts)


def launcher(
    driver: HipDriver, made: DeviceProgram | None = None, code: bytes = CODE
) -> Callable[..., None]:
    driver.library.stub_widths((ctypes.c_int * 4)(1, 8, 4, 4), 4)
    streams = lambda device: 0x500 + device  # noqa: E731
    return callable_of(
        made or program(), code, driver, streams, device_of, allocator(driver.allocate)
    )


def seen(driver: HipDriver) -> SimpleNamespace:
    """What the calling thread launched last."""
    found, memory = (ctypes.c_uint64 * 10)(), ctypes.create_string_buffer(256)
    driver.library.stub_last(found)
    driver.library.stub_kernarg(memory)
    return SimpleNamespace(
        grid=found[1:4], block=found[4:7], shared=found[7], stream=found[8], device=found[9],
        kernarg=memory.raw,
    )  # fmt: skip


def current(driver: HipDriver) -> int:
    device = ctypes.c_int()
    driver.library.hipGetDevice(ctypes.byref(device))
    return device.value


def refusing(driver: HipDriver, call: str, code: int = 1) -> None:
    driver.library.stub_set(2, call.encode(), code)


# Launches ----------------------------------------------------------------------------------


def test_blocks_that_wait_for_each_other_must_fit(driver: HipDriver) -> None:
    """The stub has 5 compute units of 1024 threads: 20 blocks of 256."""
    run = launcher(driver, program(cooperative=True))
    before = driver.library.stub_together()
    run(1, Tensor((40, 8)), 1.0)
    assert driver.library.stub_together() == before + 1
    with pytest.raises(LaunchError, match=r"the 22 blocks of kernel .* at most 20 run at a time"):
        run(1, Tensor((44, 8)), 1.0)
    assert driver.library.stub_together() == before + 1
    launcher(driver)(1, Tensor((44, 8)), 1.0)
    assert driver.library.stub_together() == before + 1


def test_extents_and_stream_reach_the_runtime(driver: HipDriver) -> None:
    launcher(driver, program(shared_bytes=4096))(1, Tensor((9, 8)), 0.5)
    found = seen(driver)
    assert (found.grid, found.block) == ([3, 2, 1], [256, 1, 1])
    assert (found.shared, found.stream, found.device) == (4096, 0x500, 0)


def test_arguments_lie_where_the_code_object_expects_them(driver: HipDriver) -> None:
    launcher(driver)(-3, Tensor((9, 8), address=0x7F0011223344), 0.5)
    packed = struct.pack("<b7xqfi", -3, 0x7F0011223344, 0.5, 18)
    found = seen(driver).kernarg
    assert found[0] == packed[0]
    assert found[8:24] == packed[8:24]


def test_each_device_loads_the_code_once(driver: HipDriver) -> None:
    run, before = launcher(driver), driver.library.stub_modules()
    for device in (1, 0, 1, 1, 0):
        run(0, Tensor((4, 8), device), 1.0)
        assert (seen(driver).device, seen(driver).stream) == (device, 0x500 + device)
        assert current(driver) == 0
    assert driver.library.stub_modules() == before + 2


def test_the_threads_own_device_stays_current(driver: HipDriver) -> None:
    run = launcher(driver)
    driver.library.hipSetDevice(1)
    run(0, Tensor((4, 8), 0), 1.0)
    assert (seen(driver).device, current(driver)) == (0, 1)
    refusing(driver, "hipModuleLaunchKernel")
    with pytest.raises(LaunchError):
        run(0, Tensor((4, 8), 0), 1.0)
    assert current(driver) == 1


def test_threads_launch_at_once_with_slots_of_their_own(driver: HipDriver) -> None:
    run, wrong, start = launcher(driver), [], threading.Barrier(3)

    def work(me: int) -> None:
        start.wait()
        for k in range(1, 100):
            run(me, Tensor((4 * k, 8), me % 2, 0x1000 * me), 1.0)
            found = seen(driver)
            address = int.from_bytes(found.kernarg[8:16], "little")
            if (found.device, found.grid[0], address) != (me % 2, k, 0x1000 * me):
                wrong.append((me, k, found))

    before = driver.library.stub_launches()
    threads = [threading.Thread(target=work, args=(me,)) for me in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert driver.library.stub_launches() == before + 3 * 99


@pytest.mark.parametrize(("wanted", "asked"), [(64 * 1024, False), (64 * 1024 + 16, True)])
def test_large_shared_memory_is_asked_for(driver: HipDriver, wanted: int, asked: bool) -> None:
    before = driver.library.stub_dynamic_shared()
    launcher(driver, program(wanted, "gfx950"))(0, Tensor((4, 8)), 1.0)
    assert seen(driver).shared == wanted
    assert driver.library.stub_dynamic_shared() == (wanted if asked else before)


def test_shared_memory_that_needs_no_asking(driver: HipDriver) -> None:
    run = launcher(driver, program(64 * 1024 + 16, "gfx950"))
    refusing(driver, "hipFuncSetAttribute")
    run(0, Tensor((4, 8)), 1.0)
    assert seen(driver).shared == 64 * 1024 + 16
    assert driver.library.hipGetLastError() == 0


def test_a_grid_without_blocks_is_an_error(driver: HipDriver) -> None:
    with pytest.raises(EmptyGridError, match="a grid of 0 x 2 x 1 blocks has nothing to run"):
        launcher(driver)(0, Tensor((0, 8)), 1.0)


# What the runtime refuses ------------------------------------------------------------------


def test_a_refused_launch_is_told_in_the_runtimes_words(driver: HipDriver) -> None:
    run = launcher(driver)
    run(0, Tensor((4, 8)), 1.0)
    refusing(driver, "hipModuleLaunchKernel", 719)
    with pytest.raises(LaunchError) as caught:
        run(0, Tensor((4, 8)), 1.0)
    assert str(caught.value) == (
        "[TL6001] the HIP runtime refused to launch kernel: the stub was told to refuse "
        "(hipErrorStub, 719)\n"
        "hint: run on target 'hip:gfx942@sim' to find the access, or with AMD_LOG_LEVEL=3 to see "
        "the calls"
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("hipModuleLoadData", "the machine code"),
        ("hipModuleGetFunction", "to find kernel"),
        ("hipSetDevice", "to make device 1 current"),
    ],
)
def test_refusals_name_the_call(driver: HipDriver, call: str, told: str) -> None:
    run = launcher(driver, program(64 * 1024 + 16, "gfx950"))
    refusing(driver, call)
    with pytest.raises(LaunchError, match=rf"the HIP runtime refused {told} \({call}\): the stub"):
        run(0, Tensor((4, 8), 1), 1.0)
    assert driver.library.hipGetLastError() == 0  # torch would find it
    refusing(driver, "")
    run(0, Tensor((4, 8), 1), 1.0)  # nothing half done is kept
    assert seen(driver).device == 1


def test_what_is_no_code_object(driver: HipDriver) -> None:
    with pytest.raises(LaunchError, match=r"hipModuleLoadData.*hipErrorInvalidImage, 200"):
        launcher(driver, code=b"text")(0, Tensor((4, 8)), 1.0)


def test_a_device_that_is_not_there(driver: HipDriver) -> None:
    with pytest.raises(LaunchError, match="there is no device 2: the HIP runtime finds 2"):
        launcher(driver)(0, Tensor((4, 8), 2), 1.0)


# Which GPU is here -------------------------------------------------------------------------


def test_the_architecture_is_found_in_the_properties(
    driver: HipDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tile_hip.driver.installed_driver", lambda: driver)
    assert device_arch() == "gfx942"
    assert str(tile_default_target()) == "hip:gfx942"
    assert str(BACKEND.exact(Target("hip"))) == "hip:gfx942"
    assert (driver.runs("gfx942"), driver.runs("gfx90a")) == (True, False)
    driver.library.stub_architecture(b"gfx1100")
    with pytest.raises(MissingFeature, match="we do not compile for gfx1100"):
        device_arch()
    assert tile_default_target() is None
    driver.library.stub_architecture(b"")
    with pytest.raises(MissingFeature) as caught:
        device_arch()
    assert str(caught.value) == (
        "[TL4004] the HIP runtime does not tell the architecture of device 0\n"
        "hint: run the kernel in the emulator: target='hip:gfx942@sim'"
    )


def test_a_runtime_without_devices_is_no_gpu(stub_path: Path, driver: HipDriver) -> None:
    driver.library.stub_set(0, b"", 0)
    with pytest.raises(MissingFeature) as caught:
        open_driver(str(stub_path))
    assert str(caught.value) == (
        "[TL4004] the HIP runtime finds no GPU\n"
        "hint: run the kernel in the emulator: target='hip:gfx942@sim'"
    )


def test_a_machine_without_runtime_names_the_emulator() -> None:
    with pytest.raises(MissingFeature, match="this machine has no HIP runtime: libnothing") as e:
        open_driver("libnothing_of_this_name.so")
    assert e.value.hint == "run the kernel in the emulator: target='hip:gfx942@sim'"


def test_a_gpu_is_needed_at_the_first_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def absent() -> HipDriver:
        asked.append(True)
        raise MissingFeature("this machine has no HIP runtime")

    monkeypatch.setattr("tile_hip.driver.installed_driver", absent)
    artifact: Any = SimpleNamespace(program=program(), compiled=SimpleNamespace(code=CODE))
    kernel: Any = None
    run = BACKEND.load(artifact, kernel)
    assert asked == []
    with pytest.raises(MissingFeature, match="no HIP runtime"):
        run(0, Tensor((4, 8)), 1.0)
    assert asked == [True]


def test_the_stub_is_no_runtime_of_this_process(stub_path: Path, driver: HipDriver) -> None:
    """Else whoever compiled for no target after these tests compiled for AMD."""
    driver.library.hipInit(0)
    found = list(candidates("libamdhip64"))
    assert str(stub_path) not in found
    assert not any(Path(path).exists() and Path(path).samefile(stub_path) for path in found)


def test_a_kernel_is_loaded_at_its_first_call(
    driver: HipDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact: Any = SimpleNamespace(program=program(), compiled=SimpleNamespace(code=CODE))
    kernel: Any = None
    run, before = BACKEND.load(artifact, kernel), driver.library.stub_modules()
    monkeypatch.setattr("tile_hip.driver.installed_driver", lambda: driver)
    driver.library.stub_widths((ctypes.c_int * 4)(1, 8, 4, 4), 4)
    for rows in (4, 8):
        run(0, Tensor((rows, 8), 1), 1.0)
        assert (seen(driver).grid[0], seen(driver).device) == (rows // 4, 1)
    assert driver.library.stub_modules() == before + 1


# Where the library is ----------------------------------------------------------------------


def test_the_library_in_use_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = "/usr/lib/libamdhip64.so.6.2"
    maps = tmp_path / "maps"
    maps.write_text(f"7f00-7f01 r-xp 00000000 fe:00 11 {loaded}\n")
    monkeypatch.setattr("tile_launch.libraries._MAPS", maps)
    for name in ("rocm", "hip"):
        (tmp_path / name / "lib").mkdir(parents=True)
        (tmp_path / name / "lib" / "libamdhip64.so.6").touch()
        monkeypatch.setenv(f"{name.upper()}_PATH", str(tmp_path / name))
    found = list(candidates("libamdhip64"))
    assert found[0] == loaded
    named = [str(tmp_path / name / "lib" / "libamdhip64.so.6") for name in ("rocm", "hip")]
    assert [path for path in found if path.startswith(str(tmp_path))] == named
    assert found.index(named[1]) < found.index("libamdhip64.so")


def test_rocm_path_names_the_library(tmp_path: Path) -> None:
    named = stub_under_its_name("tile_hip", tmp_path)
    code = "from tile_launch.hip_driver import open_driver; print(open_driver().architecture())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"ROCM_PATH": str(named.parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "gfx942\n", done.stderr


def test_streams_are_those_of_torch_for_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.version.hip", "6.2.1")
    monkeypatch.setattr("torch._C._cuda_getCurrentRawStream", lambda d: 0x70 + d, raising=False)
    assert stream_reader("hip")(1) == 0x71
