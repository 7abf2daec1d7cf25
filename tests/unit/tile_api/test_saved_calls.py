"""Calls of loaded kernels in C: the same results and errors as by Python, with and without it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
import tile_launch
from tile_launch.checked_calls import REMEMBERED
from tile_launch.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    AssumptionError,
    DeviceAssertError,
    EmptyGridError,
    TileError,
)
from tile_launch.native.library import c_compiler, is_supported, ready_library

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"
)
m = T.dynamic("m")


@T.prim_func
def scale(A: T.Tensor((m, 4), "float32"), B: T.Tensor((m, 4), "float32"), x: T.float32, n: T.int32):
    with T.Kernel(T.ceildiv(n, 2)) as b:
        T.assume(n <= m)
        T.device_assert(A[0, 0] >= 0, "negative")
        for i, j in T.Parallel(2, 4):
            if b * 2 + i < n:
                B[b * 2 + i, j] = A[b * 2 + i, j] * x


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not is_supported():
        pytest.skip("needs CPython")
    found = ready_library(tmp_path_factory.mktemp("native"), c_compiler())
    assert found is not None
    return found


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bundles")
    paths = {"none": folder / "a.tile", "one": folder / "b.tile"}
    tile.compile(scale, target="cpu").save(paths["none"])
    tile.compile(scale, target="cpu", out_idx=[1]).save(paths["one"])
    return paths


@pytest.fixture(params=["C", "Python"])
def language(request: pytest.FixtureRequest, library: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who makes the calls."""
    made = library if request.param == "C" else None
    monkeypatch.setattr("tile_launch.kernel.installed_library", lambda: made)
    return str(request.param)


@pytest.fixture
def kernel(language: str, bundles: dict[str, Path]) -> Any:
    return tile_launch.load(bundles["none"])


def arrays(kind: str, rows: int = 6) -> tuple[Any, Any]:
    a = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    b = np.full((rows, 4), -1, np.float32)
    return (a, b) if kind == "numpy" else (torch.from_numpy(a), torch.from_numpy(b))


def is_known(kernel: Any, *args: Any) -> bool:
    return kernel._calls.quick(*args) is not NotImplemented


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_calls_after_the_first(kernel: Any, language: str, kind: str) -> None:
    for x in (2.0, 3, 0.5):
        a, b = arrays(kind)
        assert kernel(a, b, x, 6) is None
        assert np.array_equal(np.asarray(b), np.asarray(a) * x)
    assert is_known(kernel, *arrays(kind), 7.0, 6) is (language == "C")
    assert not is_known(kernel, *arrays(kind), 7.0, 5)


def test_numbers_that_no_size_depends_on_are_of_one_kind(kernel: Any) -> None:
    a, b = arrays("numpy")
    for x in range(50):
        kernel(a, b, float(x), 6)
        kernel(a, b, np.float32(x), np.int64(6))
        assert np.array_equal(b, a * x)
    assert len(kernel._calls._plans) == 1


def test_errors_stay_what_they_are(kernel: Any) -> None:
    a, b = arrays("numpy")
    x, y = arrays("torch")
    frozen = b.copy()
    frozen.flags.writeable = False
    for error, wrong in (
        (ArgumentCountError, (a, b, 2.0)),
        (ArgumentCountError, (a, b, 2.0, 6, 6)),
        (ArgumentCountError, ()),
        (ArgumentLayoutError, (a, frozen, 2.0, 6)),
        (ArgumentDtypeError, (a.astype(">f4"), b, 2.0, 6)),
        (ArgumentDtypeError, (x.double(), y, 2.0, 6)),
        (ArgumentShapeError, (a, b[:5], 2.0, 6)),
        (ArgumentLayoutError, (x.T.contiguous().T, y, 2.0, 6)),
        (ArgumentLayoutError, (torch._neg_view(x), y, 2.0, 6)),
        (ArgumentTypeError, (a, None, 2.0, 6)),
        (ArgumentTypeError, (a, b, "2", 6)),
        (ArgumentTypeError, (a, b, True, 6)),
        (ArgumentTypeError, (a, b, 10**400, 6)),
        (ArgumentTypeError, (a, b, 2.0, 6.0)),
        (ArgumentTypeError, (a, b, 2.0, True)),
        (ArgumentTypeError, (a, b, 2.0, 1 << 31)),
        (AssumptionError, (a, b, 2.0, 7)),
        (EmptyGridError, (a, b, 2.0, 0)),
        (DeviceAssertError, (a - 1, b, 2.0, 6)),
    ):
        kernel(a, b, 2.0, 6)
        kernel(x, y, 2.0, 6)
        with pytest.raises(error):
            kernel(*wrong)


