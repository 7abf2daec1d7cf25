"""Every product of AMD's matrix cores, with operands placed lane by lane as AMD's tables have them.

The tables ("AMD matrix instruction calculator") are those of the instruction, ``D = A @ B`` with
a column of D in each lane. ``tile::mfma`` hands it the transposed factors, in the other order, so
that a lane has a row of D: here the tables are transposed in one place, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tile_core.errors import Deadlock, InternalError, OutOfBounds, TileError, UninitialisedRead
from tile_sim import checking
from tile_sim.sources import SourceKernel

CPP = {
    "float16": "half_t", "bfloat16": "bfloat16_t", "float32": "float", "float64": "double",
    "int8": "tile::i8", "int32": "int", "float8_e4m3fn": "tile::e4m3",
    "float8_e5m2": "tile::e5m2", "float8_e4m3fnuz": "tile::e4m3_fnuz",
    "float8_e5m2fnuz": "tile::e5m2_fnuz",
}  # fmt: skip
LANES = np.arange(64)


@dataclass(frozen=True)
class Form:
    """An instruction: ``edge`` rows and columns, ``k``, element types of A, B and D."""

    edge: int
    k: int
    a: str
    b: str
    d: str

    @property
    def name(self) -> str:
        return f"mfma_{self.edge}x{self.edge}x{self.k}"

    @property
    def held(self) -> int:
        """Elements of A, and of B, in a lane."""
        return self.k * self.edge // 64

    def factor(self, element: int) -> tuple[np.ndarray, np.ndarray]:
        """Return row (of A; column of B) and k of an element, for each lane."""
        return LANES % self.edge, LANES // self.edge * self.held + element

    def sum_of_instruction(self, register: int) -> tuple[np.ndarray, np.ndarray]:
        """Return row and column of D as the instruction has it, for each lane."""
        if self.d == "float64":
            return 4 * register + LANES // 16, LANES % 16
        if self.edge == 16:
            return 4 * (LANES // 16) + register, LANES % 16
        return 8 * (register // 4) + 4 * (LANES // 32) + register % 4, LANES % 32

    def sum(self, register: int) -> tuple[np.ndarray, np.ndarray]:
        """Return row and column of D for each lane: transposed."""
        column, row = self.sum_of_instruction(register)
        return row, column


HALVES = [
    Form(edge, k, t, t, "float32")
    for t in ("float16", "bfloat16")
    for edge, k in ((32, 8), (16, 16), (32, 16), (16, 32))
]
FLOATS = [Form(e, k, "float32", "float32", "float32") for e, k in ((32, 2), (16, 4))]
ROUNDED = [Form(e, k, "float32", "float32", "float32") for e, k in ((32, 4), (16, 8))]
DOUBLES = [Form(16, 4, "float64", "float64", "float64")]
INTEGERS = [
    Form(edge, k, "int8", "int8", "int32")
    for edge, k in ((32, 8), (16, 16), (32, 16), (16, 32), (32, 32), (16, 64))
]
BYTES = [
    Form(edge, k, a, b, "float32")
    for kinds in (("float8_e4m3fnuz", "float8_e5m2fnuz"), ("float8_e4m3fn", "float8_e5m2"))
    for a in kinds
    for b in kinds
    for edge, k in ((32, 16), (16, 32))
]
FORMS = [*HALVES, *FLOATS, *ROUNDED, *DOUBLES, *INTEGERS, *BYTES]


def _source(form: Form, pack: int, body: str = "") -> str:
    held, sums = pack * form.held, form.edge**2 // 64
    loads = "".join(
        f"""
  tile::frag<{CPP[t]}, {n}> {x};
  for (int i = 0; i < {n}; ++i) {{
    {x}[i] = {x.upper()}[tid * {n} + i];  // load {x}
  }}"""
        for x, t, n in (("a", form.a, held), ("b", form.b, held), ("d", form.d, sums))
    )
    call = body or f"tile::{form.name}<{pack}>(d, a + 0, b + 0);"
    return f"""#include "tile.h"
