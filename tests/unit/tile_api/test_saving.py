"""Kernels saved for several machines, and run where there is nothing but NumPy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
import tile_launch
from support.stubs import stub_under_its_name
from tile_core.errors import FrontendTypeError, ToolchainError, UnsupportedOnTarget
from tile_cpu import export
from tile_cpu.cpu_machine import Isa, host_isa
from tile_cpu.machine import host_machine
from tile_launch.bundle import read_bundle
from tile_launch.errors import AssumptionError, DeviceAssertError, LaunchError, NoVariant

needs_cc = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)
pytestmark = needs_cc
m, n = T.dynamic("m, n")


@T.prim_func
def product(
    A: T.Tensor((m, 64), "float32"), B: T.Tensor((64, 96), "float32"),
    C: T.Tensor((m, 96), "float32"),
):  # fmt: skip
    with T.Kernel(T.ceildiv(96, 32), T.ceildiv(m, 32), threads=64) as (bx, by):
        a = T.alloc_shared((32, 16), "float32")
        b = T.alloc_shared((16, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[by * 32, k * 16], a)
            T.copy(B[k * 16, bx * 32], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 32, bx * 32])


@T.prim_func
def checked(
    A: T.StridedTensor((n, 4), (m, 1), "int32"), flag: T.bool, shift: T.int64, scale: T.float32,
    B: T.Tensor((n, 4), "float32"),
):  # fmt: skip
    T.assume(n <= 100)
    with T.Kernel(n, threads=32) as bx:
        for i in T.Parallel(4):
            T.device_assert(A[bx, i] < 100, "small numbers")
            B[bx, i] = T.if_then_else(flag, A[bx, i] * scale, T.cast(shift, "float32"))


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(-4, 5, shape).astype(np.float32)


def test_the_processors_own_code(tmp_path: Path) -> None:
    tile.compile(product, target="cpu", out_idx=[2]).save(tmp_path / "x.tile")
    kernel = tile_launch.load(tmp_path / "x.tile")
    b = integers(64, 96)
    for rows in (1, 32, 77):
        a = integers(rows, 64)
        np.testing.assert_array_equal(kernel(a, b), a @ b)
    out = np.full((8, 96), np.nan, np.float32)
    kernel.run(integers(8, 64), b, out)
    np.testing.assert_array_equal(out, integers(8, 64) @ b)


def test_scalars_strides_and_conditions(tmp_path: Path) -> None:
    compiled = tile.compile(checked, target="cpu", out_idx=[4])
    compiled.save(tmp_path / "x.tile")
    kernel = tile_launch.load(tmp_path / "x.tile")
    whole = np.arange(70, dtype=np.int32).reshape(10, 7)
    for flag in (True, False):
        args = (whole[:, :4], flag, -(1 << 33), 0.5)
        wanted = whole[:, :4] * 0.5 if flag else np.full((10, 4), -float(1 << 33))
        np.testing.assert_array_equal(kernel(*args), wanted)
        np.testing.assert_array_equal(compiled(*args), wanted)
    with pytest.raises(DeviceAssertError, match=r"device assertion failed: small numbers"):
        kernel(whole[:, :4] + 60, True, 0, 1.0)
    np.testing.assert_array_equal(kernel(whole[:, :4], True, 0, 1.0), whole[:, :4])
    with pytest.raises(AssumptionError, match="n <= 100"):
        kernel(np.zeros((101, 4), np.int32), True, 0, 1.0)
    with pytest.raises(LaunchError, match=r"checked\.shift: \d+ does not fit int64"):
        kernel(whole[:, :4], True, 1 << 63, 1.0)


def test_threads_call_at_once(tmp_path: Path) -> None:
    tile.compile(product, target="cpu", out_idx=[2]).save(tmp_path / "x.tile")
    kernel, b, wrong = tile_launch.load(tmp_path / "x.tile"), integers(64, 96), []

    def work(rows: int) -> None:
        a = integers(rows, 64)
        wrong.extend(rows for _ in range(20) if not (kernel(a, b) == a @ b).all())

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (5, 33, 70)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_functions_in_c_come_along(tmp_path: Path) -> None:
    @T.prim_func
    def twice(A: T.Tensor((64,), "int32")):
        T.import_source("int twice(int x) { return 2 * x; }")
        with T.Kernel(1):
            for i in T.serial(64):
                A[i] = T.call_extern("int32", "twice", A[i])

    tile.compile(twice, target="cpu").save(tmp_path / "x.tile")
    numbers = np.arange(64, dtype=np.int32)
    tile_launch.load(tmp_path / "x.tile")(numbers)
    np.testing.assert_array_equal(numbers, 2 * np.arange(64))


def test_what_a_kernel_prints_is_seen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    @T.prim_func
    def said(A: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            T.print(A[0], "number")

    tile.compile(said, target="cpu").save(tmp_path / "x.tile")
    tile_launch.load(tmp_path / "x.tile")(np.array([41], np.int32))
    assert "41" in capfd.readouterr().out


def test_the_same_kernel_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tile.compile(product, target="cuda:sm_80").save(tmp_path / name, targets=["cuda:sm_80"])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "interpret", "toy"])
def test_what_is_no_machine_code_cannot_be_saved(tmp_path: Path, target: str) -> None:
    kernel = tile.compile(product, target="cpu")
    with pytest.raises(UnsupportedOnTarget) as caught:
        kernel.save(tmp_path / "x.tile", targets=["cpu", target])
    assert str(caught.value) == (
        f"[TL4001] kernels for {target} cannot be saved: they are not machine code\n"
        "hint: save kernels for machines: targets=['cpu', 'cuda:sm_80', 'hip:gfx942']"
    )
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(find_spec("ziglang") is None, reason="needs ziglang, a cross compiler")
def test_code_for_another_architecture_is_saved_and_refused_by_name(tmp_path: Path) -> None:
    tile.compile(product, target="cpu").save(tmp_path / "x.tile", targets=["cpu:neoverse-n1"])
    (variant,) = read_bundle(tmp_path / "x.tile").variants
    code, machine = variant.code, variant.manifest.machine
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == 183  # EM_AARCH64 of the ELF standard
    assert machine.features == ("asimd", "asimddp", "asimdhp", "asimdrdm", "atomics")
    if host_isa() is Isa.X86_64:
        with pytest.raises(NoVariant, match=r"cpu:neoverse-n1 .*lacks asimd"):
            tile_launch.load(tmp_path / "x.tile")


def test_code_for_another_system_is_linked_there(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        tile.compile(product, target="cpu").save(tmp_path / "x.tile", targets=["cpu:apple-m2"])
    assert str(caught.value) == (
        "[TL5001] code for 'apple-m2' is linked on its own system, arm64-apple-macosx14.0.0\n"
        "hint: save the kernel there; its assembly can be read here"
    )


def test_another_architecture_needs_a_cross_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tile_cpu.export.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ToolchainError) as caught:
        tile.compile(product, target="cpu").save(tmp_path / "x.tile", targets=["cpu:aarch64"])
    assert str(caught.value) == (
        "[TL5001] code for AArch64 is linked here by the package ziglang, which is missing\n"
        "hint: pip install ziglang, or save the kernel on a machine of that kind"
    )


@pytest.mark.parametrize("targets", ["cpu", [], 3])
def test_targets_are_a_list(tmp_path: Path, targets: Any) -> None:
    with pytest.raises(FrontendTypeError, match="targets are a list of at least one target, got"):
        tile.compile(product, target="cpu").save(tmp_path / "x.tile", targets=targets)


def test_who_links_code_for_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tile.compile(product, target="cpu")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    found: list[Any] = [object()]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: found[0])
    assert export._compiler(host_machine()) == [sys.executable, "-m", "ziglang", "cc"]
    found[0] = None
    with pytest.raises(ToolchainError) as caught:
        kernel.save(tmp_path / "x.tile")
    assert str(caught.value) == (
        "[TL5001] code for a processor is linked by a C compiler, and there is none\n"
        "hint: install gcc or clang, point CC at one, or pip install ziglang"
    )
    (tmp_path / "cc").write_text("#!/bin/sh\necho cc: no space left >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(
        ToolchainError, match=r"cc could not make a shared library of the kernel:\ncc: no space"
    ):
        kernel.save(tmp_path / "x.tile")
    assert os.listdir(tmp_path) == ["cc"]


# Where there is nothing but NumPy ----------------------------------------------------------

ALONE = """
import importlib.util, sys
sys.path[:0] = sys.argv[1:2]
import numpy as np
import tile_launch
for name in ("tvm", "tvm_ffi", "torch", "ml_dtypes", "tile_core", "tile_api", "tile_cpu"):
    assert importlib.util.find_spec(name) is None, name