def test_outputs(language: str, bundles: dict[str, Path]) -> None:
    kernel = tile_launch.load(bundles["one"])
    a, _ = arrays("torch")
    first, second = kernel(a, 2.0, 6), kernel(a, 4.0, 6)
    assert torch.equal(second, first * 2)
    assert sys.getrefcount(second) == 2
    assert isinstance(kernel(a.numpy(), 2.0, 6), np.ndarray)
    assert is_known(kernel, a, 2.0, 6) is (language == "C")


def test_changes_are_told_to_autograd(kernel: Any) -> None:
    a, b = arrays("torch")
    for _ in range(3):
        before = b._version
        kernel(a, b, 2.0, 6)
        assert (b._version, a._version) == (before + 1, 0)


def test_few_kinds_are_remembered(kernel: Any, language: str) -> None:
    for rows in range(1, REMEMBERED + 9):
        a, b = arrays("numpy", rows)
        kernel(a, b, 2.0, rows)
        assert np.array_equal(b, a * 2)
    assert len(kernel._calls._plans) == 8
    assert is_known(kernel, a, b, 2.0, rows) is (language == "C")
    assert not is_known(kernel, *arrays("numpy", 1), 2.0, 1)


def test_what_prints_is_called_by_python(
    language: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    @T.prim_func
    def said(A: T.Tensor((1,), "int32")):
        with T.Kernel(1):
            T.print(A[0], "number")

    tile.compile(said, target="cpu").save(tmp_path / "x.tile")
    kernel = tile_launch.load(tmp_path / "x.tile")
    for number in (41, 42):
        array = np.array([number], np.int32)
        kernel(array)
        assert str(number) in capfd.readouterr().out
        assert not is_known(kernel, array)


def test_elements_of_four_bits_are_pythons_matter(language: str, tmp_path: Path) -> None:
    @T.prim_func
    def same(A: T.Tensor((8,), "int4"), B: T.Tensor((8,), "int4")):
        with T.Kernel(1):
            for i in T.serial(8):
                B[i] = A[i]

    tile.compile(same, target="cpu").save(tmp_path / "x.tile")
    kernel = tile_launch.load(tmp_path / "x.tile")
    a = np.arange(4, dtype=np.int8)
    for _ in range(2):
        b = np.zeros(4, np.int8)
        kernel(a, b)
        assert np.array_equal(a, b)
    assert not is_known(kernel, a, b)


PROGRAM = """
import sys
import numpy as np
from tile_launch import load
from tile_launch.native import library

kernel = load(sys.argv[1])
a, b = np.ones((6, 4), np.float32), np.zeros((6, 4), np.float32)
for x in (2.0, 3.0):
    kernel(a, b, x, 6)
    assert (b == x).all()
print(kernel._calls.quick(a, b, 4.0, 6) is NotImplemented)
assert not {"torch", "tvm", "tile_core", "tile_api"} & set(sys.modules)
"""


@pytest.mark.parametrize(
    ("settings", "by_python"),
    [({}, False), ({"TILE_DISABLE_CACHE": "1"}, True), ({"PATH": "/none", "CC": ""}, None)],
    ids=["C", "nothing kept", "no compiler"],
)
def test_programs_with_this_package_alone(
    library: Any,
    bundles: dict[str, Path],
    tmp_path: Path,
    settings: dict[str, str],
    by_python: bool | None,
) -> None:
    environment = {"TILE_CACHE_DIR": str(tmp_path / "kept"), "PATH": "/usr/bin:/bin", **settings}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, bundles["none"]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if by_python is not None:  # ziglang, where it is installed, is a compiler, too
        assert done.stdout == f"{by_python}\n"
        assert (tmp_path / "kept" / "native").exists() is not by_python


def test_masks_are_not_dropped(kernel: Any) -> None:
    a, b = arrays("numpy")
    with pytest.raises(ArgumentLayoutError, match=r"its mask would be ignored; pass x\.filled"):
        kernel(np.ma.masked_equal(a, 3), b, 2.0, 6)


def test_tensors_without_memory_say_so(kernel: Any) -> None:
    _, b = arrays("torch")

    def inside(a: Any) -> Any:
        kernel(a, b, 2.0, 6)
        return a

    with pytest.raises(TileError, match="the tensor is not plain memory"):
        torch.func.vmap(inside)(torch.zeros(3, 6, 4))
