"""C functions in kernels: libc's, and those a kernel brings along."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import ToolchainError
from tile_cpu.lowering.calls import defines, own_symbols


def scaled(text: str) -> object:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        T.import_source(text)
        with T.Kernel(4) as bx:
            for j in T.serial(8):
                C[bx, j] = T.call_extern("float32", "scaled", A[bx, j], j)

    return main


ONE = "static float scaled(float x, int k) { return x * k + 1.0f; }"
TWO = "float scaled(float x, int k) { return x - k; }"


def test_two_kernels_may_bring_functions_of_one_name() -> None:
    first, second = (tile.compile(scaled(text), target="cpu") for text in (ONE, TWO))
    a = np.arange(32, dtype="float32").reshape(4, 8)
    c, k = np.zeros((4, 8), "float32"), np.arange(8)
    first(a, c)
    np.testing.assert_array_equal(c, a * k + 1)
    second(a, c)
    np.testing.assert_array_equal(c, a - k)
    first(a, c)
    np.testing.assert_array_equal(c, a * k + 1)


def test_functions_get_addresses() -> None:
    source = """
    void reverse(const float *from, float *to, int n) {
      for (int i = 0; i < n; ++i) to[i] = from[n - 1 - i];
    }"""

    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        T.import_source(source)
        with T.Kernel(6) as bx:
            T.call_extern("handle", "reverse", T.address_of(A[bx, 0]), T.address_of(C[bx, 0]), 8)

    a = np.arange(32, dtype="float32").reshape(4, 8)
    c = np.zeros((4, 8), "float32")
    tile.compile(main, target="cpu")(a, c)  # blocks 4 and 5 lie outside: not called
    np.testing.assert_array_equal(c, a[:, ::-1])


def test_the_c_library_is_there() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float64"), C: T.Tensor((8,), "float64")):
        with T.Kernel(1) as _:
            for j in T.serial(8):
                C[j] = T.call_extern("float64", "cbrt", A[j])

    a = np.arange(8, dtype="float64") ** 3
    c = np.zeros(8)
    tile.compile(main, target="cpu")(a, c)
    np.testing.assert_allclose(c, np.arange(8), rtol=1e-15)


def test_the_compiler_s_complaint_is_shown() -> None:
    with pytest.raises(ToolchainError, match="import_source:1"):
        tile.compile(scaled("float scaled(float x, int k) { return y; }"), target="cpu")


def test_without_a_compiler_there_is_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolchainError, match="no C compiler"):
        tile.compile(scaled(TWO + " /* other */"), target="cpu")


def test_definitions_are_told_from_declarations() -> None:
    text = "float f(float x);\nfloat g(float x) { return f(x) + h(x); }"
    assert defines(text, "g")
    assert not defines(text, "f")
    assert not defines(text, "h")
    assert list(own_symbols([text], ["f", "g"])) == ["g"]
