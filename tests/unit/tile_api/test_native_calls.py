"""Calls in C: the same results and the same errors as by Python, whatever comes."""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from support.native_calls import library_in
from tile_api import launching
from tile_core.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    AssumptionError,
    DeviceAssertError,
    EmptyGridError,
)
from tile_launch.checked_calls import REMEMBERED
from tile_launch.native.caller import EXCHANGE, describing

m = T.dynamic("m")


@T.prim_func
def scale(A: T.Tensor((m, 4), "float32"), B: T.Tensor((m, 4), "float32"), x: T.float32, n: T.int32):
    with T.Kernel(T.ceildiv(n, 2)) as b:
        T.assume(n <= m)
        for i, j in T.Parallel(2, 4):
            if b * 2 + i < n:
                B[b * 2 + i, j] = A[b * 2 + i, j] * x


@T.prim_func
def parts(
    A: T.Tensor((m,), "int32"),
    low: T.Tensor((m,), "int32"),
    high: T.Tensor((2, m), "int32"),
):
    with T.Kernel(m) as i:
        T.device_assert(A[i] >= 0, "negative")
        low[i] = A[i] % 16
        high[0, i] = A[i] // 16
        high[1, i] = m


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return library_in(tmp_path_factory.mktemp("native"))


@pytest.fixture(autouse=True)
def _in_c(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "native_library", lambda: library)


@pytest.fixture
def scaled() -> Any:
    return tile.compile(scale, target="cpu")


@pytest.fixture
def parted() -> Any:
    return tile.compile(parts, out_idx=[2, 1], target="cpu")


def arrays(kind: str, rows: int = 6) -> tuple[Any, Any]:
    a = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    b = np.full((rows, 4), -1, np.float32)
    return (a, b) if kind == "numpy" else (torch.from_numpy(a), torch.from_numpy(b))


def is_known(kernel: Any, *args: Any) -> bool:
    """Make the call in C if that is possible."""
    return kernel._launch.quick(*args) is not NotImplemented


# What is called ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_second_call_is_made_in_c(scaled: Any, kind: str) -> None:
    a, b = arrays(kind)
    assert not is_known(scaled, a, b, 2.0, 6)
    scaled(a, b, 2.0, 6)
    a, b = arrays(kind)
    assert is_known(scaled, a, b, 3.0, 6)  # numbers that no size depends on may differ
    assert np.array_equal(np.asarray(b), np.asarray(a) * 3)


def test_numbers_that_sizes_depend_on_are_told_apart(scaled: Any) -> None:
    a, b = arrays("numpy")
    scaled(a, b, 2.0, 6)
    assert not is_known(scaled, a, b, 2.0, 2)
    a, b = arrays("numpy")
    scaled(a, b, 2, 2)
    assert np.array_equal(b[:2], a[:2] * 2)
    assert np.all(b[2:] == -1)
    assert is_known(scaled, a, b, 2, 2)
    with pytest.raises(AssumptionError):
        scaled(a, b, 2.0, 7)
    with pytest.raises(EmptyGridError):
        scaled(a, b, 2.0, 0)


def test_sizes_are_told_apart(scaled: Any) -> None:
    for rows in (6, 3, 6, 9, 3):
        a, b = arrays("torch", rows)
        scaled(a, b, 2.0, rows)
        assert torch.equal(b, a * 2)


