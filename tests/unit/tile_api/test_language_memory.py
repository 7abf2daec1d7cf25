"""Atomics, views, addresses and vector accesses."""

from __future__ import annotations

import pytest

import tile_api.language as T
from support.trace import computed, emitted
from tile_core.errors import (
    DtypeMismatch,
    FrontendTypeError,
    FrontendValueError,
    ScopeMismatch,
    UnsupportedForm,
    ViewMismatch,
)

ATOMIC = {
    "C": "float32[8, 8]",
    "N": "int32[8]",
    "H": "int8[8]",
    "S": "shared float32[4, 4]",
    "F": "fragment float32[4, 4]",
}


def atomics(function):
    """Return what an update of these buffers emits."""
    return emitted(function, **ATOMIC)


def test_scalar_updates():
    for name in ("add", "max", "min"):
        assert atomics(lambda C, **_: getattr(T, f"atomic_{name}")(C[1, 2], 3)) == [
            f'eval atomic_{name}(&rw C[1, 2], 3.0, "relaxed")'
        ]
    assert atomics(lambda N, S, **_: T.atomic_add(N[0], S[1, 1], memory_order="acq_rel")) == [
        'eval atomic_add(&rw N[0], cast[int32](S[1, 1]), "acq_rel")'
    ]
    assert atomics(lambda N, **_: T.atomic_or(N[0], 5)) == [
        'eval atomic_or(&rw N[0], 5, "relaxed")'
    ]


def test_previous_value_is_taken_once():
    def f(N, **_):
        previous = T.atomic_add(N[0], 1, return_prev=True)
        N[1] = previous + previous

    assert atomics(f) == [
        'let previous: int32 = atomic_add(&rw N[0], 1, "relaxed")',
        "N[1] = previous + previous",
    ]


def test_tile_updates():
    assert atomics(lambda C, F, **_: T.atomic_add(C[4, 0], F)) == [
        "@atomic(kind=ADD, src=F[0:4, 0:4], dst=C[4, 0])"
    ]
    assert atomics(lambda C, S, **_: T.atomic_max(C[0:4, 2:6], S, memory_order="release")) == [
        '@atomic(kind=MAX, src=S[0:4, 0:4], dst=C[0:4, 2:4], memory_order="release")'
    ]
    assert atomics(lambda C, S, **_: T.atomic_add(C[0, 0], S, use_tma=True))[0].endswith(
        "use_bulk=true)"
    )


def test_vector_updates():
    assert atomics(lambda C, S, **_: T.atomic_addx2(C[0, 4], S[1, 2])) == [
        'eval atomic_add(&rw C[0, 4], S[1, 2], "relaxed")',
        'eval atomic_add(&rw C[0, 5], S[1, 3], "relaxed")',
    ]
    assert len(atomics(lambda C, S, **_: T.atomic_addx4(C[0, 4], S[1, 0]))) == 4
    pair = atomics(lambda C, **_: T.atomic_addx2(C[0, 0], T.float32x2(1, 2)))
    assert pair[1] == 'eval atomic_add(&rw C[0, 1], 2.0, "relaxed")'


def test_atomic_load_and_store():
    assert atomics(lambda N, **_: T.atomic_load(N[2], "acquire")) == [
        'let loaded: int32 = atomic_load(&r N[2], "acquire")'
    ]
    assert atomics(lambda N, **_: T.atomic_store(N[2], 7)) == [
        'eval atomic_store(&w N[2], 7, "seq_cst")'
    ]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda C, **_: T.atomic_add(C[0, 0], 1, "strong"), FrontendValueError, "order 'strong'"),
        (lambda C, **_: T.atomic_load(C[0, 0], "release"), FrontendValueError, "order 'release'"),
        (lambda C, **_: T.atomic_store(C[0, 0], 1, "acquire"), FrontendValueError, "'acquire'"),
        (
            lambda C, F, **_: T.atomic_add(C[0, 0], F, return_prev=True),
            UnsupportedForm,
            "cannot return the previous values of a whole tile",
        ),
        (lambda C, **_: T.atomic_or(C, 1), FrontendTypeError, "needs one element as destination"),
        (lambda F, **_: T.atomic_add(F[0, 0], 1), ScopeMismatch, "'F' is in local.fragment"),
        (lambda H, **_: T.atomic_add(H[0], 1), DtypeMismatch, "no atomic add on int8"),
        (lambda C, **_: T.atomic_or(C[0, 0], 1), DtypeMismatch, "no atomic or on float32"),
        (lambda C, **_: T.atomic_addx2(C[0, 0], 1), FrontendTypeError, "first of 2 elements"),
        (lambda C, **_: T.atomic_add(1, 2), FrontendTypeError, "must be an element such as"),
    ],
)
def test_atomics_refuse(call, error, message):
    with pytest.raises(error, match=message):
        atomics(call)


