"""Which variant runs here, and kernels of bundles on GPUs that remember what they were asked."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from support.bundles import bundle_of_numbers, numbers
from support.stubs import Foreign, compiled_stub
from tile_launch import cuda_driver, hip_driver, load
from tile_launch.bundle import Bundle, Variant, write_bundle
from tile_launch.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    AssumptionError,
    EmptyGridError,
    LaunchError,
    MissingFeature,
    NoVariant,
)
from tile_launch.loading import choose, loaded_again
from tile_launch.manifest import Address, MachineRequirements, Workspace


@pytest.fixture
def cuda(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A CUDA driver with two GPUs of compute capability 8.6."""
    path = compiled_stub("tile_cuda", tmp_path_factory.getbasetemp())
    library = ctypes.CDLL(str(path))
    library.stub_set(2, 0)
    library.cuCtxSetCurrent(None)
    library.stub_widths((ctypes.c_int * 4)(8, 4, 8, 4), 4)
    library.stub_value.restype = ctypes.c_uint64
    driver = cuda_driver.open_driver(str(path))
    gpus = {"cuda": lambda: driver, "hip": missing}
    monkeypatch.setattr("tile_launch.loading._GPUS", gpus)
    return library


@pytest.fixture
def hip(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A HIP runtime with two GPUs of gfx942."""
    path = compiled_stub("tile_hip", tmp_path_factory.getbasetemp())
    library = ctypes.CDLL(str(path))
    library.stub_set(2, b"", 0)
    library.stub_architecture(b"gfx942:sramecc+:xnack-")
    library.hipSetDevice(0)
    library.stub_widths((ctypes.c_int * 4)(8, 4, 8, 4), 4)
    driver = hip_driver.open_driver(str(path))
    gpus = {"cuda": missing, "hip": lambda: driver}
    monkeypatch.setattr("tile_launch.loading._GPUS", gpus)
    return library


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tile_launch.loading._GPUS", {"cuda": missing, "hip": missing})


def missing() -> Any:
    raise MissingFeature("there is no driver")


def chosen(*variants: Variant | str, target: str | None = None) -> str:
    made = [Variant(numbers(v), b"") if isinstance(v, str) else v for v in variants]
    return choose(Bundle("numbers", tuple(made)), target).target


def processor(name: str, *features: str) -> Variant:
    machine = MachineRequirements(family="cpu", name=name, features=features)
    return Variant(replace(numbers(), machine=machine), b"")


# Choosing ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("cuda")
def test_the_best_code_for_the_gpu() -> None:
    everything = ("cuda:sm_75", "cuda:sm_80", "cuda:sm_86", "cuda:sm_90", "hip:gfx942", "cpu:any")
    assert chosen(*everything) == "cuda:sm_86"
    assert chosen("cuda:sm_75", "cuda:sm_80", "cuda:sm_90") == "cuda:sm_80"
    assert chosen(*everything, target="cuda:sm_80") == "cuda:sm_80"
    assert chosen(*everything, target="cpu") == "cpu:any"
    with pytest.raises(NoVariant, match=r"cuda:sm_90: the GPU is sm_86; hip:gfx942: there is no"):
        chosen("cuda:sm_90", "hip:gfx942")


@pytest.mark.usefixtures("hip")
def test_the_code_for_an_amd_gpu() -> None:
    assert chosen("cuda:sm_80", "hip:gfx90a", "hip:gfx942", "cpu:any") == "hip:gfx942"
    with pytest.raises(NoVariant, match=r"hip:gfx90a: the GPU is gfx942"):
        chosen("hip:gfx90a")


@pytest.mark.usefixtures("no_gpu")
def test_the_code_that_uses_most_of_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    have = frozenset({"avx2", "fma", "avx512f"})
    monkeypatch.setattr("tile_launch.cpu_driver.processor_features", lambda: have)
    plain, wide = processor("plain", "avx2"), processor("wide", "avx2", "avx512f")
    matrix = processor("matrix", "avx2", "avx512f", "amx_tile")
    assert chosen("cuda:sm_80", plain, wide, matrix) == "cpu:wide"
    with pytest.raises(NoVariant, match="cpu:matrix: the processor lacks amx_tile"):
        chosen(matrix)


# Calls -------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "x.tile"
    bundle_of_numbers(found, "cuda:sm_80", "hip:gfx942")
    return found


def launched(library: Any) -> SimpleNamespace:
    found = (ctypes.c_uint64 * 10)()
    library.stub_last(found)
    return SimpleNamespace(grid=found[1:4], block=found[4:7], shared=found[7], device=found[9])


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_a_call_on_an_nvidia_gpu(path: Path, cuda: Any) -> None:
    kernel = load(path)
    assert (kernel.name, kernel.target) == ("numbers", "cuda:sm_80")
    a, b = np.zeros((6, 8), np.float32), np.zeros((6, 8), np.float32)
    for device in (1, 0):
        kernel.run(Foreign(a, 2, device), 0.5, Foreign(b, 2, device))
        found = launched(cuda)
        assert (found.grid, found.block, found.shared) == ([6, 1, 1], [32, 1, 1], 1024)
        assert found.device == device
        assert [cuda.stub_value(k) for k in range(4)] == [address(a), 0x3F000000, address(b), 6]


def test_a_call_on_an_amd_gpu(path: Path, hip: Any) -> None:
    kernel = load(path)
    a, b = np.zeros((6, 8), np.float32), np.zeros((6, 8), np.float32)
    kernel.run(Foreign(a, 10, 1), 0.5, Foreign(b, 10, 1))
    memory = (ctypes.c_uint64 * 32)()
    hip.stub_kernarg(memory)
    assert (memory[0], memory[2], memory[3] & 0xFFFFFFFF) == (address(a), address(b), 6)
    assert (launched(hip).grid, launched(hip).device) == ([6, 1, 1], 1)
    assert kernel.target == "hip:gfx942"


@pytest.mark.parametrize("maker", ["cuda", "hip"])
def test_workspaces_of_the_driver_are_given_back(
    tmp_path: Path, request: pytest.FixtureRequest, maker: str
) -> None:
    library = request.getfixturevalue(maker)
    library.stub_held.restype = ctypes.c_uint64
    told = numbers({"cuda": "cuda:sm_80", "hip": "hip:gfx942"}[maker])
    (launch,) = told.launches
    workspace = Workspace(name="room", dtype="float16", shape=("m", 3))
    arguments = (Address(tensor="room"), *launch.arguments[1:])
    steps = (replace(launch, arguments=arguments),)
    write_bundle(
        tmp_path / "x.tile",
        [Variant(replace(told, workspaces=(workspace,), steps=steps), b"\x7fELF")],
    )
    kernel, kind = load(tmp_path / "x.tile"), {"cuda": 2, "hip": 10}[maker]
    held: list[int] = []
    launch_kernel = kernel.run_unchecked

    def looking(*args: Any) -> None:
        sys.setprofile(lambda *what: held.append(library.stub_held()))
        launch_kernel(*args)
        sys.setprofile(None)

    kernel.run_unchecked = looking
    for _ in range(2):
        kernel.run(Foreign(A, kind), 1.0, Foreign(A.copy(), kind))
        assert max(held) == 6 * 3 * 2
        assert library.stub_held() == 0
    assert launched(library).grid == [6, 1, 1]


@pytest.fixture
def on_host() -> Any:
    """`numbers` on the processor, with an executable that only remembers."""
    from tile_launch.kernel import LoadedKernel

    calls: list[tuple[Any, ...]] = []
    machine = MachineRequirements(family="cpu", name="any")
    numbered = replace(numbers(), machine=machine)
    kernel = LoadedKernel(numbered, lambda *args: calls.append(args), b"", loaded_again)
    return SimpleNamespace(kernel=kernel, calls=calls)


A = np.zeros((6, 8), np.float32)


def test_outputs_are_allocated_and_returned(on_host: Any) -> None:
    import torch

    for value, kind in ((A, np.ndarray), (torch.zeros(6, 8), torch.Tensor)):
        for rows in (6, 6, 3):
            found = on_host.kernel(value[:rows], 2)
            assert isinstance(found, kind)
            assert (tuple(found.shape), str(found.dtype).split(".")[-1]) == ((rows, 8), "float32")
            assert on_host.calls[-1][2] is found


def test_a_written_tensor_of_torch_says_so(on_host: Any) -> None:
    import torch

    written = torch.zeros(6, 8)
    before = written._version
    kernel = type(on_host.kernel)(
        replace(on_host.kernel.manifest, outputs=()),
        on_host.kernel.run_unchecked,
        b"",
        loaded_again,
    )
    for count in (1, 2):
        kernel(torch.zeros(6, 8), 1.0, written)
        assert written._version == before + count


@pytest.mark.parametrize(
    ("args", "error", "told"),
    [
        ((A,), ArgumentCountError, r"numbers\(A, scale\) takes 2 arguments, got 1"),
        ((3, 1.0), ArgumentTypeError, r"numbers\.A: expected a tensor, got int"),
        ((None, 1.0), ArgumentTypeError, r"numbers\.A: expected a tensor, got None"),
        ((A, "x"), ArgumentTypeError, r"numbers\.scale: expected a float \(float32\), got str"),
        ((A, True), ArgumentTypeError, r"numbers\.scale: expected a float \(float32\), got bool"),
        ((A.astype("float64"), 1.0), ArgumentDtypeError, r"A\.dtype: expected float32, got f"),
        ((A[0], 1.0), ArgumentShapeError, r"A\.ndim: expected 2 \[m, 8\], got 1 \[8\]"),
        ((A[:, :4].copy(), 1.0), ArgumentShapeError, r"A\.shape\[1\]: expected 8, got 4"),
        ((np.zeros((8, 6), "f").T, 1.0), ArgumentLayoutError, r"A\.strides\[0\]: expected 8, got"),
        ((A[::2], 1.0), ArgumentLayoutError, r"A\.strides\[0\]: expected 8, got 16"),
        ((A[:0], 1.0), EmptyGridError, r"the grid's x extent m is 0; it must be at least 1"),
        ((np.zeros((1001, 8), "f"), 1.0), AssumptionError, r"Assume: m <= 1000 \(does not hold"),
        ((Foreign(A, 2, 0), 1.0), ArgumentLayoutError, r"runs on cpu, the tensor is on cuda:0"),
        ((np.zeros((6, 8), ">f4"), 1.0), ArgumentDtypeError, r"got byte-swapped float32"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(
    on_host: Any, args: tuple[Any, ...], error: type[LaunchError], told: str
) -> None:
    for _ in range(2):
        on_host.kernel(A, 1.0)  # what fitted before makes no difference
        with pytest.raises(error, match=told):
            on_host.kernel(*args)


def test_another_format_of_the_same_name_is_refused(on_host: Any) -> None:
    told = on_host.kernel.manifest
    first = replace(told.parameters[0], dtype="float8_e4m3fn")
    changed = replace(told, parameters=(first, *told.parameters[1:]))
    kernel = type(on_host.kernel)(changed, on_host.kernel.run_unchecked, b"", loaded_again)
    kernel(np.zeros((6, 8), ml_dtypes.float8_e4m3fn), 1.0)
    with pytest.raises(ArgumentDtypeError) as caught:
        kernel(np.zeros((6, 8), ml_dtypes.float8_e4m3), 1.0)
    assert str(caught.value) == (
        "[TL6005] numbers.A.dtype: expected float8_e4m3fn, got IEEE's float8_e4m3, which ends at "
        "240 and has infinities\n"
        "hint: convert it first: x.to(torch.float8_e4m3fn), or x.astype('float8_e4m3fn')"
    )


def test_elements_of_four_bits_come_in_bytes(on_host: Any) -> None:
    told = on_host.kernel.manifest
    first = replace(told.parameters[0], dtype="int4")
    changed = replace(told, parameters=(first, *told.parameters[1:]))
    kernel = type(on_host.kernel)(changed, on_host.kernel.run_unchecked, b"", loaded_again)
    assert kernel(np.zeros((6, 4), np.int8), 1.0).shape == (6, 8)
    with pytest.raises(ArgumentDtypeError) as caught:
        kernel(A, 1.0)
    assert str(caught.value) == (
        "[TL6005] numbers.A.dtype: expected int4, got float32\n"
        "hint: pass bytes (int8 or uint8) that hold two elements each, the first in the low half"
    )
    with pytest.raises(ArgumentShapeError, match=r"A\.shape\[1\]: expected 8, got 16"):
        kernel(np.zeros((6, 8), np.uint8), 1.0)


def test_a_read_only_output_is_refused(on_host: Any) -> None:
    frozen = A.copy()
    frozen.flags.writeable = False
    on_host.kernel.run(frozen, 1.0, A)
    with pytest.raises(ArgumentLayoutError, match=r"numbers\.B: the kernel writes this tensor"):
        on_host.kernel.run(A, 1.0, frozen)


def test_host_memory_is_not_a_gpus(path: Path, cuda: Any) -> None:
    with pytest.raises(ArgumentLayoutError, match="the kernel runs on cuda, the tensor is on cpu"):
        load(path)(A, 1.0)


def test_outputs_on_a_gpu_are_torchs(
    path: Path, cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    with pytest.raises(LaunchError, match="an output on cuda is allocated by torch"):
        load(path)(Foreign(A, 2, 0), 1.0)
