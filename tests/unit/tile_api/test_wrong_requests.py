"""What is asked of kernels and of the clock, and makes no sense, is refused with a code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import ArgumentLayoutError, FrontendTypeError, FrontendValueError


@T.prim_func
def fill(A: T.Tensor((4,), "float32")):
    with T.Kernel(1):
        T.fill(A, 7)


def test_what_cannot_be_called_is_not_timed() -> None:
    with pytest.raises(FrontendTypeError, match=r"TL1003.*int 5 cannot be called"):
        tile.do_bench(5)


@pytest.mark.parametrize("quantile", [2.0, -0.5])
def test_quantiles_are_shares(quantile: float) -> None:
    with pytest.raises(FrontendValueError, match=r"quantiles are between 0 and 1, got \[0.5, "):
        tile.do_bench(lambda: None, quantiles=[0.5, quantile])


@pytest.mark.parametrize("wish", [{"rep": -5}, {"warmup": -1}, {"_n_repeat": -2}], ids=str)
def test_times_are_not_negative(wish: dict[str, int]) -> None:
    with pytest.raises(FrontendValueError, match="not negative"):
        tile.do_bench(lambda: None, **wish)


def test_inputs_of_no_kind() -> None:
    kernel = tile.compile(fill, target="interpret")
    with pytest.raises(FrontendTypeError, match="got 'ones'") as refused:
        kernel.get_profiler(tensor_supply_type="ones")
    assert "TensorSupplyType.One" in str(refused.value)


def test_what_is_no_function_is_not_decorated() -> None:
    with pytest.raises(FrontendTypeError, match="<class 'int'> is no function"):
        tile.jit(int)


def test_a_bundle_that_cannot_be_written_tells_the_name_that_was_given(tmp_path: Path) -> None:
    kernel = tile.compile(fill, target="cpu")
    with pytest.raises(FileNotFoundError) as missing:
        kernel.save(tmp_path / "nowhere" / "fill.tile")
    assert missing.value.filename == str(tmp_path / "nowhere" / "fill.tile")
    with pytest.raises(IsADirectoryError) as folder:
        kernel.save(tmp_path)
    assert folder.value.filename == str(tmp_path)
    assert not list(tmp_path.iterdir())


def test_arrays_of_jax_are_read_and_never_written() -> None:
    """Programs share them, and what JAX compiled counts on their values."""
    jnp = pytest.importorskip("jax").numpy
    kernel = tile.compile(fill, target="cpu")
    array = jnp.ones(4)
    for _ in range(2):
        with pytest.raises(ArgumentLayoutError, match=r"fill\.A: the kernel writes this tensor"):
            kernel(array)
    assert np.array_equal(array, np.ones(4))
