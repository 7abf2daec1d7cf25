"""What the host does around launches: devices, threads, scalars, symbols, workspaces."""

import ctypes
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import AssumptionError, LaunchError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Var
from tile_core.ir.stmt import Check, CheckKind, Kernel, Launch, Let, Seq
from tile_core.plugins.gpu_launch import callable_of
from tile_core.simt.program import DeviceFunction, DeviceProgram
from tile_cuda.machine import machine
from tile_launch import errors
from tile_launch.cuda_driver import CudaDriver as Driver
from tile_launch.streams import device_of

INT, FLOAT = dtype_of("int32"), dtype_of("float32")


class Tensor:
    """A tensor that says it lies on a GPU, as torch's do."""

    def __init__(self, shape: tuple[int, ...], device: int = 0, address: int = 0x7000) -> None:
        self.shape, self.device, self.address = shape, device, address

    def data_ptr(self) -> int:
        return self.address

    def get_device(self) -> int:
        return self.device

    def stride(self) -> tuple[int, ...]:
        return tuple(int(np.prod(self.shape[k + 1 :])) for k in range(len(self.shape)))


def function(name: str, arguments: tuple[Any, ...], grid: tuple[Any, ...]) -> DeviceFunction:
    params = tuple(
        Buffer(a.name, (0,), a.dtype, Scope.GLOBAL) if isinstance(a, Buffer) else a
        for a in arguments
    )
    x, y, z, *blocks = (Var(n, INT) for n in ("tx", "ty", "tz", "bx", "by", "bz"))
    launch = Launch(tuple(blocks[: len(grid)]), grid, (x, y, z), (32, 1, 1), Seq(()))
    return DeviceFunction(name, params, arguments, launch, {}, 0)


def launcher(
    driver: Driver, params: tuple[Any, ...], steps: tuple[Any, ...], workspaces: Any = (),
    empty: Callable[..., Any] = lambda *args: None,
) -> Callable[..., None]:  # fmt: skip
    layouts: Any = None
    kernel = Kernel("kernel", params, Seq(()))
    program = DeviceProgram(kernel, machine("sm_80"), steps, layouts, workspaces)
    return callable_of(program, b"", driver, lambda device: 0x500 + device, device_of, empty)


def simple(driver: Driver) -> Callable[..., None]:
    """One launch of one block on a tensor of 8 numbers."""
    tensor = Buffer("A", (8,), FLOAT, Scope.GLOBAL)
    expect_widths(driver, 8)
    return launcher(driver, (tensor,), (function("kernel", (tensor,), (1,)),))


def expect_widths(driver: Driver, *widths: int) -> None:
    driver.library.stub_widths((ctypes.c_int * len(widths))(*widths), len(widths))


def seen(driver: Driver) -> SimpleNamespace:
    """What the calling thread launched last."""
    found = (ctypes.c_uint64 * 10)()
    driver.library.stub_last(found)
    values = [driver.library.stub_value(k) for k in range(8)]
    return SimpleNamespace(grid=found[1:4], stream=found[8], device=found[9], values=values)


# Devices and threads -----------------------------------------------------------------------


def test_launches_follow_their_tensors_from_device_to_device(driver: Driver) -> None:
    run, before = simple(driver), driver.library.stub_modules()
    for device in (1, 0, 1, 1, 0):
        run(Tensor((8,), device))
        assert (seen(driver).device, seen(driver).stream) == (device, 0x500 + device)
    assert driver.library.stub_modules() == before + 2


def test_the_threads_own_device_stays_current(driver: Driver) -> None:
    run = simple(driver)
    driver.library.cuCtxSetCurrent(0x101)
    run(Tensor((8,), 0))
    assert (seen(driver).device, driver.library.stub_context()) == (0, 0x101)


def test_a_thread_without_device_keeps_that_of_the_first(driver: Driver) -> None:
    run = simple(driver)
    run(Tensor((8,), 1))
    assert driver.library.stub_context() == 0
    run(Tensor((8,), 0))
    assert driver.library.stub_context() == 0x100


def test_a_refused_launch_leaves_the_threads_device_current(driver: Driver) -> None:
    run = simple(driver)
    driver.library.cuCtxSetCurrent(0x101)
    driver.library.stub_set(2, 700)
    with pytest.raises(LaunchError, match="told to refuse"):
        run(Tensor((8,), 0))
    assert driver.library.stub_context() == 0x101


def test_threads_launch_at_once_with_slots_of_their_own(driver: Driver) -> None:
    tensor, number = Buffer("A", (8,), FLOAT, Scope.GLOBAL), Var("number", dtype_of("int64"))
    run = launcher(driver, (tensor, number), (function("kernel", (tensor, number), (number,)),))
    expect_widths(driver, 8, 8)
    rounds, wrong, start = 200, [], threading.Barrier(4)

    def work(me: int) -> None:
        start.wait()
        for k in range(1, rounds + 1):
            run(Tensor((8,), me % 2, 0x1000 * me), k)
            now = seen(driver)
            if (now.device, now.grid[0], now.values[:2]) != (me % 2, k, [0x1000 * me, k]):
                wrong.append((me, k, now))

    before = driver.library.stub_launches()
    threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert driver.library.stub_launches() == before + 4 * rounds


