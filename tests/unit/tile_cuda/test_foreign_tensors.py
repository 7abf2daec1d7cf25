"""Tensors of libraries other than torch on a GPU, and outputs beside them."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_api.launching import Launcher
from tile_core.errors import ArgumentLayoutError, LaunchError
from tile_core.plugins.gpu_launch import callable_of
from tile_launch.cuda_driver import CudaDriver as Driver
from tile_launch.dlpack import DeviceTensor, opened
from tile_launch.streams import allocator, device_of

n, s = T.dynamic("n, s")


@T.prim_func
def double(A: T.StridedTensor((n, 4), (s, 1), "float32"), B: T.Tensor((n, 4), "float32")):
    with T.Kernel(n, threads=32) as bx:
        for i in T.Parallel(4):
            B[bx, i] = A[bx, i] * 2.0


class Foreign:
    """An array that claims to lie on a GPU, and speaks nothing but DLPack."""

    def __init__(self, array: np.ndarray, device: int = 0) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device)

    def __dlpack__(self) -> Any:
        capsule = self.array.__dlpack__()
        tensor, _ = opened(capsule)
        tensor.device_type, tensor.device_id = self.__dlpack_device__()
        return capsule


def launcher(driver: Driver, out: bool = False) -> tuple[Launcher, Callable[..., list[int]]]:
    """Return the kernel on the stub driver, and what tells the parameters it was given."""
    lowered = tile.lower(double, target="cuda:sm_80", out_idx=[1] if out else None)
    program = lowered.device_mod
    driver.library.stub_widths((ctypes.c_int * 3)(8, 8, 4), 3)
    run = callable_of(program, b"", driver, lambda device: 0, device_of, allocator(driver.allocate))
    return Launcher(lowered.lowered.kernel, run, "cuda"), lambda: [
        driver.library.stub_value(k) for k in range(3)
    ]


def test_addresses_strides_and_devices_come_from_the_capsule(driver: Driver) -> None:
    run, passed = launcher(driver)
    a, b = np.zeros((6, 8), np.float32), np.zeros((6, 4), np.float32)
    run(Foreign(a[:, :4], 1), Foreign(b, 1))
    addresses = [x.__array_interface__["data"][0] for x in (a, b)]
    assert passed()[:2] == addresses
    assert passed()[2:] == [8]  # the distance between rows
    found = (ctypes.c_uint64 * 10)()
    driver.library.stub_last(found)
    assert (found[1], found[9]) == (6, 1)


def test_host_memory_is_not_a_gpus(driver: Driver) -> None:
    run, _ = launcher(driver)
    a = np.zeros((6, 4), np.float32)
    with pytest.raises(ArgumentLayoutError) as caught:
        run(a, Foreign(a))
    assert caught.value.message == (
        "double.A.device: the kernel runs on cuda, the tensor is on cpu"
    )
    with pytest.raises(ArgumentLayoutError, match="it is on cuda:1, A is on cuda:0"):
        run(Foreign(a, 0), Foreign(a, 1))


def test_outputs_beside_them_are_torchs_on_their_device(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, str]] = []

    def allocated(shape: tuple[int, ...], *, dtype: Any, device: str) -> Any:
        asked.append((shape, device))
        return DeviceTensor(shape, (4, 1), 0x7000, 1, None)

    run, passed = launcher(driver, out=True)
    monkeypatch.setattr(torch, "empty", allocated)
    run(Foreign(np.zeros((6, 4), np.float32), 1))
    assert asked == [((6, 4), "cuda:1")]
    assert passed()[1] == 0x7000


def test_outputs_without_torch(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = launcher(driver, out=True)
    monkeypatch.delitem(sys.modules, "torch")
    with pytest.raises(LaunchError) as caught:
        run(Foreign(np.zeros((6, 4), np.float32)))
    assert str(caught.value) == (
        "[TL6001] an output on cuda is allocated by torch, which is not loaded\n"
        "hint: import torch before the call, or pass the output as an argument"
    )