TILE_KERNEL(64, 1) void product(tile::gptr<const {CPP[form.a]}> A,
                                tile::gptr<const {CPP[form.b]}> B, tile::gptr<{CPP[form.d]}> D) {{
  const int tid = threadIdx.x;{loads}
  {call}
  for (int i = 0; i < {sums}; ++i) {{
    D[tid * {sums} + i] = d[i];
  }}
}}
TILE_EXPORT(product)
"""


def _numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(np.dtype(dtype))


def _dealt(form: Form, pack: int, left: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the lanes hold of factors whose k are ``pack * form.k``.

    Element ``p * held + e`` of a lane of group g has k = pack * held * g + p * held + e.
    """
    a, b = (np.zeros((64, pack * form.held), x.dtype) for x in (left, right))
    for e in range(pack * form.held):
        row = LANES % form.edge
        k = pack * form.held * (LANES // form.edge) + e
        a[:, e], b[:, e] = left[row, k], right[k, row]
    return {"A": a, "B": b}


PACKED = [HALVES[0], HALVES[1], *FLOATS, *DOUBLES, INTEGERS[1], BYTES[1]]


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("form", "pack"), [*((form, 1) for form in FORMS), *((form, 2) for form in PACKED)], ids=str
)
def test_a_product_adds_to_the_sums(form: Form, pack: int) -> None:
    rng = np.random.default_rng(3)
    left = _numbers(rng, (form.edge, pack * form.k), form.a)
    right = _numbers(rng, (pack * form.k, form.edge), form.b)
    sums = _numbers(rng, (form.edge, form.edge), form.d)
    wide = np.int64 if form.d == "int32" else np.float64
    expected = sums.astype(wide) + left.astype(wide) @ right.astype(wide)

    count = form.edge**2 // 64
    arguments = _dealt(form, pack, left, right)
    arguments["D"] = np.stack([sums[form.sum(r)] for r in range(count)], axis=1)
    SourceKernel(_source(form, pack), "product", block=64, warp_size=64)(1, **arguments)
    got = np.stack([expected[form.sum(r)] for r in range(count)], axis=1)
    np.testing.assert_array_equal(arguments["D"].astype(wide), got)


SPREAD = [HALVES[0], HALVES[1], FLOATS[0], *DOUBLES, INTEGERS[0], BYTES[0]]


@pytest.mark.parametrize("form", SPREAD, ids=str)
def test_registers_between_which_lie_those_of_other_products(form: Form) -> None:
    """Two products at once: each has every other register of the sums and of the second factor."""
    rng, pack, count = np.random.default_rng(5), 2, form.edge**2 // 64
    left = _numbers(rng, (form.edge, pack * form.k), form.a)
    rights = [_numbers(rng, (pack * form.k, form.edge), form.b) for _ in range(2)]
    held = pack * form.held
    factors = [_dealt(form, pack, left, right) for right in rights]
    arguments = {
        "A": factors[0]["A"],
        "B": np.stack([f["B"] for f in factors], axis=2).reshape(64, 2 * held),
        "D": np.full((64, 2 * count), 3).astype(form.d),
    }
    types = [CPP[t] for t in (form.a, form.b, form.d)]
    loads = "".join(
        f"  tile::frag<{t}, {n}> {x};\n"
        f"  for (int i = 0; i < {n}; ++i) {{ {x}[i] = {x.upper()}[tid * {n} + i]; }}\n"
        for x, t, n in zip("abd", types, (held, 2 * held, 2 * count), strict=True)
    )
    calls = "".join(f"  tile::{form.name}<2, 2, 1, 2>(d + {i}, a, b + {i});\n" for i in range(2))
    a, b, d = types
    text = f"""#include "tile.h"
TILE_KERNEL(64, 1) void both(tile::gptr<const {a}> A, tile::gptr<const {b}> B, tile::gptr<{d}> D) {{
  const int tid = threadIdx.x;
{loads}{calls}  for (int i = 0; i < {2 * count}; ++i) {{ D[tid * {2 * count} + i] = d[i]; }}
}}
TILE_EXPORT(both)
"""
    with checking("all"):
        SourceKernel(text, "both", block=64, warp_size=64)(1, **arguments)
    for i, right in enumerate(rights):
        expected = 3 + left.astype(np.float64) @ right.astype(np.float64)
        got = arguments["D"].reshape(64, count, 2)[:, :, i].astype(np.float64)
        wanted = np.stack([expected[form.sum(r)] for r in range(count)], axis=1)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("register", "is_read"), [(14, True), (15, False)])
def test_only_registers_of_the_product_must_be_written(register: int, is_read: bool) -> None:
    body = "tile::mfma_32x32x8<2, 1, 1, 2>(d, a + 0, b + 0);"
    text = _source(HALVES[0], 4, body).replace("b[i] =", f"if (i != {register}) b[i] =")
    arguments = {name: np.ones((64, 16), np.float16) for name in "AB"}
    arguments["D"] = np.zeros((64, 16), np.float32)
    kernel = SourceKernel(text, "product", block=64, warp_size=64)
    if not is_read:
        kernel(1, **arguments)
        return
    with pytest.raises(UninitialisedRead, match=f"register {register} of"):
        kernel(1, **arguments)


def test_registers_of_products_end_with_the_array() -> None:
    text = _source(HALVES[0], 2, "tile::mfma_32x32x8<2, 1, 1, 3>(d, a + 0, b + 0);")
    arguments = {"A": np.ones((64, 8), np.float16), "B": np.ones((64, 8), np.float16)}
    with pytest.raises(OutOfBounds):
        SourceKernel(text, "product", block=64, warp_size=64)(
            1, **arguments, D=np.zeros((64, 16), np.float32)
        )


