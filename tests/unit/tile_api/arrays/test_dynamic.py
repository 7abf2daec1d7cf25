"""Dimensions that are symbols: one kernel for all sizes, tails and few elements among them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
from support import array_programs as programs
from tile_api import settings
from tile_api.arrays import dynamic
from tile_api.arrays.call_cache import CallCache
from tile_api.arrays.deriving import derive
from tile_api.arrays.equations.sizes import ValueNeeded, at_most, symbols_of
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks
from tile_core.errors import ArrayShapeError

GPUS = ("cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
# Loops without copies to shared memory, and row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


SMALL = Blocks(rows=16, stream=32)


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def named(function, *shapes: str, **options) -> Function:
    """Return a function whose parameters have dimensions with names."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    kinds = {n: tile.Array[shape] for n, shape in zip(names, shapes, strict=True)}
    made = Function(function, **options)
    made._array_types = kinds
    return made


def check(function: Function, *arrays: np.ndarray) -> None:
    found = function(*arrays)
    with np.errstate(all="ignore"):
        wanted = function.func(*(x.astype("float64") for x in arrays))
    several = isinstance(wanted, tuple)
    for got, right in zip(*((found, wanted) if several else ([found], [wanted])), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-4)


def test_rows_columns_and_contractions() -> None:
    def layer(x, weight, bias):
        return np.maximum(x @ weight + bias, 0)

    function = named(layer, "n k", "k m", "m", target="cpu", blocks=Blocks())
    for n, k, m in ((37, 50, 64), (2, 2, 2), (7, 3, 131), (64, 128, 5), (211, 67, 33)):
        check(function, floats(n, k), floats(k, m), floats(m))
    assert len({*map(id, function._caches.now().compiled.values())}) == 1


def test_none_and_one_have_kernels_of_their_own() -> None:
    function = named(programs.softmax, "n m", target="interpret")
    for n, m in ((7, 5), (1, 5), (7, 1), (1, 1), (13, 2)):
        check(function, floats(n, m))
    assert function(floats(0, 5)).shape == (0, 5)
    assert len(function._caches.now().compiled) == 5  # of which one is for (7, 5) and (13, 2)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", GPUS)
def test_attention_with_tails_on_gpus(target: str) -> None:
    function = named(programs.causal, "b n 16", "b m 16", "b m 16", target=target, blocks=SMALL)
    for n, m in ((17, 40), (2, 3)):
        check(function, floats(2, n, 16), floats(2, m, 16), floats(2, m, 16))
    assert len(function._caches.now().compiled) == 1


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("function", [programs.logsumexp, programs.moments])
def test_parts_of_a_stream_may_be_empty(function) -> None:
    split = named(function, "3 m", target="cpu", blocks=Blocks(stream=8, parts=4))
    for m in (100, 3, 31, 8, 9):
        check(split, floats(3, m))


def test_recurrences() -> None:
    function = named(programs.running_spread, "n m", target="interpret")
    for n, m in ((5, 70), (2, 2), (3, 7)):
        check(function, floats(n, m))
    assert len(function._caches.now().compiled) == 1


def test_dimensions_without_names_are_symbols_from_the_third_size_on() -> None:
    def added(x, y):
        return x * 2 + y

    function = tile.Function(added, target="interpret")
    for n in (5, 6, 7, 8, 1, 9):
        check(function, floats(n, 3), floats(n, 3))
    assert len(function._caches.now().compiled) == 4  # for 5, for 6, for 1, and for all others
    assert "x0 in x.shape[0], y.shape[0]" in str(function.explain(floats(9, 3), floats(9, 3)))
    check(function, floats(9, 3), floats(1, 3))  # which is broadcast: another function


def test_what_a_size_decides_while_a_function_is_captured_limits_its_kernels() -> None:
    def few_or_many(x):
        return x * 2 if x.shape[0] > 10 else x * 3

    def below(x):
        return np.where(np.arange(8) < x.shape[0], x.sum(), 0.0)

    function = named(few_or_many, "n", target="interpret")
    for n in (50, 9, 11, 10, 12):
        check(function, floats(n))
    assert len(function._caches.now().compiled) == 3
    assert str(function.explain(floats(50))).endswith(
        "symbols: n in x.shape[0]: these kernels are for all sizes from 2 on, with n > 10"
    )
    function = named(below, "n", target="interpret")
    for n in (50, 3, 8):
        check(function, floats(n))
    assert len(function._caches.now().compiled) == 1


def test_a_number_beside_a_symbol_limits_kernels_too() -> None:
    """Python asks the left operand of a product first: that is the number."""

    def doubled(x):
        return 2 * x if x.shape[0] * x.shape[1] > 40 and 8 < x.shape[1] else x

    function = named(doubled, "4 n", target="cpu", blocks=Blocks())
    for n in (100, 9, 10, 11):
        check(function, floats(4, n))


