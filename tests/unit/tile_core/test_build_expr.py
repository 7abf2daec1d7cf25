"""Building scalar expressions: promotion, folding, refusals."""

import math

import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import ControlFlowError, DtypeMismatch, FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.expr import Binary, BinaryOp, Call, Cast, Const, Expr, Select, Var

INT32, INT64, FLOAT32 = dtype_of("int32"), dtype_of("int64"), dtype_of("float32")


def var(dtype: str = "int32", name: str = "x") -> Var:
    return Var(name, dtype_of(dtype))


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ("int32", "int64", "int64"),
        ("int32", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),
        ("uint8", "int32", "int32"),
        ("uint32", "int32", "int32"),
        ("float8_e4m3fn", "float8_e5m2", "float32"),
        ("bool", "int8", "int8"),
        ("float32", "float64", "float64"),
    ],
)
def test_operands_meet_in_the_wider_type(left: str, right: str, common: str) -> None:
    assert (var(left) + var(right)).dtype == common
    assert (var(right) + var(left)).dtype == common


def test_numbers_take_the_type_of_the_other_operand() -> None:
    assert (var("float16") * 2).dtype == "float16"
    assert (var("int64") + 1).dtype == "int64"
    assert (var("int32") * 0.5).dtype == "float32"
    assert (2.0 - var("bfloat16")).dtype == "bfloat16"


@pytest.mark.parametrize(
    ("op", "a", "b", "value"),
    [
        (BinaryOp.FLOORDIV, -7, 2, -4),
        (BinaryOp.FLOORMOD, -7, 2, 1),
        (BinaryOp.TRUNCDIV, -7, 2, -3),
        (BinaryOp.TRUNCMOD, -7, 2, -1),
        (BinaryOp.SHL, 3, 4, 48),
        (BinaryOp.SHR, -8, 1, -4),
        (BinaryOp.MIN, 3, 4, 3),
        (BinaryOp.BITXOR, 6, 3, 5),
    ],
)
def test_integer_constants_fold(op: BinaryOp, a: int, b: int, value: int) -> None:
    folded = build_expr.binary(op, build_expr.const(a), build_expr.const(b))
    assert isinstance(folded, Const)
    assert (folded.value, folded.dtype) == (value, "int32")


def test_a_fold_that_would_overflow_is_left_to_run_time() -> None:
    big = build_expr.binary(BinaryOp.MUL, build_expr.const(2**30), build_expr.const(4))
    assert isinstance(big, Binary)


def test_floats_do_not_fold_where_rounding_matters() -> None:
    assert isinstance(build_expr.const(0.1) + build_expr.const(0.2), Binary)
    assert isinstance(build_expr.maximum(build_expr.const(0.1), build_expr.const(0.2)), Const)


def test_neutral_elements_vanish_from_integers_only() -> None:
    x, y = var(), var("float32")
    assert x + 0 is x
    assert x * 1 is x
    assert x // 1 is x
    assert isinstance(x * 0, Const)
    assert isinstance(y + 0.0, Binary)  # -0.0 + 0.0 is +0.0


def test_division_by_a_constant_zero_is_refused() -> None:
    with pytest.raises(FrontendValueError, match="division by zero"):
        build_expr.const(1) // 0


def test_true_division_of_integers_is_refused_with_a_way_out() -> None:
    with pytest.raises(DtypeMismatch, match="true division") as caught:
        var() / var()
    assert caught.value.hint is not None
    assert "//" in caught.value.hint


def test_bits_of_floats_are_refused() -> None:
    with pytest.raises(DtypeMismatch, match="works on integers"):
        var("float32") & 1


def test_truth_of_a_run_time_value_is_refused() -> None:
    with pytest.raises(ControlFlowError, match="the truth of a run-time expression"):
        bool(var() > 0)


def test_logic_short_circuits_on_constants() -> None:
    x = var("bool")
    assert build_expr.binary(BinaryOp.AND, True, x) is x
    assert isinstance(build_expr.binary(BinaryOp.OR, x, True), Const)


def test_casts_of_constants_are_exact_or_deferred() -> None:
    assert isinstance(build_expr.cast(3, "float16"), Const)
    assert isinstance(build_expr.cast(build_expr.const(0.1), "float16"), Cast)
    assert isinstance(build_expr.cast(build_expr.const(300), "int8"), Cast)
    assert isinstance(build_expr.cast(build_expr.const(math.inf), "float32"), Const)


@pytest.mark.parametrize("narrow", ["float16", "bfloat16", "float8_e4m3fn", "float32"])
def test_a_widened_float_is_itself_in_its_own_type_again(narrow: str) -> None:
    wide = build_expr.cast(var(narrow), "float64")
    assert build_expr.cast(wide, narrow) is wide.value
    rounded = build_expr.cast(build_expr.cast(var("float64"), narrow), "float64")
    assert isinstance(rounded, Cast)


@pytest.mark.parametrize(
    ("one", "other"), [("float32", "bfloat16"), ("float16", "bfloat16"), ("int32", "float32")]
)
def test_conversions_that_round_stay(one: str, other: str) -> None:
    there = build_expr.cast(var(one), other)
    assert build_expr.cast(there, one) is not there.value


def test_select_promotes_both_sides() -> None:
    chosen = build_expr.select(var("bool"), 1.5, var("int32"))
    assert isinstance(chosen, Select)
    assert chosen.dtype == "float32"
    assert isinstance(build_expr.select(True, var(), 0), Var)


def test_intrinsics_convert_their_arguments() -> None:
    call = build_expr.call("exp2", var())
    assert isinstance(call, Call)
    assert (call.dtype, call.args[0].dtype) == ("float32", "float32")
    with pytest.raises(FrontendTypeError, match="takes 1 arguments, got 2"):
        build_expr.call("exp2", 1.0, 2.0)
    with pytest.raises(FrontendTypeError, match="no intrinsic"):
        build_expr.call("frobnicate", 1.0)


def test_arrays_are_not_scalars() -> None:
    with pytest.raises(FrontendTypeError, match="is not a scalar value"):
        build_expr.as_expr("text")


def test_comparison_builds_an_expression_and_identity_stays() -> None:
    x = var()
    assert isinstance(x == x, Expr)
    assert {x: 1}[x] == 1