def test_a_buffer_of_one_element_stands_for_it():
    assert emitted(lambda A: T.atomic_add(A, 1), A="int32[1]") == [
        'eval atomic_add(&rw A[0], 1, "relaxed")'
    ]


# Views --------------------------------------------------------------------------------------


def test_views_and_reshapes():
    def f(S):
        T.clear(T.reshape(S, (2, 8)))
        T.clear(T.reshape(S, [4, -1]))
        T.clear(T.view(S, dtype="float16"))
        T.clear(T.view(S, (16,), T.int32))

    assert emitted(f, S="shared float32[4, 4]") == [
        "view S_view: shared float32[2, 8] of S",
        "@fill(dst=S_view[0:2, 0:8], value=0.0)",
        "view S_view_1: shared float32[4, 4] of S",
        "@fill(dst=S_view_1[0:4, 0:4], value=0.0)",
        "view S_view_2: shared float16[4, 8] of S",
        "@fill(dst=S_view_2[0:4, 0:8], value=float16(0.0))",
        "view S_view_3: shared int32[16] of S",
        "@fill(dst=S_view_3[0:16], value=0)",
    ]


def test_symbolic_extents_cancel():
    m, n = T.dynamic("m, n")

    @T.prim_func
    def f(A: T.Tensor((m, 2 * n), "float32")):
        with T.Kernel(1):
            B = T.reshape(A, (m * n, 2))
            B[0, 0] = 1

    assert "view B: global float32[m * n, 2] of A" in f.script()

    @T.prim_func
    def h(A: T.Tensor((m - 2, 5, n + 1), "float32")):
        with T.Kernel(1):
            B = T.reshape(A, (5 * m * n + 5 * m - 10 * (n + 1),))
            B[0] = 1

    assert "of A" in h.script()
    with pytest.raises(ViewMismatch, match="the sizes in bits differ"):

        @T.prim_func
        def g(A: T.Tensor((m, n), "float32")):
            with T.Kernel(1):
                B = T.reshape(A, (m * m,))
                B[0] = 1

    with pytest.raises(ViewMismatch, match="the sizes in bits differ"):

        @T.prim_func
        def k(A: T.Tensor((m - 2, 5), "float32")):
            with T.Kernel(1):
                B = T.reshape(A, (5 * m - 2,))
                B[0] = 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda S: T.reshape(S, (3, 5)), ViewMismatch, r"float32\[4, 4\], as float32\[3, 5\]"),
        (lambda S: T.view(S, (4, 4), "float16"), ViewMismatch, "the sizes in bits differ"),
        (lambda S: T.reshape(S, (-1, -1)), FrontendValueError, "-1 may stand for one extent"),
        (lambda S: T.view(S, dtype="float17"), FrontendTypeError, "float17"),
        (lambda S: T.view(S, (16,), strides=(2,)), FrontendValueError, "not those of row-major"),
        (lambda S: T.reshape(3, (1,)), FrontendTypeError, r"the operand of T\.reshape"),
    ],
)
def test_views_refuse(call, error, message):
    with pytest.raises(error, match=message):
        emitted(call, S="shared float32[4, 4]")


def test_tensors_at_addresses():
    @T.prim_func
    def f(p: T.ptr("float32"), table: T.Tensor((4,), T.ptr), n: T.int32):
        with T.Kernel(1):
            A = T.make_tensor(p, (n, 4), "float32")
            A[0, 0] = 1
            B = T.make_tensor(table[1], (n,), "float16", strides=(2,))
            B[0] = 2
            C = T.make_tensor_from_addr(T.cast(n, "int64"), (8,), "int8")
            C[0] = 3
            D = T.match_buffer(p, (n,), "float32")
            D[0] = 4

    lines = [line.strip() for line in f.script().splitlines() if "view" in line]
    assert lines == [
        "view A: global float32[n, 4] at p",
        "view B: global float16[n] strides [2] at table[1]",
        "view C: global int8[8] at bitcast[handle](cast[int64](n))",
        "view D: global float32[n] at p",
    ]