def test_what_no_kernel_can_leave_open_is_a_number() -> None:
    def scaled(x, w):
        total = x[0]
        for k in range(1, x.shape[0]):
            total = total + x[k]
        return total * len(w)

    def roots(x):
        return x * x.shape[-1] ** -0.5

    function = named(scaled, "n 3", "m", target="interpret")
    for n, m in ((2, 4), (3, 5)):
        check(function, floats(n, 3), floats(m))
    told = str(function.explain(floats(3, 3), floats(5)))
    assert "a number, no symbol: x.shape[0]: a loop of Python goes through n" in told
    assert "a number, no symbol: w.shape[0]: a loop of Python goes through m" in told
    function = named(roots, "n m", target="interpret")
    for n, m in ((2, 4), (3, 5), (7, 5)):
        check(function, floats(n, m))
    assert len(function._caches.now().compiled) == 2
    assert "x.shape[1]: a number is computed of m" in str(function.explain(floats(7, 5)))


def test_sizes_are_values_too() -> None:
    def shares(x, y):
        joined = np.concatenate([x, y[1:]])
        return joined / x.shape[0] + np.sqrt(y.shape[0]), x[:-1] - x[1:], np.flip(y)

    function = named(shares, "n", "m", target="interpret")
    for n, m in ((30, 40), (3, 2), (7, 7)):
        check(function, floats(n), floats(m))
    assert len(function._caches.now().compiled) == 1


def test_sizes_that_do_not_fit_are_refused_as_ever() -> None:
    def added(x, y):
        return x + y

    function = tile.Function(added, target="interpret")
    for n in (5, 6, 7, 8):
        function(floats(n), floats(n))
    with pytest.raises(ArrayShapeError, match=r"np.add: shapes \(x0=8,\) and \(y0=7,\) do not fit"):
        function(floats(8), floats(7))


def test_printed_files_compare_several_sizes(tmp_path: Path) -> None:
    function = named(programs.log_softmax, "n m", target="interpret")
    text = function.source(floats(9, 5))
    assert 'm, n = T.dynamic("m, n", min=2)' in text
    (tmp_path / "file.py").write_text(text)
    lines: list[str] = []
    with settings.override(target="interpret"):
        runpy.run_path(str(tmp_path / "file.py"), init_globals={"print": lines.append})["main"]()
    assert [line.partition(", at")[0] for line in lines] == [
        f"log_softmax: {shape}" for shape in ((9, 5), (2, 3), (67, 69))
    ]
    edited = named(programs.log_softmax, "n m", target="interpret", kernels=f"{tmp_path}/file.py")
    for n, m in ((9, 5), (4, 6)):
        check(edited, floats(n, m))


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda p: p.name)
def test_no_number_of_a_symbol_is_printed(program, monkeypatch) -> None:
    monkeypatch.setattr(dynamic, "MET", 1)
    function = Function(program.function, blocks=Blocks())
    source = function.source(**program.arguments())
    numbers = {int(n) for n in re.findall(r"(?<![.\d])\d{6,}(?!\.)", source.partition("import")[2])}
    assert not {n for n in numbers if n > 900_000}
    plain = derive(function.equations(**program.arguments()), Blocks())
    assert source.count("@tile.jit") == len(plain.kernels)


def blocks_of(function: Function, n: int) -> str:
    """Return the rows of attention's blocks for arrays of `n` rows."""
    return dict(function.explain(*[floats(n, 64)] * 3).kernels[0].roles)["rows"]


def test_classes_of_sizes_have_blocks_of_their_own_if_those_of_others_are_slower() -> None:
    function = named(programs.attention, "n 64", "n 64", "n 64", target="cpu")
    many, few = (blocks_of(function, n) for n in (3000, 20))
    assert int(few.split()[-1]) < int(many.split()[-1])
    assert [blocks_of(function, n) for n in (17, 31, 2048, 5000)] == [few, few, many, many]
    assert len(function._caches.now().derived) == 2  # 5000 rows are of another class, and as fast
    told = str(function.explain(*[floats(17, 64)] * 3)).splitlines()
    assert "blocks are chosen for n from 16 to 31: others have theirs if they are faster" in told


def test_calls_find_the_kernels_for_their_class() -> None:
    cache = CallCache()

    def told(at) -> str:
        return f"{at('x', 0)} >= 2 and ({at('x', 0)}.bit_length(),)"

    for n, kernels in ((5, "few"), (100, "many")):
        x = floats(n)
        cache.remember(kernels, (x,), {}, {"x": x}, told)
    wanted = {4: ("few", None), 7: ("few", None), 8: None, 1: None, 64: ("many", None)}
    assert {n: cache.find((floats(n),), {}) for n in wanted} == wanted