def test_the_tables_hold_every_element_once() -> None:
    for form in FORMS:
        count = form.edge**2 // 64
        places = {(int(i), int(j)) for r in range(count) for i, j in zip(*form.sum(r), strict=True)}
        assert len(places) == form.edge**2
        factors = {
            (int(i), int(k)) for e in range(form.held) for i, k in zip(*form.factor(e), strict=True)
        }
        assert len(factors) == form.edge * form.k


def _one(form: Form, value: float, dtype: str) -> dict[str, np.ndarray]:
    """Return operands with `value` at A[0, 0] and one at B[0, 0]."""
    a, b = (np.zeros((64, form.held), dtype) for _ in range(2))
    a[0, 0], b[0, 0] = value, 1
    return {"A": a, "B": b, "D": np.zeros((64, form.edge**2 // 64), np.float32)}


@pytest.mark.parametrize("form", ROUNDED, ids=str)
def test_xf32_is_rounded_to_nearest_even(form: Form) -> None:
    step = 2.0**-10
    for units, rounded in ((0.5, 0), (1.5, 2), (0.6, 1)):
        arguments = _one(form, 1 + step * units, "float32")
        SourceKernel(_source(form, 1), "product", block=64, warp_size=64)(1, **arguments)
        assert arguments["D"][0, 0] == np.float32(1 + step * rounded)


def test_float32_keeps_all_bits() -> None:
    form, value = FLOATS[0], 1 + 2.0**-23
    arguments = _one(form, value, "float32")
    SourceKernel(_source(form, 1), "product", block=64, warp_size=64)(1, **arguments)
    assert arguments["D"][0, 0] == np.float32(value)


def _zeros(form: Form) -> dict[str, np.ndarray]:
    held, sums = form.held, form.edge**2 // 64
    return {
        "A": np.zeros((64, held), form.a),
        "B": np.zeros((64, held), form.b),
        "D": np.zeros((64, sums), form.d),
    }


HALF = HALVES[0]


def _error(text: str, **options: int) -> TileError:
    kernel = SourceKernel(text, "product", **{"block": 64, "warp_size": 64, **options})
    with checking("all"), pytest.raises(TileError) as caught:
        kernel(1, **_zeros(HALF))
    return caught.value


@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:1"])
def test_lanes_that_leave_a_product_out(schedule: str) -> None:
    text = _source(HALF, 1, "if (tid < 60) { tile::mfma_32x32x8<1>(d, a + 0, b + 0); }")
    with checking("all", schedule=schedule):
        error = _error(text)
    assert isinstance(error, Deadlock)
    assert "mfma" in str(error)
    assert error.span is not None
    assert "mfma" in text.splitlines()[error.span.line - 1]


def test_lanes_that_do_different_products() -> None:
    body = (
        "if (tid < 32) { tile::mfma_32x32x8<1>(d, a + 0, b + 0); }"
        " else { tile::mfma_16x16x16<1>(d, a + 0, b + 0); }"
    )
    assert "different products" in str(_error(_source(HALF, 1, body)))


def test_sums_that_nothing_has_cleared() -> None:
    text = _source(HALF, 1).replace("d[i] = D[tid * 16 + i];", "")
    error = _error(text)
    assert isinstance(error, UninitialisedRead)
    assert error.span is not None
    assert "mfma" in text.splitlines()[error.span.line - 1]
    assert "register 0 of d" in str(error)


def test_factors_that_are_not_all_there() -> None:
    text = _source(HALF, 1).replace("i < 4; ++i) {\n    b", "i < 3; ++i) {\n    b")
    error = _error(text)
    assert isinstance(error, UninitialisedRead)
    assert "register 3 of" in str(error)


def test_what_no_machine_has_is_refused() -> None:
    text = _source(HALF, 1, "tile::mfma_32x32x4<1>(d, a + 0, b + 0);")
    error = _error(text)
    assert isinstance(error, InternalError)
    assert "no mfma 32x32x4 of such element types" in str(error)


def test_waves_of_fewer_lanes_are_refused() -> None:
    text = _source(HALF, 1).replace("TILE_KERNEL(64", "TILE_KERNEL(32")
    assert "does not have 64 lanes" in str(_error(text, block=32))
    assert "does not have 64 lanes" in str(_error(text, block=32, warp_size=32))


def test_types_of_eight_bits_have_numbers_of_their_own() -> None:
    """Guards the reference: all types hold every number that the products use."""
    for name in ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3fn", "float8_e5m2"):
        dtype = getattr(ml_dtypes, name)
        np.testing.assert_array_equal(np.arange(-4, 5).astype(dtype).astype(int), np.arange(-4, 5))
