"""What programs ask of traced functions, and the numbers that they are tried on."""

from __future__ import annotations

import pytest

import tile_api.language as T
from tile_api.timing.supply import make_array
from tile_core.dtypes import dtype_of


def doubling():
    n = T.dynamic("n")

    @T.prim_func
    def main(
        A: T.StridedTensor((n, 4), (8, 1), "float32"),
        B: T.Tensor((n, 4), "float32"),
        table: T.Tensor((4,), T.ptr),
        factor: T.int32,
    ):
        with T.Kernel(n, threads=4) as row:
            for i in T.Parallel(4):
                B[row, i] = A[row, i] * factor

    return main


def test_the_tensors_of_a_function_by_parameter() -> None:
    func = doubling()
    found = func.buffer_map
    assert [buffer.name for buffer in found.values()] == ["A", "B", "table"]
    first, second, table = (found[param] for param in func.params[:3])
    assert list(first.strides) == [8, 1]
    assert second.dtype == "float32"
    assert second.shape[1] == 4
    assert table.dtype == "int64"
    assert func.params[3] not in found


@pytest.mark.parametrize(
    ("kind", "mean", "deviation"),
    [("Normal", -1, 1), ("Randn", 0, 1), ("Uniform", 0, 3**-0.5), ("Integer", 0, 2**0.5)],
)
def test_supplied_numbers_have_the_distribution_asked_for(
    kind: str, mean: float, deviation: float
) -> None:
    values = make_array((20000,), dtype_of("float32"), kind, seed=1)
    assert abs(values.mean() - mean) < 0.03
    assert abs(values.std() - deviation) < 0.03