kernel = tile_launch.load(sys.argv[2])
"""
ON_THE_PROCESSOR = """
a = np.random.default_rng(7).integers(-4, 5, (77, 64)).astype("f")
b = np.random.default_rng(8).integers(-4, 5, (64, 96)).astype("f")
for _ in range(3):
    assert (kernel(a, b) == a @ b).all()
print(kernel.target.partition(":")[0])
"""
ON_A_GPU = """
from tile_launch.dlpack import opened

class Tensor:
    def __init__(self, *shape):
        self.array = np.zeros(shape, "f")
    def __dlpack_device__(self):
        return (KIND, 1)
    def __dlpack__(self):
        capsule = self.array.__dlpack__()
        tensor, _ = opened(capsule)
        tensor.device_type, tensor.device_id = KIND, 1
        return capsule

kernel.run(Tensor(77, 64), Tensor(64, 96), Tensor(77, 96))
print(kernel.target)
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product for an NVIDIA GPU, an AMD GPU and the processor here."""
    path = tmp_path_factory.mktemp("bundle") / "product.tile"
    kernel = tile.compile(product, target="cpu", out_idx=[2])
    kernel.save(path, targets=["cuda:sm_80", "hip:gfx942", "cpu"])
    return path


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two packages: NumPy, and the runtime."""
    folder = tmp_path_factory.mktemp("packages")
    installed = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (installed / name).exists():
            (folder / name).symlink_to(installed / name)
    (folder / "tile_launch").symlink_to(Path(tile_launch.__file__).parent)
    return folder