def test_kernels_are_forgotten_when_there_are_many_and_made_anew(monkeypatch) -> None:
    for module in ("function", "function_caches"):
        monkeypatch.setattr(f"tile_api.arrays.{module}.MOST_SIGNATURES", 2)
    monkeypatch.setattr("tile_api.arrays.call_cache.MOST_CALLS", 3)

    def scaled(x, factor):
        return x * factor

    function = Function(scaled, target="cpu", blocks=Blocks())
    for factor in (1.0, 2.0, 3.0, 4.0, 5.0, 1.0):
        np.testing.assert_array_equal(function(floats(5), factor), floats(5) * np.float32(factor))
    caches = function._caches.now()
    assert len(caches.compiled) == len(caches.derived) == len(function._equations) == 2
    assert len(caches.calls._known) == 3
    symbolic = named(scaled, "n", "m", target="cpu", blocks=Blocks())
    for kind in ("float32", "float64", "int32", "float32"):
        for n in (4, 9):
            x = np.arange(n).astype(kind)
            np.testing.assert_array_equal(symbolic.explain(x, x) and symbolic(x, x), x * x)
    assert len(symbolic._caches.now().derived) == 2


def test_kernels_for_several_sizes_are_compared_with_a_call_up_to_a_number(monkeypatch) -> None:
    monkeypatch.setattr("tile_api.arrays.call_cache.MOST_SIZED", 2)
    function = named(lambda x: x + 1, "n k", target="interpret", blocks=Blocks())
    for kind in ("float32", "float64", "int32", "int64", "float32"):
        np.testing.assert_array_equal(function(np.ones((3, 4), kind)), np.full((3, 4), 2, kind))
    (kinds,) = function._caches.now().calls._sized.values()
    assert len(kinds) == 2


def test_kernels_of_one_size_serve_no_other_size_however_they_are_called() -> None:
    def scaled(x):
        return x / x.sum(axis=-1, keepdims=True)

    function = Function(scaled, target="cpu")
    rows = [*range(2, 2 + dynamic.MET), 2, 3, 9, 2, 12]  # symbols come with the third size
    for m in rows:
        check(function, floats(m, 7) ** 2)
    for m in rows:
        found = function(x=floats(m, 7) ** 2)
        np.testing.assert_allclose(found, scaled(floats(m, 7) ** 2), rtol=1e-4)


def test_powers_of_sizes_are_products_of_a_few() -> None:
    n = symbols_of({"n": 100})["n"]
    assert (str(n**1), str(n**2), str(n**3)) == (str(n), str(n * n), str(n * n * n))
    for asked in (lambda: n**0.5, lambda: n**-1, lambda: n**5, lambda: pow(n, 2, 7)):
        with pytest.raises(ValueNeeded):
            asked()


def test_what_is_known_of_sizes_holds_for_the_least() -> None:
    n = symbols_of({"n": 100})["n"]
    assert at_most(1, n)
    assert at_most(0, n // 8)
    assert not at_most(1, n // 8)


@pytest.mark.parametrize("number", [int, lambda n: round(float(n))])
def test_what_is_computed_of_a_size_is_not_for_others(number):
    """Sizes that were met hold the comparison; those that come then do not."""

    def function(x):
        return 2 * x if number(x.shape[0]) > 9 else 3 * x

    of = Function(function, target="interpret")
    for n in (12, 17, 20, 7, 13, 8):
        x = np.arange(float(n))
        np.testing.assert_array_equal(of(x), function(x))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_either_sequence_may_be_the_longer_one(mode):
    def function(x, y):
        return np.convolve(x, y, mode), np.correlate(x, y, mode)

    of, y = Function(function, target="interpret"), np.arange(9.0)
    for n in (12, 17, 20, 7, 9, 8):
        x = np.arange(1.0, n + 1)
        for found, right in zip(of(x, y), function(x, y), strict=True):
            np.testing.assert_allclose(found, right)


def test_windows_of_images_of_other_heights():
    """Rows less the window, times columns, are one dimension of a kernel."""

    def function(x, w):
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.einsum("bchwij,ocij->bohw", windows, w)

    of, w = Function(function, target="interpret"), np.ones((4, 3, 3, 3))
    for rows, columns in ((12, 12), (17, 17), (7, 7), (9, 12)):
        x = np.random.default_rng(0).standard_normal((2, 3, rows, columns))
        np.testing.assert_allclose(of(x, w), function(x, w))
