"""Parameters of kernels, and the object that `T.prim_func` returns."""

from __future__ import annotations

import pytest

import tile_api.language as T
from tile_api.frontend.builder import KernelWarning
from tile_core.errors import FrontendError, FrontendTypeError, ShapeMismatch, SignatureError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var


def test_every_kind_of_parameter():
    m, n = T.dynamic("m, n")

    @T.prim_func
    def f(
        A: T.Tensor((m, n), "float16"),
        B: T.Tensor[(4,)],
        C: T.Tensor[[4, 5], T.int8],
        D: T.Tensor(8),
        E: T.StridedTensor((m, n), (n * 2, 1), "float32"),
        s: T.float32,
        flag: T.bool(),
        count: int,
        p: T.ptr,
        q: T.ptr("float32"),
        table: T.Tensor((4,), T.ptr),
    ):
        with T.Kernel(1) as bx:
            pass

    a, b, c, d, e, s, flag, count, p, q, table = f.params
    assert (a.name, a.dtype, a.shape[0] is m, a.strides) == ("A", "float16", True, None)
    assert (b.shape, b.dtype, c.shape, c.dtype, d.shape) == ((4,), "float32", (4, 5), "int8", (8,))
    assert e.strides[1] == 1
    assert [(v.name, v.dtype) for v in (s, flag, count, p, q)] == [
        ("s", "float32"),
        ("flag", "bool"),
        ("count", "int32"),
        ("p", "handle"),
        ("q", "handle"),
    ]
    assert table.dtype == "handle"
    assert all(isinstance(x, (Buffer, Var)) for x in f.params)


def test_callable_annotations_are_called():
    def annotation():
        return T.Tensor((3,), "int8")

    @T.prim_func
    def f(A: annotation):
        with T.Kernel(1) as bx:
            A[0] = 1

    assert f.params[0].shape == (3,)


def test_annotations_may_name_variables_of_surrounding_functions():
    """This file postpones annotations, so these names are in no closure."""

    def make(rows, columns):
        dtype = "float16"

        @T.prim_func
        def f(A: T.Tensor((rows, columns), dtype)):
            with T.Kernel(1) as bx:
                pass

        return f

    assert make(3, 4).params[0].shape == (3, 4)


@pytest.mark.parametrize(
    ("signature", "text"),
    [
        ("A", "parameter 'A' of the kernel 'f' has no annotation"),
        ("A: T.Tensor((4,)), /", "is positional-only"),
        ("*A: T.Tensor((4,))", "any number of arguments"),
        ("**A: T.Tensor((4,))", "any keyword arguments"),
        ("n: T.int32 = 3", "cannot have a default"),
        ("A: 3", "declares neither a tensor nor a scalar"),
        ("A: 'floaty'", "declares neither"),
        ("A: list", "declares neither"),
    ],
)
def test_refused_signatures(signature, text, kernel_from):
    with pytest.raises(SignatureError, match=text) as caught:
        kernel_from(f"""
            @T.prim_func
            def f({signature}):
                with T.Kernel(1) as bx:
                    pass
        """)
    assert caught.value.span.line == 3
    assert caught.value.span.col >= 6


@pytest.mark.parametrize(
    ("spec", "error", "text"),
    [
        ("T.StridedTensor((4, 4), (1,))", ShapeMismatch, "needs 2 strides, got 1"),
        ("T.Tensor((4.0,))", FrontendTypeError, "must be an integer"),
        ("T.Tensor((4,), 'flaot32')", FrontendTypeError, "not an element type"),
        ("T.Tensor((-1,))", ValueError, "negative"),
    ],
)
def test_refused_declarations(spec, error, text):
    with pytest.raises(error, match=text):
        eval(spec)


def test_the_result_object():
    def source(A: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            A[0] = 1

    f = T.prim_func(source)
    assert isinstance(f, T.PrimFunc)
    assert (f.name, f.__name__, f.orig_func, f.kernel.name) == (
        "source",
        "source",
        source,
        "source",
    )
    assert f.script().startswith("kernel source(A: global int32[4]):")
    assert f.attrs["global_symbol"] == "source"
    with pytest.raises(FrontendTypeError, match="cannot be changed"):
        f.name = "other"
    with pytest.raises(FrontendTypeError, match="is not compiled"):
        f(1)


def test_deprecated_names_warn():
    with pytest.warns(KernelWarning, match=r"T\.Buffer is deprecated"):
        assert T.Buffer((4,), "int8").dtype == "int8"
    with pytest.warns(KernelWarning, match=r"T\.symbolic is deprecated"):
        assert T.symbolic("m").name == "m"


def test_symbols():
    m = T.dynamic("m")
    a, b = T.dynamic("a b", "int64")
    assert (m.name, m.dtype, a.name, b.dtype) == ("m", "int32", "a", "int64")
    assert isinstance(m, T.Var)
    assert isinstance(T.Var("x", "float32"), T.Var)
    for bad in ("", "1x", "a-b"):
        with pytest.raises(ValueError, match="not a list of names"):
            T.dynamic(bad)
    with pytest.raises(FrontendTypeError, match="a dimension is an integer"):
        T.dynamic("m", "float32")


def test_functions_without_source_are_refused():
    scope = {"T": T}
    exec("def f(A):\n    pass\n", scope)
    with pytest.raises(FrontendError, match="source text of 'f' cannot be found"):
        T.prim_func(scope["f"])
    with pytest.raises(FrontendError, match="is not a plain Python function"):
        T.prim_func(3)
