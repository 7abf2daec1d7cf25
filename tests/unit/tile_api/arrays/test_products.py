"""Sums of products against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from support.captured_arrays import assert_agrees, filled, outputs
from tile_api.arrays.capturing import numpy_names, products
from tile_api.arrays.deriving import whole_plans
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks, resized
from tile_core.dtypes import dtype_of

DTYPES = ["bool", "int8", "uint8", "int32", "float16", "float32", "float64"]


def arrays(dtype, *shapes):
    return [filled(shape, dtype, k, -2, 3) for k, shape in enumerate(shapes)]


CASES = {
    "matmul": [
        (lambda x, y: x @ y, (3, 5), (5, 7)),
        (lambda x, y: np.matmul(x, y), (2, 1, 3, 5), (4, 5, 2)),
        (lambda x, y: x @ y, (5,), (5, 7)), (lambda x, y: x @ y, (2, 3, 5), (5,)),
        (lambda x, y: x @ y, (5,), (5,)), (lambda x, y: x @ y, (3, 1), (1, 7)),
        (lambda x, y: x @ y.T, (3, 0), (2, 0)),
        (lambda x, y: x @ np.swapaxes(y, -1, -2), (3, 5), (5, 5)),
    ],
    "einsum": [
        (lambda x, y: np.einsum("ij,jk->ik", x, y), (3, 5), (5, 7)),
        (lambda x, y: np.einsum("ij,jk", x, y), (3, 5), (5, 7)),
        (lambda x, y: np.einsum("b i d, b j d -> b i j", x, y), (2, 3, 5), (2, 7, 5)),
        (lambda x, y: np.einsum("...i,...i", x, y), (2, 3, 5), (3, 5)),
        (lambda x, y: np.einsum("...ij,jk->...ik", x, y), (2, 3, 5), (5, 7)),
        (lambda x, y: np.einsum("i,j->ij", x, y), (3,), (5,)),
        (lambda x, y: np.einsum("ij,i->j", x, y, optimize=True), (3, 5), (3,)),
        (lambda x: np.einsum("ii->i", x), (5, 5)), (lambda x: np.einsum("ii", x), (5, 5)),
        (lambda x: np.einsum("ijk->kj", x), (2, 3, 5)), (lambda x: np.einsum("ba", x), (2, 3)),
        (lambda x, y, z: np.einsum("ab,bc,cd->ad", x, y, z), (2, 3), (3, 5), (5, 2)),
        (lambda x, y, z: np.einsum("ik,kj,ij->ij", x, y, z), (3, 5), (5, 7), (3, 7)),
        (lambda x, y, z: np.einsum("i,jk,ik->k", x, y, z), (3,), (1, 7), (3, 7)),
        (lambda x, y: np.einsum("...,...", x, y), (3, 5), (5,)),
    ],
    "vecdot": [
        (lambda x, y: np.vecdot(x, y), (2, 3, 5), (3, 5)),
        (lambda x, y: np.vecdot(x, y, axis=0), (5, 3), (5, 1)),
    ],
    "matvec": [(lambda x, y: np.matvec(x, y), (2, 3, 5), (5,))],
    "vecmat": [(lambda x, y: np.vecmat(x, y), (3,), (2, 3, 5))],
    "dot": [
        (lambda x, y: np.dot(x, y), (3, 5), (5, 7)), (lambda x, y: x.dot(y), (5,), (5,)),
        (lambda x, y: np.dot(x, y), (), (3, 5)), (lambda x, y: np.dot(x, y), (2, 3, 5), (4, 5, 2)),
        (lambda x, y: np.dot(x, y), (2, 3, 5), (5,)),
    ],
    "inner": [
        (lambda x, y: np.inner(x, y), (3, 5), (7, 5)), (lambda x, y: np.inner(x, y), (5,), (5,)),
        (lambda x: np.inner(x, 2), (3, 5)),
    ],
    "kron": [
        (lambda x, y: np.kron(x, y), (3, 4), (2, 5)), (lambda x, y: np.kron(x, y), (3, 4), (5,)),
        (lambda x, y: np.kron(x, y), (3,), ()),
    ],
    "outer": [
        (lambda x, y: np.outer(x, y), (3,), (5,)), (lambda x, y: np.outer(x, y), (2, 3), (5, 1)),
        (lambda x, y: np.multiply.outer(x, y), (2, 3), (5,)),
    ],
    "vdot": [(lambda x, y: np.vdot(x, y), (2, 3), (3, 2))],
    "tensordot": [
        (lambda x, y: np.tensordot(x, y), (2, 3, 5), (3, 5, 2)),
        (lambda x, y: np.tensordot(x, y, 1), (2, 3), (3, 5)),
        (lambda x, y: np.tensordot(x, y, 0), (2,), (3, 5)),
        (lambda x, y: np.tensordot(x, y, ([0, 2], [1, 0])), (2, 3, 5), (5, 2)),
        (lambda x, y: np.tensordot(x, y, (-1, 0)), (2, 3), (3, 5)),
    ],
    "trace": [
        (lambda x: np.trace(x), (3, 5)), (lambda x: x.trace(1), (5, 5)),
        (lambda x: np.trace(x, -1, 1, 2), (2, 3, 5)),
    ],
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_function(name, dtype):
    for function, *shapes in CASES[name]:
        if name == "inner" and dtype == "bool" and len(shapes) == 1:
            continue
        assert_agrees(function, *arrays(dtype, *shapes), exact=True)


def test_types_are_promoted():
    for one, other in (
        ("int8", "float16"),
        ("uint8", "int8"),
        ("float32", "int32"),
        ("bool", "int8"),
    ):
        x, y = filled((3, 5), one, 1), filled((5, 2), other, 2)
        assert_agrees(lambda x, y: (x @ y, np.tensordot(x, y, 1)), x, y, exact=True)


@pytest.mark.parametrize(
    ("one", "other"), [("int8", "int8"), ("uint8", "int8"), ("int4", "uint4"), ("int16", "int32")]
)
def test_integers_are_multiplied_as_tiles(one, other):
    x, y = (whole((9, 70), one), whole((70, 22), other))
    function = Function(wide_product, target="cpu", blocks=Blocks(stream=32))
    source = function.source(x, y)
    assert "T.gemm(" in source
    assert all(source.count(f'"{name}")') >= 2 for name in (one, other))  # the tiles are, too
    np.testing.assert_array_equal(function(x, y), wide_product(x, y))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_8_bits_are_multiplied_as_such_and_summed_as_float32(dtype):
    x, y = (
        filled(shape, "float32", 1).astype(dtype_of(dtype).numpy()) for shape in ((9, 70), (70, 5))
    )
    function = Function(lambda x, y: x @ y, target="cpu")
    assert f'T.alloc_shared((BM, 64), "{dtype}")' in function.source(x, y).replace("BN", "64")
    found = function(x, y)
    assert found.dtype == (x @ y).dtype == "float32"
    np.testing.assert_allclose(found, x.astype("float32") @ y.astype("float32"), rtol=1e-5)


def whole(shape, dtype):
    """Return integers from one end of a type to the other."""
    kind = dtype_of(dtype).numpy()
    limits = ml_dtypes.iinfo(kind) if "16" not in dtype and "32" not in dtype else None
    low, high = (limits.min, limits.max) if limits else (-3000, 3000)
    return np.random.default_rng(0).integers(low, int(high) + 1, shape).astype(kind)


def wide_product(x, y):
    return x.astype("int32") @ y.astype("int32")


def test_every_product_is_met():
    names = {name for name, f in numpy_names.FUNCTIONS.items() if f.__module__ == products.__name__}
    assert names == set(CASES)
    programs = numpy_names._UFUNC_PROGRAMS.items()
    mine = {name for name, f in programs if f.__module__ == products.__name__}
    assert {"matmul", "vecdot"} <= mine <= set(CASES)


REFUSED = [
    (lambda x, y: x @ y, (3, 5), (3, 5)), (lambda x, y: x @ y, (2, 3, 5), (3, 5, 7)),
    (lambda x, y: x @ y, (), (3,)), (lambda x, y: np.einsum("ij,jk", x, y), (3, 5), (3, 5)),
    (lambda x, y: np.einsum("ij", x, y), (3, 5), (3, 5)),
    (lambda x, y: np.einsum("i,ij", x, y), (3, 5), (3, 5)),
    (lambda x, y: np.einsum("ij,ij->k", x, y), (3, 5), (3, 5)),
    (lambda x, y: np.tensordot(x, y, 3), (3, 5), (3, 5)),
    (lambda x, y: np.tensordot(x, y, ([0, 1], [0])), (3, 5), (3, 5)),
    (lambda x, y: np.dot(x, y), (3, 5), (3, 5)),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_does_not_fit_is_refused(place):
    function, *shapes = REFUSED[place]
    given = arrays("float32", *shapes)
    with pytest.raises((ValueError, IndexError)):
        function(*given)
    with pytest.raises(ValueError, match="TL1204"):
        outputs(function, *given)


def test_products_for_each_column_of_another_one_are_kernels_of_their_own() -> None:
    """Within the loop their tiles would have three dimensions, which no matrix product takes."""

    def chained(a, b, c):
        return np.einsum("gnj,ghj->gnh", c, np.einsum("ghe,ehj->ghj", np.exp(a), b))

    rng = np.random.default_rng(0)
    shapes = ((3, 40, 17), (17, 40, 32), (3, 24, 32))
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
    function = Function(chained, target="cpu")
    wanted = chained(*(x.astype("float64") for x in arrays))
    np.testing.assert_allclose(function(*arrays), wanted, rtol=1e-5, atol=2e-4)
    assert function.source(*arrays).count("@tile.jit") == 2


def test_blocks_that_leave_one_index_less_name_all_of_them() -> None:
    """Four indices become one of all blocks, three stand for themselves."""

    def product(x, y):
        return np.einsum("abmk,abkn->abmn", x, y)

    arrays = [np.ones((2, 3, 96, 16), "float32"), np.ones((2, 3, 16, 80), "float32")]
    (plan,) = whole_plans(Function(product).equations(*arrays), Blocks())
    assert [name for name, _ in plan.combined] == ["g0", "g1"]
    wide = resized(plan, Blocks(columns=128))
    assert wide.combined == ()
    assert [name for name, _ in wide.indices] == ["bx", "g0", "g1"]


def test_products_are_compared_with_the_largest_as_it_was_added_up() -> None:
    """Added up in another order, none of them is equal to it: a row would have no largest."""

    def kept(x, w, v):
        s = x.T @ x
        largest = np.where(s == s.max(axis=-1, keepdims=True), w, 0)
        return v @ np.tril(largest) + v @ np.tril(largest).T

    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape) for shape in ((2, 5), (5, 5), (2, 5))]
    found = Function(kept, target="interpret")(*arrays)
    np.testing.assert_allclose(found, kept(*arrays), rtol=1e-12)


@pytest.mark.parametrize(
    ("subscripts", "count"),
    [("ik,kj,ij->ij", 1), ("ij,ik,kj->ij", 1), ("ik,ij,kj->ij", 1), ("ij,jk,kl->il", 2),
     ("ij,kj,ik->", 1), ("ii,ik,kj->ij", 1)],
)  # fmt: skip
def test_what_a_sum_does_not_change_does_not_hide_a_product(subscripts, count):
    def f(x, y, z):
        return np.einsum(subscripts, x, y, z)

    source = Function(f, blocks=Blocks()).source(*arrays("float32", *[(70, 70)] * 3))
    assert source.count("T.gemm(") == count


def normalized(m):
    e = np.exp(m - m.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


BESIDE_BATCHES = {
    "a sum of columns": lambda a, m: np.einsum("ij,gjd->gid", a, m) - m.sum(1)[:, None],
    "rows behind": lambda a, m: np.concatenate([np.einsum("ij,gjd->gid", a, m), m], axis=1),
    "columns that add up to 1": lambda a, m: np.einsum("ij,gjd->gid", a, normalized(m)),
    "turned": lambda a, m: np.einsum("ij,gjd->gdi", a, m) - m.sum(1)[:, :, None],
    "rows first": lambda a, m: np.einsum("ij,gjd->igd", a, m) - m.sum(1),
    "columns first": lambda a, m: np.einsum("ij,gjd->dig", a, m) - m.sum(1).T[:, None],
}


@pytest.mark.parametrize("name", BESIDE_BATCHES)
@pytest.mark.parametrize("sizes", [(4, 5, 3, 6), (3, 70, 2, 65), (8, 8, 8, 8)])
def test_sums_along_the_columns_of_products_in_batches(name, sizes):
    """Of a factor with rows of the grid and columns, the columns are those of the product."""
    i, j, g, d = sizes
    rng = np.random.default_rng(1)
    a, m = rng.standard_normal((i, j)), rng.standard_normal((g, j, d))
    for resident in (16_384, 0):
        found = Function(
            BESIDE_BATCHES[name], target="interpret", blocks=Blocks(resident=resident)
        )(a, m)
        np.testing.assert_allclose(found, BESIDE_BATCHES[name](a, m), rtol=1e-9, atol=1e-9)


OTHER_ROWS = {
    "other columns": lambda a, b, c: (a @ b)[:, None, :] * (c @ b)[None],
    "the same": lambda a, b, c: np.exp((a @ b)[:, :, None, None] / 32) + a @ b,
    "three": lambda a, b, c: np.multiply.outer(a @ b, b.T @ c.T)[..., None] * (a @ c.T)[:, 0],
    "of vectors": lambda a, b, c: np.outer(np.vecdot(a[:, None], c), np.vecdot(a[:, None], c)),
    "a quotient": lambda a, b, c: (a @ b)[:, None, :] / (1 + (c @ b) ** 2)[None],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("name", OTHER_ROWS)
def test_products_whose_rows_differ_are_kernels_of_their_own(name, dtype) -> None:
    given = filled((4, 6), dtype, 1), filled((6, 5), dtype, 2), filled((3, 6), dtype, 3)
    wanted = OTHER_ROWS[name](*given)
    for target in ("interpret", "cpu"):
        found = Function(OTHER_ROWS[name], target=target)(*given)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def _of_products(a, b, c):
    v = np.dot(a, a) @ np.swapaxes(a, -1, -2)
    return np.vecmat(v, v)


def _largest(a, b, c):
    v = a[:, None] * b
    return np.max(np.vecmat(v, v), axis=-1)


def _of_squares(a, b, c):
    v = (c[..., None] * b @ b)[None] + a
    return np.matvec(v, v)


@pytest.mark.parametrize("function", [_of_products, _largest, _of_squares])
@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_gradients_of_products_within_products(function, target) -> None:
    """Factors that lie along the columns of other products, and results that are cut themselves."""
    random = np.random.default_rng(2)
    given = [random.standard_normal(shape) for shape in ((3, 3, 3), (3, 3), (1,))]
    along = [random.standard_normal(x.shape) for x in given]
    ends = [
        function(*(x + s * d for x, d in zip(given, along, strict=True))) for s in (1e-6, -1e-6)
    ]
    weights = random.standard_normal(ends[0].shape)
    found = Function(function, target=target).vjp(*given)[1](weights)
    slope = sum(float((g * d).sum()) for g, d in zip(found, along, strict=True))
    np.testing.assert_allclose(slope, ((ends[0] - ends[1]) * weights).sum() / 2e-6, rtol=1e-6)


def test_products_that_scale_others_along_their_columns():
    """What comes out of a sum is no factor of its product."""

    def function(a, b, c):
        v = (np.dot(b, c) * b) @ a
        return v[None] + v

    a, b, c = (
        filled(shape, "float64", k, -2, 3) for k, shape in enumerate([(3, 3), (3, 3), (3, 3, 1)])
    )
    found = Function(function, target="interpret")(a, b, c)
    np.testing.assert_array_equal(found, function(a, b, c))
