"""Maps of tensors at launch, clusters and overlapping grids, against a driver that remembers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import ArgumentLayoutError, LaunchError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.device import device
from tile_core.ir.expr import Const, Var
from tile_core.ir.stmt import Evaluate, Kernel, Launch, Seq, Stmt
from tile_core.plugins.gpu_launch import callable_of
from tile_core.simt.program import DeviceFunction, DeviceProgram, TensorMap
from tile_cuda.machine import machine
from tile_launch.cuda_driver import CudaDriver as Driver
from tile_launch.errors import InvalidBundle
from tile_launch.tensor_maps import MOST_ROWS, MapTable, element_code

INT, HALF = dtype_of("int32"), dtype_of("float16")


class Map(ctypes.Structure):
    """As the stub writes it."""

    _fields_ = (
        ("address", ctypes.c_uint64), ("extents", ctypes.c_uint64 * 4),
        ("strides", ctypes.c_uint32 * 4), ("box", ctypes.c_uint32 * 5),
        *((name, ctypes.c_uint8)
          for name in ("dtype", "rank", "interleave", "swizzle", "promotion", "fill")),
        ("steps", ctypes.c_uint8 * 5),
    )  # fmt: skip


def program(*body: Stmt, cluster: tuple[int, ...] = (), **changes: Any) -> DeviceProgram:
    """``A: (m, k)`` of float16 in boxes of 64 x 128, and ``m``, on ``m`` blocks."""
    m, k = Var("m", INT), Var("k", INT)
    tensor = Buffer("A", (m, k), HALF, Scope.GLOBAL)
    described = TensorMap(
        "A_map", tensor, HALF, Const(0, INT), (k, m), (k * 2,), (64, 128), swizzle=128
    )
    described = replace(described, **changes)
    block, threads = Var("bx", INT), tuple(Var(name, INT) for name in ("tx", "ty", "tz"))
    launch = Launch(
        (block,), (m,), (threads[0], threads[1], threads[2]), (128, 1, 1), Seq(body), cluster
    )
    params = (Var("A_map", dtype_of("handle")), m)
    function = DeviceFunction("kernel", params, (described, m), launch, {}, 200 * 1024)
    layouts: Any = None
    return DeviceProgram(
        Kernel("kernel", (tensor,), Seq(())), machine("sm_90a"), (function,), layouts
    )


def launcher(driver: Driver, made: DeviceProgram) -> Callable[..., None]:
    driver.library.stub_widths((ctypes.c_int * 2)(128, 4), 2)
    return callable_of(made, b"cubin", driver, lambda d: 0, lambda *a: 0, lambda *a: None)


def aligned(rows: int, columns: int, skip: int = 0) -> np.ndarray:
    """An array that begins `skip` bytes behind a multiple of 16."""
    memory = np.zeros(rows * columns * 2 + 64, np.uint8)
    start = -memory.ctypes.data % 16 + skip
    return memory[start : start + rows * columns * 2].view(np.float16).reshape(rows, columns)


def passed(driver: Driver) -> Map:
    found = Map()
    driver.library.stub_map(0, ctypes.byref(found))
    return found


def attributes(driver: Driver) -> dict[int, list[int]]:
    found = (ctypes.c_uint32 * (18 * 8))()
    count = driver.library.stub_attributes(found)
    return {found[18 * i]: list(found[18 * i + 2 : 18 * i + 5]) for i in range(count)}


def test_a_map_says_what_the_tensor_is(driver: Driver) -> None:
    tensor = aligned(100, 96)
    launcher(driver, program())(tensor)
    found = passed(driver)
    assert found.address == tensor.ctypes.data
    assert (found.extents[:2], found.strides[:1]) == ([96, 100], [192])
    assert (found.box[:2], found.steps[:2]) == ([64, 128], [1, 1])
    assert (found.dtype, found.rank, found.swizzle, found.promotion) == (6, 2, 3, 2)
    assert (found.interleave, found.fill) == (0, 0)
    assert driver.library.stub_value(1) == 100


def test_offsets_and_modes_are_the_maps_own(driver: Driver) -> None:
    tensor = aligned(8, 128)
    made = program(
        offset=Const(64, INT), swizzle=32, box=(16, 8), element_strides=(1, 2), fill="nan",
        l2_promotion=256, dtype=dtype_of("bfloat16"),
    )  # fmt: skip
    launcher(driver, made)(tensor)
    found = passed(driver)
    assert found.address == tensor.ctypes.data + 128
    assert (found.dtype, found.swizzle, found.promotion, found.fill) == (9, 1, 3, 1)
    assert (found.box[:2], found.steps[:2]) == ([16, 8], [1, 2])


def test_a_map_is_made_once_for_each_tensor(driver: Driver) -> None:
    run = launcher(driver, program())
    a, b = aligned(16, 64), aligned(16, 64)
    before = driver.library.stub_encoded()
    for tensor in (a, b, a, a, b):
        run(tensor)
        assert passed(driver).address == tensor.ctypes.data
    assert driver.library.stub_encoded() == before + 2


def test_the_same_address_in_another_shape_is_another_map(driver: Driver) -> None:
    run = launcher(driver, program())
    a = aligned(16, 64)
    for tensor in (a, a.reshape(8, 128), a[:4]):
        run(tensor)
        assert list(passed(driver).extents[:2]) == [tensor.shape[1], tensor.shape[0]]


def test_few_maps_are_kept(driver: Driver) -> None:
    run = launcher(driver, program())
    tensors = [aligned(8, 64) for _ in range(MOST_ROWS + 1)]
    before = driver.library.stub_encoded()
    for tensor in tensors:
        run(tensor)
    run(tensors[1])  # the oldest that is still there
    assert driver.library.stub_encoded() == before + MOST_ROWS + 1
    run(tensors[0])
    assert driver.library.stub_encoded() == before + MOST_ROWS + 2
    assert passed(driver).address == tensors[0].ctypes.data


def test_rows_share_the_maps_that_did_not_change() -> None:
    table, written = MapTable((0x10, 0x20, 0x30)), []
    first = table.add((1, 2, 3), {0: ((1, 3), written.append), 2: ((2, 3), written.append)})
    other = table.add((1, 4, 3), {0: ((1, 3), written.append), 2: ((4, 3), written.append)})
    rows = [(ctypes.c_uint64 * 3).from_address(place.value or 0) for place in (first, other)]
    assert [row[0] for row in rows] == [written[0]] * 2
    assert [row[1] for row in rows] == [0x20] * 2
    assert [row[2] for row in rows] == written[1:]
    assert all(place % 64 == 0 for place in written)
    assert list(table.rows.items()) == [((1, 2, 3), first), ((1, 4, 3), other)]


def test_a_map_that_was_refused_is_not_kept(driver: Driver) -> None:
    run = launcher(driver, program())
    tensor = aligned(16, 64)
    driver.library.stub_set(2, 1)
    with pytest.raises(LaunchError):
        run(tensor)
    driver.library.stub_set(2, 0)
    run(tensor)
    assert passed(driver).address == tensor.ctypes.data


def test_a_tensor_that_begins_between_granules_is_refused_by_name(driver: Driver) -> None:
    with pytest.raises(
        ArgumentLayoutError, match=r"kernel\.A: .*a multiple of 16 bytes, got .* 2 behind"
    ):
        launcher(driver, program())(aligned(16, 64, skip=2))


def test_rows_that_begin_between_granules_are_refused_by_name(driver: Driver) -> None:
    with pytest.raises(ArgumentLayoutError, match=r"kernel\.A: .*multiples of 16.*, got 100 bytes"):
        launcher(driver, program())(aligned(16, 50))


def test_a_tensor_without_elements_has_a_map(driver: Driver) -> None:
    tensor = np.zeros((3, 0), np.float16)
    launcher(driver, program())(tensor)
    assert list(passed(driver).extents[:2]) == [1, 1]


def test_a_map_that_the_driver_refuses_is_described(driver: Driver) -> None:
    run = launcher(driver, program())
    tensor = aligned(16, 64)
    run(tensor)
    driver.library.stub_set(2, 1)
    words = (
        r"the CUDA driver refused kernel\.A_map, a map of 64 x 32 elements of float16 at 0x\w+ "
        r"with rows 128 bytes apart, in boxes of 64 x 128 swizzled by 128 bytes: the stub was told"
    )
    with pytest.raises(LaunchError, match=words):
        run(aligned(32, 64))


def test_a_workspace_has_a_map_too(driver: Driver) -> None:
    room = aligned(4, 64)
    made = program()
    (function,) = made.functions
    workspace = Buffer("room", (4, 64), HALF, Scope.GLOBAL, workspace=True)
    described = function.arguments[0]
    assert isinstance(described, TensorMap)
    inside = replace(
        described, tensor=workspace, extents=(Const(64, INT), Const(4, INT)),
        strides=(Const(128, INT),),
    )  # fmt: skip
    function = replace(function, arguments=(inside, function.arguments[1]))
    made = replace(made, steps=(function,), workspaces=(workspace,))
    driver.library.stub_widths((ctypes.c_int * 2)(128, 4), 2)
    callable_of(made, b"cubin", driver, lambda d: 0, lambda *a: 0, lambda *a: room)(aligned(2, 8))
    assert passed(driver).address == room.ctypes.data


def test_a_cluster_is_said_to_the_driver(driver: Driver) -> None:
    run = launcher(driver, program(cluster=(2,)))
    before = driver.library.stub_large_clusters()
    run(aligned(4, 64))
    assert attributes(driver) == {4: [2, 1, 1]}
    assert driver.library.stub_large_clusters() == before
    assert driver.library.stub_dynamic_shared() == 200 * 1024


def test_clusters_of_more_than_eight_blocks_are_asked_for(driver: Driver) -> None:
    launcher(driver, program(cluster=(16, 1, 1)))(aligned(16, 64))
    assert attributes(driver) == {4: [16, 1, 1]}
    assert driver.library.stub_large_clusters() == 1


def test_a_grid_that_is_not_made_of_clusters_is_refused_in_words(driver: Driver) -> None:
    run = launcher(driver, program(cluster=(2,)))
    tensor = aligned(3, 64)
    run(aligned(2, 64)), run(tensor)  # their maps are there
    driver.library.stub_set(2, 1)
    with pytest.raises(LaunchError, match="grid of 3 x 1 x 1 blocks is not made of clusters of 2"):
        run(tensor)


def test_a_kernel_that_waits_for_grids_may_begin_early(driver: Driver) -> None:
    launcher(driver, program(Evaluate(device("grid_wait"))))(aligned(4, 64))
    assert attributes(driver) == {6: [1, 0, 0]}
    launcher(driver, program(Evaluate(device("grid_launch"))))(aligned(4, 64))
    assert attributes(driver) == {}


def test_codes_of_elements() -> None:
    codes = {name: element_code(name) for name in (
        "uint8", "int8", "float8_e4m3fn", "uint16", "int32", "float16", "float32", "bfloat16",
        "tfloat32", "float64", "int64",
    )}  # fmt: skip
    assert list(codes.values()) == [0, 0, 0, 1, 3, 6, 7, 9, 11, 8, 5]
    with pytest.raises(InvalidBundle, match="a tensor map of int4"):
        element_code("int4")