def alone(code: str, packages: Path, bundle: Path, **env: str) -> str:
    """Return what a program prints that finds no compiler and no other package."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ALONE + code, str(packages), str(bundle)],
        env={"PATH": "", **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_bundle_holds_what_was_asked_for(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = [variant.target for variant in read_bundle(bundle).variants]
    assert targets[:2] == ["cuda:sm_80", "hip:gfx942"]
    assert targets[2].startswith("cpu:")
    tile_launch.inspect(bundle)
    said = capsys.readouterr().out
    head, *variants = said.split("\n\n")
    assert head == "product(A: float32[m, 64], B: float32[64, 96]) -> C: float32[m, 96]"
    assert [text.partition(": ")[0] for text in variants] == targets
    assert "  launch product: grid 3 x (m + 31) // 32 x 1, 64 x 1 x 1 threads" in said
    assert "  compiler: NVRTC" in said


def test_on_the_processor_with_numpy_alone(bundle: Path, packages: Path) -> None:
    assert alone(ON_THE_PROCESSOR, packages, bundle, OMP_NUM_THREADS="2") == "cpu"


def test_on_the_processor_without_openmp(bundle: Path, packages: Path) -> None:
    code = "tile_launch.cpu_driver.find_openmp = lambda: None\n"
    code += "kernel = tile_launch.load(sys.argv[2])\n"
    assert alone(code + ON_THE_PROCESSOR, packages, bundle) == "cpu"


def test_on_an_nvidia_gpu_with_numpy_alone(
    bundle: Path, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stub = stub_under_its_name("tile_cuda", tmp_path_factory.getbasetemp())
    code = ON_A_GPU.replace("KIND", "2")
    assert alone(code, packages, bundle, LD_LIBRARY_PATH=str(stub.parent)) == "cuda:sm_80"


def test_on_an_amd_gpu_with_numpy_alone(
    bundle: Path, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stub = stub_under_its_name("tile_hip", tmp_path_factory.getbasetemp())
    code = ON_A_GPU.replace("KIND", "10")
    assert alone(code, packages, bundle, ROCM_PATH=str(stub.parents[1])) == "hip:gfx942"


def test_the_command_that_looks_inside(bundle: Path, packages: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
        code += "runpy.run_module('tile_launch', run_name='__main__')"
        command = [sys.executable, "-I", "-S", "-c", code, str(packages), *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    found = run(str(bundle))
    assert found.returncode == 0
    assert found.stdout.startswith("product(A: float32[m, 64]")
    assert run().returncode == 2
    (tmp_path / "no.tile").write_text("no")
    broken = run(str(tmp_path / "no.tile"))
    assert broken.returncode == 1
    assert broken.stderr.startswith("[TL8001] ")
    assert "no.tile" in run("no.tile").stderr