def test_outputs_are_allocated_and_returned_in_order(parted: Any) -> None:
    for turn in range(3):
        high, low = parted(torch.arange(40, dtype=torch.int32) + turn)
        whole = torch.arange(40, dtype=torch.int32) + turn
        assert torch.equal(low, whole % 16)
        assert torch.equal(high[0], whole // 16)
        assert torch.equal(high[1], torch.full((40,), 40, dtype=torch.int32))
    high, low = parted(np.arange(7, dtype=np.int32))
    assert isinstance(high, np.ndarray)
    assert is_known(parted, torch.arange(40, dtype=torch.int32))


def test_one_output_is_returned_itself() -> None:
    kernel = tile.compile(scale, out_idx=[1], target="cpu")
    a, _ = arrays("torch")
    first, second = kernel(a, 2.0, 6), kernel(a, 4.0, 6)
    assert torch.equal(second, first * 2)
    assert sys.getrefcount(second) == 2


def test_changes_are_told_to_autograd(scaled: Any) -> None:
    a, b = arrays("torch")
    for _ in range(3):
        before = b._version
        scaled(a, b, 2.0, 6)
        assert b._version == before + 1
        assert a._version == 0


def test_tensors_of_inference_have_no_version(scaled: Any) -> None:
    with torch.inference_mode():
        a, b = (t.clone() for t in arrays("torch"))
        for _ in range(3):
            scaled(a, b, 2.0, 6)
        assert torch.equal(b, a * 2)


def test_parameters_of_modules_are_tensors(scaled: Any) -> None:
    a, b = arrays("torch")
    weight = torch.nn.Parameter(a)
    scaled(a, b, 2.0, 6)
    scaled(weight, b, 3.0, 6)
    assert torch.equal(b, a * 3)


# What is not -------------------------------------------------------------------------------


def after(kernel: Any, *wrong: Any) -> None:
    """Call with what is wrong, after a call that was right taught C its kind."""
    a, b = arrays("numpy")
    kernel(a, b, 2.0, 6)
    x, y = arrays("torch")
    kernel(x, y, 2.0, 6)
    kernel(*wrong)


def test_errors_stay_what_they_are(scaled: Any) -> None:
    a, b = arrays("numpy")
    x, y = arrays("torch")
    frozen = b.copy()
    frozen.flags.writeable = False
    swapped = a.astype(">f4")
    for error, wrong in (
        (ArgumentCountError, (a, b, 2.0)),
        (ArgumentCountError, (a, b, 2.0, 6, 6)),
        (ArgumentLayoutError, (a, frozen, 2.0, 6)),
        (ArgumentDtypeError, (swapped, b, 2.0, 6)),
        (ArgumentDtypeError, (x.double(), y, 2.0, 6)),
        (ArgumentDtypeError, (x.int(), y, 2.0, 6)),
        (ArgumentShapeError, (a, b[:5], 2.0, 6)),
        (ArgumentShapeError, (x[0], y, 2.0, 6)),
        (ArgumentLayoutError, (x.T.contiguous().T, y, 2.0, 6)),
        (ArgumentLayoutError, (torch._neg_view(x), y, 2.0, 6)),
        (ArgumentLayoutError, (a.view(np.ma.MaskedArray), b, 2.0, 6)),
        (ArgumentTypeError, (a, b, "2", 6)),
        (ArgumentTypeError, (a, b, True, 6)),
        (ArgumentTypeError, (a, b, 2.0, 6.0)),
        (ArgumentTypeError, (a, b, 2.0, 1 << 40)),
        (ArgumentTypeError, (a, b, 2.0, 1 << 80)),
        (
            ArgumentTypeError,
            (
                None,
                b,
                2.0,
                6,
            )[:0]
            + (3, b, 2.0, 6),
        ),
    ):
        with pytest.raises(error):
            after(scaled, *wrong)


def test_types_of_a_byte_are_told_apart() -> None:
    @T.prim_func
    def copy(A: T.Tensor((8,), "int8"), B: T.Tensor((8,), "int8")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = A[i]

    kernel = tile.compile(copy, target="cpu")
    a, b = torch.ones(8, dtype=torch.int8), torch.zeros(8, dtype=torch.int8)
    kernel(a, b)
    assert is_known(kernel, a, b)
    with pytest.raises(ArgumentDtypeError, match="got int5"):
        kernel(torch.empty(8, dtype=torch.int5), b)


def test_unaligned_tensors_are_refused(scaled: Any) -> None:
    raw = torch.zeros(24 * 4 + 1, dtype=torch.uint8)
    shifted = torch.frombuffer(bytearray(24 * 4 + 4), dtype=torch.float32, count=24, offset=0)
    a, b = arrays("torch")
    scaled(a, b, 2.0, 6)
    scaled(shifted.reshape(6, 4), b, 2.0, 6)
    numbers = np.frombuffer(bytearray(24 * 4 + 1), np.uint8)[1:].view(np.float32).reshape(6, 4)
    assert raw.numel() == numbers.nbytes + 1
    with pytest.raises(ArgumentLayoutError):
        scaled(numbers, np.zeros((6, 4), np.float32), 2.0, 6)


def test_assertions_inside_kernels_are_raised(parted: Any) -> None:
    numbers = torch.arange(40, dtype=torch.int32)
    parted(numbers)
    numbers[3] = -1
    for _ in range(2):
        with pytest.raises(DeviceAssertError, match="negative"):
            parted(numbers)
    numbers[3] = 3
    assert is_known(parted, numbers)


def test_types_that_c_does_not_know_go_on_by_python(scaled: Any) -> None:
    class Mine(np.ndarray):
        pass

    a, b = arrays("numpy")
    for _ in range(3):
        scaled(a.view(Mine), b, np.float32(2), np.int64(6))
        assert np.array_equal(b, a * 2)


def test_few_kinds_are_remembered(scaled: Any) -> None:
    for rows in range(1, REMEMBERED + 9):
        a, b = arrays("numpy", rows)
        scaled(a, b, 2.0, rows)
        assert is_known(scaled, a, b, 2.0, rows)
        assert np.array_equal(b, a * 2)
    assert not is_known(scaled, *arrays("numpy", 1), 2.0, 1)


def test_threads_call_at_once(scaled: Any) -> None:
    wrong = []

    def work(rows: int) -> None:
        a, b = arrays("torch", rows)
        for x in range(1, 60):
            scaled(a, b, x, rows)
            if not torch.equal(b, a * x):
                wrong.append((rows, x))

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (5, 6, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_is_held_but_what_is_remembered(parted: Any) -> None:
    numbers = torch.arange(40, dtype=torch.int32)
    parted(numbers)
    before = sys.getrefcount(numbers), sys.getrefcount(numbers.dtype)
    for _ in range(50):
        parted(numbers)
    assert (sys.getrefcount(numbers), sys.getrefcount(numbers.dtype)) == before


# The library -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:ComplexHalf:UserWarning")
def test_element_types_of_torch_are_told_apart(library: Any) -> None:
    """DLPack has a number of its own for each of torch's element types of more than a byte."""
    describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
        describing(getattr(torch.Tensor, EXCHANGE))
    )
    found: dict[bytes, torch.dtype] = {}
    dtypes = {v for v in vars(torch).values() if isinstance(v, torch.dtype)}
    for dtype in (d for d in dtypes if not str(d).startswith("torch.q")):
        record = (ctypes.c_char * 48)()
        try:
            describe(torch.empty(2, dtype=dtype), record)
        except (BufferError, RuntimeError, NotImplementedError):
            continue
        element = bytes(record)[20:24]
        if element[1] > 8:
            assert found.setdefault(element, dtype) is dtype, element
    assert torch.float32 in found.values()
