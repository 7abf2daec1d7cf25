"""Where tensors begin, whatever they are."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest
import torch

from support.stubs import Foreign
from tile_launch.dlpack import export
from tile_launch.views import address_of, strides_of

BASE = np.arange(60, dtype=np.float32).reshape(5, 12)
FROZEN = BASE.copy()
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    "array",
    [
        BASE, BASE[1:], BASE[:, 3:], BASE[::2, ::3], BASE.T, FROZEN, FROZEN[2:], np.zeros(0, "f"),
        np.zeros((), "f"), np.zeros((3, 4), ml_dtypes.bfloat16)[1:], np.zeros(3, bool),
        np.zeros(4, ">f4"), np.zeros(4, np.float16), np.asfortranarray(BASE), np.zeros(2, "i8"),
    ],
)  # fmt: skip
def test_arrays(array: np.ndarray) -> None:
    assert address_of(array) == array.__array_interface__["data"][0] == array.ctypes.data
    assert strides_of(array) == tuple(s // array.itemsize for s in array.strides)


def test_other_tensors() -> None:
    tensor = torch.zeros(3, 4)[1:, ::2]
    assert (address_of(tensor), strides_of(tensor)) == (tensor.data_ptr(), (4, 2))
    assert (address_of(None), address_of(0x700), address_of(ctypes.c_void_p(5))) == (0, 0x700, 5)


def test_what_capsules_tell() -> None:
    found = export(Foreign(BASE[:, 3:], 10, 1))
    assert (found.shape, found.strides, found.dtype) == ((5, 9), (12, 1), "float32")
    assert (found.place, found.number, found.writeable) == ("hip:1", 1, True)
    tensor = found.tensor()
    assert tensor.data_ptr() == BASE[:, 3:].ctypes.data
    assert (tensor.get_device(), tensor.stride(), tensor.shape) == (1, (12, 1), (5, 9))
    assert export(Foreign(BASE, 1, 7)).tensor().get_device() == 0
    assert export(torch.zeros(2, dtype=torch.bfloat16)).dtype == "bfloat16"
    assert not export(FROZEN).writeable


class Later:
    """An array whose capsule says that it is of DLPack 2.5, whatever it was asked for."""

    def __dlpack__(self, *, max_version: tuple[int, int]) -> object:
        capsule = BASE.__dlpack__(max_version=max_version)
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype = ctypes.POINTER(ctypes.c_uint32)
        pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
        version = pointer_of(capsule, b"dltensor_versioned")
        version[0], version[1] = 2, 5
        return capsule


def test_capsules_of_versions_to_come_are_refused() -> None:
    with pytest.raises(BufferError) as caught:
        export(Later())
    assert str(caught.value) == (
        "DLPack 2.5 is not understood: export it as DLPack 1.x, as max_version asks"
    )
