"""Arguments in the memory of the emulated device."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import LaunchError, OutOfBounds
from tile_core.ir.buffer import Buffer, Scope
from tile_sim.memory import ALIGNMENT, DeviceMemory


def parameter(name, array):
    return Buffer(name, array.shape, dtype_of(array.dtype.name), Scope.GLOBAL)


def placed(**arrays):
    memory = DeviceMemory()
    params = [parameter(name, array) for name, array in arrays.items()]
    memory.add_tensors(params, [*arrays.values()])
    return memory, [memory.places[p] for p in params]


def write(address, *values):
    ctypes.memmove(address, np.array(values, np.float32).ctypes.data, 4 * len(values))


def read(address, count):
    return np.frombuffer((ctypes.c_char * (4 * count)).from_address(address), np.float32).copy()


def test_copies_are_aligned_and_come_back():
    a = np.arange(7, dtype=np.float32)
    b = np.arange(6, dtype=np.float32).reshape(2, 3)
    memory, (x, y) = placed(a=a, b=b)
    assert x.address % ALIGNMENT == y.address % ALIGNMENT == 0
    assert (x.bytes, y.bytes) == (28, 24)
    assert read(y.address, 6).tolist() == [0, 1, 2, 3, 4, 5]
    write(x.address + 8, 20, 30)
    assert a[2] == 2
    memory.check_red_zones()
    memory.copy_back()
    assert a.tolist() == [0, 1, 20, 30, 4, 5, 6]


def test_strides_are_kept():
    base = np.zeros((4, 8), np.float32)
    view = base[::2, 1:4]
    view[...] = [[1, 2, 3], [4, 5, 6]]
    memory, (place,) = placed(v=view)
    assert place.bytes == (16 + 3) * 4
    assert read(place.address, 19)[[0, 1, 2, 16, 17, 18]].tolist() == [1, 2, 3, 4, 5, 6]
    write(place.address + 17 * 4, 50)
    write(place.address + 5 * 4, -1)  # between the rows: belongs to nobody
    memory.copy_back()
    assert view.tolist() == [[1, 2, 3], [4, 50, 6]]
    assert np.count_nonzero(base) == 6


def test_negative_and_zero_strides():
    a = np.arange(4, dtype=np.float32)
    memory, (x, y) = placed(a=a[::-1].copy()[::-1], b=np.broadcast_to(a[:1], (5,)))
    assert read(x.address - 12, 4).tolist() == [3, 2, 1, 0]
    assert y.bytes == 4
    memory.copy_back()


def test_tensors_that_share_memory_share_it_on_the_device():
    a = np.zeros(16, np.float32)
    memory, (x, y, z) = placed(x=a[4:12], y=a[8:], z=np.zeros(1, np.float32))
    assert y.address - x.address == 16
    write(y.address, 7)
    assert read(x.address + 16, 1) == 7
    assert abs(z.address - x.address) >= 64
    memory.copy_back()
    assert a[8] == 7
    assert np.count_nonzero(a) == 1


def test_the_same_tensor_twice():
    a = np.ones(4, np.float32)
    memory, (x, y) = placed(src=a, dst=a)
    assert x == y
    write(y.address, 2, 2, 2, 2)
    memory.copy_back()
    assert a.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("offset", "told"),
    [(-4, "1 bytes in front of 'a'"), (24, "1 bytes behind the end of 'a'")],
)
def test_red_zones(offset, told):
    memory, (place,) = placed(a=np.zeros(6, np.float32))
    write(place.address + offset, 1.25)
    with pytest.raises(OutOfBounds) as caught:
        memory.check_red_zones()
    assert str(caught.value) == (
        f"[TL6501] the kernel wrote {told}\n"
        "hint: turn the checks on to see the line: TILE_CHECK=all"
    )


def test_memory_that_must_not_be_written():
    a = np.zeros(2, np.float32)
    a.flags.writeable = False
    memory, (place,) = placed(a=a)
    memory.copy_back()
    write(place.address, 1)
    with pytest.raises(LaunchError) as caught:
        memory.copy_back()
    assert str(caught.value) == (
        "[TL6001] the kernel writes 'a', whose memory is read-only\n"
        "hint: pass a copy that may be written"
    )


def test_empty_and_absent_tensors():
    memory = DeviceMemory()
    empty, absent = np.zeros((0, 4), np.float32), parameter("n", np.zeros(3, np.float32))
    memory.add_tensors([parameter("e", empty), absent], [empty, None])
    assert [place.bytes for place in memory.places.values()] == [0, 0]
    assert memory.places[absent].address == 0
    memory.check_red_zones()
    memory.copy_back()


def test_workspaces_are_undefined_at_first():
    memory = DeviceMemory()
    buffer = parameter("w", np.zeros(4, np.float32))
    memory.add_workspace(buffer, 16)
    assert np.isnan(read(memory.places[buffer].address, 4)).all()
    memory.check_red_zones()