def test_a_tensor_needs_an_address():
    with pytest.raises(FrontendTypeError, match="needs an address"):
        emitted(lambda x: T.make_tensor(x, (4,), "float32"), x="float32")


def test_addresses():
    operands = {"A": "float32[4, 8]", "n": "int32"}

    def text(build):
        lines = emitted(
            lambda A, n: T.evaluate(T.call_extern("handle", "f", build(A, n))), **operands
        )
        return lines[0].removeprefix("eval extern[handle] f(").removesuffix(")")

    assert text(lambda A, n: T.access_ptr(A, "w")) == "&w A[0, 0]"
    assert text(lambda A, n: T.access_ptr(A[1, n], "rw", 4)) == "&rw A[1, n]"
    assert text(lambda A, n: T.access_ptr(A[1:3, 2:4])) == "&r A[1, 2]"
    assert text(lambda A, n: T.access_ptr(A, 3, offset=10)) == "&rw A[1, 2]"
    assert text(lambda A, n: T.access_ptr(A[1, 0], "r", offset=n)) == "&r A[1, n]"
    assert text(lambda A, n: T.address_of(A[1, 2])) == "&rw A[1, 2]"
    assert text(lambda A, n: A.access_ptr("r")) == "&r A[0, 0]"
    raw = text(lambda A, n: T.tvm_access_ptr(T.type_annotation("float32"), A.data, n, 4, 1))
    assert raw == "&r A[n // 8, n % 8]"
    with pytest.raises(FrontendValueError, match="access 'x' is not known"):
        text(lambda A, n: T.access_ptr(A, "x"))
    with pytest.raises(FrontendTypeError, match="its address is needed"):
        text(lambda A, n: T.address_of(n))


def test_coordinates_of_an_expression():
    assert computed(lambda n: T.index_to_coordinates(n, (4, 6))[0], "int32", n="int32") == "n // 6"
    assert computed(lambda n: T.index_to_coordinates(n, (4, 6))[1], "int32", n="int32") == "n % 6"


# Vector accesses ----------------------------------------------------------------------------


def test_vector_loads_and_stores():
    operands = {"G": "float16[64]", "S": "shared uint32[16]"}
    lines = emitted(lambda G, S: T.sts128(S[4], T.ldg128(G[8])), **operands)
    assert lines == ["S[ramp(4, 1, 4)] = bitcast[uint32x4](G[ramp(8, 1, 8)])"]
    lines = emitted(lambda G, S: T.stg32(G[0], T.lds32(S[1]), pred=S[0] != 0), **operands)
    assert lines == ["if S[0] != uint32(0):", "  G[ramp(0, 1, 2)] = bitcast[float16x2](S[1])"]
    lines = emitted(lambda G, S: T.sts32(S[0], T.ldg32(G[0], S[0] != 0)), **operands)
    assert "? bitcast[uint32](G[ramp(0, 1, 2)]) : uint32(0)" in lines[0]
    assert computed(lambda G: T.__dict__["__ldg"](G[3]), "float16", G="float16[8]") == "G[3]"


def test_copying_through_words_needs_no_reinterpretation():
    lines = emitted(lambda G: T.stg64(G[4], T.ldg64(G[0])), G="float16[64]")
    assert lines == ["G[ramp(4, 1, 4)] = G[ramp(0, 1, 4)]"]


def test_vector_accesses_refuse():
    operands = {"G": "float16[64]", "S": "shared uint32[16]"}
    with pytest.raises(ScopeMismatch, match=r"T\.ldg128 accesses global memory, but 'S'"):
        emitted(lambda G, S: T.ldg128(S[0]), **operands)
    with pytest.raises(DtypeMismatch, match=r"T\.stg64 stores 64 bits, got 32"):
        emitted(lambda G, S: T.stg64(G[0], S[0]), **operands)
