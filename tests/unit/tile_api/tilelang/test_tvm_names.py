"""Names of TVM that programs import mix with expressions of kernels under the alias."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.tilelang import install
from tile_core.errors import TileError, UnsupportedName
from tile_core.ir.expr import Expr

tvm = pytest.importorskip("tvm")


def nibble(packed, place, dtype):
    """Return four bits of a byte, no more than 7, written with TVM's functions alone."""
    tirx = tvm.tirx
    bits = (packed >> (place.astype("uint8") * tirx.const(4, "uint8"))) & tirx.const(15, T.uint8)
    assert isinstance(bits, tirx.PrimExpr)
    least = tirx.Select(bits > tirx.const(7, "uint8"), tirx.IntImm("uint8", 7), bits)
    same = tirx.reinterpret("float32", tirx.reinterpret(T.int32, tirx.const(1.0, "float32")))
    return tirx.Cast(dtype, tirx.Min(least, tirx.const(7, "uint8"))) * tirx.Cast(dtype, same)


def test_helpers_written_for_tvm() -> None:
    with install("cpu"):

        @T.prim_func
        def unpack(A: T.Tensor((8,), "uint8"), B: T.Tensor((16,), "int32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(16):
                    B[i] = nibble(A[i // 2], i % 2, "int32")

        packed = np.arange(0x10, 0x90, 0x11, dtype="uint8")[:8]
        got = tile.compile(unpack, out_idx=[1])(packed)
    both = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)
    np.testing.assert_array_equal(got, np.minimum(both, 7))


def test_outside_of_kernels_tvm_is_tvm() -> None:
    before = dict(vars(tvm.tirx)), set(vars(tvm))
    with install("interpret"):
        number = tvm.tirx.const(3, "int32")
        assert not isinstance(number, Expr)
        assert isinstance(number, tvm.tirx.IntImm)
        assert isinstance(tvm.tirx.const(3, T.int32), Expr)
        assert isinstance(T.float16(1), tvm.tirx.FloatImm)
        assert tvm.DataType(T.float16).bits == 16
        assert issubclass(tvm.TVMError, Exception)
        assert tvm.TVMError is TileError
        with pytest.raises(UnsupportedName, match=r"stmt_functor\.post_order_visit is a pass"):
            tvm.tirx.stmt_functor.post_order_visit(None, print)
    assert (dict(vars(tvm.tirx)), set(vars(tvm))) == before


CODE = """
import sys
from tile_api.tilelang import install
install("interpret")
assert "tvm" not in sys.modules
from tvm import tirx
import tile_api.language as T
assert tirx.const(2, T.int8).dtype == "int8"
"""


def test_tvm_may_come_later() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
