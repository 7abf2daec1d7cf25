"""`tile.function`: shapes and types that are met, empty arrays, what cannot be passed."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

import tile_api as tile
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks
from tile_api.arrays.running import shaped
from tile_core.errors import (
    ArgumentCountError,
    ArrayShapeError,
    FrontendTypeError,
)

RANDOM = np.random.default_rng(7)


def numbers(*shape: int, dtype: str = "float32", low: int = -4, high: int = 5) -> np.ndarray:
    return RANDOM.integers(low, high, shape).astype(dtype)


def same(got: np.ndarray, wanted: np.ndarray) -> None:
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


@tile.function(target="cpu")
def total(x):
    return x.sum(axis=-1)


@tile.function(target="cpu")
def product(a, b):
    return a @ b


def test_it_is_the_function() -> None:
    assert total.__name__ == "total"
    assert total.func(np.ones(3)) == 3


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (7,), (5, 7), (5, 1), (1, 7), (2, 3, 5), (2, 2, 2, 2, 3)])
def test_sums_of_every_type(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(*shape, low=0, dtype=dtype)
    same(np.asarray(total(x)), np.asarray(x.sum(axis=-1)))


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("left", "right"),
    [((5, 70), (70, 9)), ((1, 70), (70, 1)), ((70,), (70, 5)), ((5, 70), (70,)), ((5, 1), (1, 9)),
     ((2, 1, 5, 7), (3, 7, 4)), ((5, 0), (0, 9)), ((0, 7), (7, 9)), ((130, 64), (64, 300))],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_products(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    a, b = numbers(*left, dtype=dtype), numbers(*right, dtype=dtype)
    same(product(a, b), a @ b)


def test_half_precision_is_accumulated_in_single() -> None:
    a, b = numbers(37, 500, dtype="float16"), numbers(500, 20, dtype="float16")
    same(product(a, b), (a.astype("float32") @ b.astype("float32")).astype("float16"))


def test_one_function_many_signatures() -> None:
    for shape in ((3, 4), (4, 3), (3, 4)):
        x = numbers(*shape)
        same(total(x), x.sum(axis=-1))


def test_numbers_and_flags_are_part_of_the_function() -> None:
    @tile.function(target="cpu")
    def scaled(x, by=2, *, negative=False):
        return x * (-by if negative else by)

    x = numbers(9)
    same(scaled(x), x * 2)
    same(scaled(x, 3), x * 3)
    same(scaled(x, negative=True), x * -2)


def test_calls_that_are_known_by_their_arguments() -> None:
    table = numbers(4)

    @tile.function(target="cpu")
    def f(x, y=table, by=1.0, *, less=0, name="a"):
        return (x - less) * by + y * len(name)

    x, y = numbers(4), numbers(4)
    for _ in range(2):
        for args, kwargs in (
            ((x,), {}), ((x, y), {}), ((y, x), {}), ((x, x), {}), ((x,), {"y": y}),
            ((), {"y": x, "x": y}), ((), {"x": x, "y": y}), ((x, y, 2), {}), ((x, y, 2.5), {}),
            ((x, y), {"by": True}), ((x, y), {"less": 1}), ((x, y), {"less": 1, "name": "abc"}),
            ((x, y), {"name": "abc", "less": 1}), ((x.astype("int32"), y), {}),
        ):  # fmt: skip
            same(f(*args, **kwargs), f.func(*args, **kwargs))


def test_zeros_have_signs() -> None:
    @tile.function(target="cpu")
    def signs(x, of):
        return np.copysign(x, np.float32(of))

    x = np.ones(2, "float32")
    for _ in range(2):
        for of in (0.0, -0.0, np.float32(0.0), np.float32(-0.0)):
            same(signs(x, of), signs.func(x, of))


def test_empty_arrays() -> None:
    same(total(np.zeros((0, 7), "float32")), np.zeros((0,), "float32"))
    same(total(np.zeros((7, 0), "float32")), np.zeros((7,), "float32"))


def test_what_holds_the_results() -> None:
    class Both(NamedTuple):
        low: np.ndarray
        high: np.ndarray

    @tile.function(target="cpu")
    def both(x):
        return Both(x.min(axis=0), x.max(axis=0))

    x = numbers(5, 7)
    found = both(x)
    assert isinstance(found, Both)
    same(found.low, x.min(axis=0))
    same(found.high, x.max(axis=0))


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    found = total(x)
    assert isinstance(found, torch.Tensor)
    assert torch.equal(found, x.sum(dim=-1))


def test_the_source_runs_as_a_file(tmp_path) -> None:
    x, y = numbers(5, 70), numbers(70, 9)
    path = tmp_path / "product_in_tiles.py"
    path.write_text(product.source(x, y))
    found = importlib.util.spec_from_file_location("product_in_tiles", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    kernel = tile.compile(module.product.get_tir(), out_idx=[-1], target="cpu")
    same(kernel(x, y), x @ y)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(ArgumentCountError, match="missing a required argument: 'b'"):
        product(numbers(3, 4))
    with pytest.raises(FrontendTypeError, match="argument 'a' is a list"):
        product([[1.0, 2.0]], numbers(2, 3))
    with pytest.raises(ArrayShapeError, match="4 columns, 5 rows"):
        product(numbers(3, 4), numbers(5, 6))
    with pytest.raises(FrontendTypeError, match="decorate"):
        tile.function(3)
    with pytest.raises(FrontendTypeError, match=r"any number of arguments: \*xs"):

        @tile.function
        def many(*xs):
            return xs[0]

    with pytest.raises(FrontendTypeError, match="no source in the tier 'beginner'"):
        total.source(numbers(3), tier="beginner")


def test_results_of_different_shapes() -> None:
    @tile.function(target="interpret")
    def several(x, w):
        rows = x.sum(axis=-1)
        return x @ w, rows, x.max(axis=0), rows[:, None] * w[0]

    x, w = numbers(70, 30), numbers(30, 300)
    found = several(x, w)
    for got, wanted in zip(found, several.func(x, w), strict=True):
        same(got, wanted)


@pytest.mark.parametrize("resident", [16_384, 0])
def test_rows_of_infinities(resident: int) -> None:
    def extrema(x):
        return x.max(axis=-1), x.min(axis=-1), np.logaddexp.reduce(x, axis=-1)

    x = numbers(6, 150)
    x[0], x[1], x[2, :100], x[3, 7] = -np.inf, np.inf, -np.inf, np.inf
    found = Function(extrema, target="cpu", blocks=Blocks(resident=resident))(x)
    for got, wanted in zip(found, extrema(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_an_extremum_alone_starts_from_infinity() -> None:
    x = numbers(6, 150)
    x[0] = -np.inf
    lone = Function(largest, target="cpu", blocks=Blocks(resident=0))
    same(lone(x), x.max(axis=-1))


def largest(x):
    return x.max(axis=-1)


def test_names_that_kernels_use_themselves() -> None:
    def main(T, out, t0, i, BM, g0, tile):
        return (T @ out).max(axis=-1) + t0 * i + BM - g0 * tile

    x, y = numbers(70, 30), numbers(30, 20)
    rest = [numbers(70) for _ in range(5)]
    same(Function(main, target="cpu")(x, y, *rest), main(x, y, *rest))
    same(np.asarray(Function(main).interpret(x, y, *rest)), main(x, y, *rest))


def test_deep_expressions_are_computed_in_parts() -> None:
    def polynomial(x):
        y = x * 0
        for k in range(110):
            y = y * x + (k % 3 - 1)
        return y

    x = numbers(7, low=-1, high=2, dtype="float64")
    same(Function(polynomial, target="cpu")(x), polynomial(x))


def test_what_is_read_twice_again_and_again_is_written_once() -> None:
    def doubled(x):
        for _ in range(30):
            x = x * x + x * 0.5
        return x

    def shifted(x):
        y = doubled(x)
        return np.exp(y - y.max(axis=-1, keepdims=True)), y.argmax(axis=-1), np.cumsum(y, axis=-1)

    x = numbers(7, 20, low=-1, high=1)
    for blocks in (Blocks(), Blocks(rows=4, stream=8, columns=8, resident=0)):
        compiled = Function(shifted, target="cpu", blocks=blocks)
        assert len(compiled.source(x)) < 40_000
        for got, wanted in zip(compiled(x), shifted(x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_empty_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    found = total(torch.zeros(0, 7))
    assert isinstance(found, torch.Tensor)
    assert (found.shape, found.dtype) == ((0,), torch.float32)


def test_functions_are_captured_by_several_threads() -> None:
    x = numbers(9, 30)

    def run(by: int) -> np.ndarray:
        def scaled(x):
            return (x * by).max(axis=-1) - x.sum(axis=-1)

        return Function(scaled, target="cpu")(x)

    with ThreadPoolExecutor(4) as pool:
        for by, found in enumerate(pool.map(run, range(8))):
            same(found, (x * by).max(axis=-1) - x.sum(axis=-1))


def test_views_that_do_not_lie_in_a_row() -> None:
    x = numbers(70, 30)
    for view in (x.T, x[::2, ::3], x[::-1], np.broadcast_to(x[:1], (5, 30))):
        same(total(view), view.sum(axis=-1))
    torch = pytest.importorskip("torch")
    assert torch.equal(total(torch.from_numpy(x).T), torch.from_numpy(x).T.sum(dim=-1))


def test_arrays_without_dimensions() -> None:
    def scaled(x, by):
        return x * by, by + 1

    x, by = numbers(3, 4), np.asarray(2, "float32")
    for view in (x, x.T):
        for got, wanted in zip(
            Function(scaled, target="cpu")(view, by), scaled(view, by), strict=True
        ):
            same(got, np.asarray(wanted))


def test_another_target() -> None:
    x = numbers(5, 7)
    same(total(x), x.sum(axis=-1))
    other = total.on("cuda:sm_80@sim")
    same(other(x), x.sum(axis=-1))
    assert [k.target for k in other.kernels(x)] == ["cuda:sm_80@sim"]
    assert [k.target for k in total.kernels(x)] != ["cuda:sm_80@sim"]


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_a_dimension_of_one_element_has_any_stride(target):
    x = np.arange(6.0)[None, ::-2][:, :1]
    assert x.strides[-1] < 0
    np.testing.assert_array_equal(Function(lambda x: x + 1, target=target)(x), [[6]])


def test_settings_hold_for_the_calls_that_they_are_set_for() -> None:
    x = numbers(5, 7)

    @Function
    def plain(x):
        return x.sum(axis=-1)

    def targets() -> list[str]:
        same(plain(x), x.sum(axis=-1))
        plain.vjp(x)
        return [kernel.target for kernel in plain.kernels(x)]

    with tile.settings.override(target="cpu"):
        assert targets() == ["cpu"]
        with tile.settings.override(target="interpret"):
            assert targets() == ["interpret"]
            assert [k.target for k in plain.on("cpu").kernels(x)] == ["cpu"]
        assert targets() == ["cpu"]
        with tile.settings.override(forced_target="interpret"):
            assert targets() == ["interpret"]
        first = plain.compiled(x)
        with tile.settings.override(threads=1):
            assert plain.compiled(x) is not first
        assert plain.compiled(x) is first


@pytest.mark.parametrize(
    ("dtype", "kind", "wanted"),
    [("uint8", "uint4", [1, 2, 15, 8]), ("int8", "int4", [1, 2, -1, -8])],
)
def test_two_integers_of_four_bits_in_a_byte(dtype: str, kind: str, wanted: list[int]) -> None:
    """The first is in the lower half; of an odd row the last half of a byte is nobody's."""
    held = np.array([[0x21, 0x8F]], "uint8").view(dtype)
    for length in (4, 3):
        found = shaped(held, (1, length))
        assert found.dtype == kind
        assert found.astype("int32").tolist() == [wanted[:length]]
    assert shaped(held, (1, 2)) is held
    assert shaped(held[0, :1], ()).shape == ()