def test_tensors_on_two_devices_are_refused() -> None:
    with pytest.raises(errors.LaunchError) as caught:
        device_of(Tensor((8,), 0), None, Tensor((8,), 1))
    assert str(caught.value) == (
        "[TL6001] the tensors lie on devices 0 and 1\n"
        "hint: move all tensors of one call to one device"
    )
    assert device_of(None, Tensor((8,), 1)) == 1


def test_without_tensors_it_is_torchs_current_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_of(None) == 0
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.current_device", lambda: 1)
    assert (device_of(), device_of(None), device_of(Tensor((8,), 0))) == (1, 1, 0)


# Parameters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value", "width", "bits"),
    [
        ("int64", -3, 8, (1 << 64) - 3),
        ("uint64", (1 << 64) - 1, 8, (1 << 64) - 1),
        ("int8", -1, 1, 0xFF),
        ("uint16", 65535, 2, 65535),
        ("bool", True, 1, 1),
        ("float32", -0.5, 4, 0xBF000000),
        ("float64", 0.1, 8, 0x3FB999999999999A),
    ],
)
def test_scalars_are_passed_in_their_own_type(
    driver: Driver, dtype: str, value: Any, width: int, bits: int
) -> None:
    scalar = Var("x", dtype_of(dtype))
    expect_widths(driver, width)
    launcher(driver, (scalar,), (function("kernel", (scalar,), (1,)),))(value)
    assert seen(driver).values[0] == bits


def test_scalars_without_a_type_in_c(driver: Driver) -> None:
    scalar = Var("x", dtype_of("float16"))
    run = launcher(driver, (scalar,), (function("kernel", (scalar,), (1,)),))
    with pytest.raises(LaunchError) as caught:
        run(0.5)
    assert str(caught.value) == (
        "[TL6001] a scalar of float16 cannot be passed to a kernel\n"
        "hint: declare the parameter as float32 and convert it in the kernel"
    )


def test_symbols_are_solved_from_shapes_and_strides(driver: Driver) -> None:
    m, n, pad = Var("m", INT), Var("n", INT), Var("pad", INT)
    strided = Buffer("A", (m, 4), FLOAT, Scope.GLOBAL, (pad * 4, 1))
    pair = Buffer("B", (m + n,), FLOAT, Scope.GLOBAL)  # takes what A tells
    steps = (function("kernel", (strided, pair, m, n, pad), ((m + 3) // 4, n)),)
    expect_widths(driver, 8, 8, 4, 4, 4)
    first = Tensor((6, 4))
    first.stride = lambda: (12, 1)  # type: ignore[method-assign]
    launcher(driver, (strided, pair), steps)(first, Tensor((11,), address=0x9000))
    assert seen(driver).values[:5] == [0x7000, 0x9000, 6, 5, 3]
    assert seen(driver).grid == [2, 5, 1]


def test_workspaces_are_allocated_for_each_call_on_the_tensors_device(driver: Driver) -> None:
    m = Var("m", INT)
    tensor = Buffer("A", (m,), FLOAT, Scope.GLOBAL)
    workspace = Buffer("W", (m * 2, 3), dtype_of("float16"), Scope.GLOBAL, workspace=True)
    asked: list[Any] = []

    def empty(*what: Any) -> Tensor:
        asked.append(what)
        return Tensor((1,), 1, 0xA000 + len(asked))

    steps = (function("kernel", (tensor, workspace), (1,)),)
    run = launcher(driver, (tensor,), steps, (workspace,), empty)
    expect_widths(driver, 8, 8)
    for _ in range(2):
        run(Tensor((5,), 1))
    assert asked == [((10, 3), "float16", 1)] * 2
    assert seen(driver).values[1] == 0xA002


def two_launches(driver: Driver) -> Callable[..., None]:
    """A launch on m blocks, a name for ``m // 2``, a condition on it, a launch on as many."""
    m, half = Var("m", INT), Var("half", INT)
    tensor = Buffer("A", (m,), FLOAT, Scope.GLOBAL)
    condition = Check(half >= 2, "half a tensor is two elements or more", CheckKind.ASSERT)
    steps = (
        function("kernel_1", (tensor, m), (m,)),
        Let(half, m // Const(2, INT)),
        condition,
        function("kernel_22", (tensor, half), (half, half)),
    )
    return launcher(driver, (tensor,), steps)


def test_names_between_launches(driver: Driver) -> None:
    before = driver.library.stub_launches()
    expect_widths(driver, 8, 4)
    two_launches(driver)(Tensor((7,)))
    assert driver.library.stub_launches() == before + 2
    assert (seen(driver).grid, seen(driver).values[:2]) == ([3, 3, 1], [0x7000, 3])


def test_conditions_between_launches(driver: Driver) -> None:
    before = driver.library.stub_launches()
    expect_widths(driver, 8, 4)
    with pytest.raises(AssumptionError) as caught:
        two_launches(driver)(Tensor((3,)))
    assert str(caught.value) == (
        "[TL6008] half a tensor is two elements or more (does not hold for these arguments)\n"
        "hint: pass arguments for which it holds"
    )
    assert driver.library.stub_launches() == before + 1
