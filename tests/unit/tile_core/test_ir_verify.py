"""The verifier: every invariant, broken once."""

import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import (
    ControlFlowError,
    FrontendTypeError,
    FrontendValueError,
    GemmShapeMismatch,
    IndexMismatch,
    ParallelBodyError,
    ShapeMismatch,
    TileError,
    VerifyError,
)
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Binary, BinaryOp, Call, Expr, Load, Select, Var
from tile_core.ir.parser import parse_kernel
from tile_core.ir.stmt import Alloc, For, Kernel, Let, Seq, Store
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS

INT32, FLOAT32 = dtype_of("int32"), dtype_of("float32")


def check(body: str, params: str = "A: global float32[8, 8]") -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    head = "  launch  in () threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):"
    verify(parse_kernel(f"kernel k({params}):\n{head}\n{lines}\n", OPERATORS, str))


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("A[0] = 1.0", IndexMismatch, "has 2 dimensions, indexed with 1"),
        ("A[0, 1.0] = 1.0", IndexMismatch, "an index must be an integer, got float32"),
        ("A[0, 0] = 1", VerifyError, "store of int32 into 'A' of float32"),
        ("alloc s: shared float32[4]\ns[4] = 1.0", IndexMismatch, "index 4 leaves dimension 0"),
        ("break", ControlFlowError, "`break` stands in no loop"),
        (
            "parallel i: int32 in (4):\n  break",
            ControlFlowError,
            "`break` stands in a data-parallel loop",
        ),
        (
            "parallel i: int32 in (4):\n  @fill(dst=A[0:8, 0:8], value=0.0)",
            ParallelBodyError,
            "contains the tile operator 'fill'",
        ),
        (
            "parallel i: int32 in (4):\n  pipelined k: int32 in range(0, 4) stages 2:\n    pass",
            ParallelBodyError,
            "contains a pipelined loop",
        ),
        (
            "alloc s: shared float32[4, 4]\n@fill(dst=s[0:5, 0:4], value=0.0)",
            IndexMismatch,
            "leaves dimension 0 of 's'",
        ),
        (
            "alloc s: shared float32[4, 4]\n@copy(src=A[0:8, 0:8], dst=s[0:4, 0:4])",
            ShapeMismatch,
            "the shapes do not match",
        ),
        (
            "alloc s: shared float32[8, 4]\nalloc c: local.fragment float32[8, 8]\n"
            "@gemm(a=A[0:8, 0:8], b=s[0:8, 0:4], c=c[0:8, 0:8], transpose_a=false, "
            "transpose_b=false, clear=false)",
            GemmShapeMismatch,
            "T.gemm N shape check failed: 4 against 8",
        ),
        ("threads 0 count 33:\n  pass", VerifyError, "threads 0 to 32 of 32"),
        ("threads 8 count 25:\n  pass", VerifyError, "threads 8 to 32 of 32"),
        ("threads 8 count 0:\n  pass", VerifyError, "threads 8 to 7 of 32"),
        ("@fill(dst=A[0:8], value=0.0)", IndexMismatch, "'A' needs 2 dimensions, got 1"),
    ],
)
def test_what_is_refused(body: str, error: type[TileError], message: str) -> None:
    with pytest.raises(error) as caught:
        check(body)
    assert message in str(caught.value)


def test_all_threads_and_some_of_them_are_ranges() -> None:
    check("threads 0 count 32:\n  threads 8 count 24:\n    pass")


def kernel_of(*stmts: object) -> Kernel:
    return Kernel("k", (), Seq(tuple(stmts)))  # type: ignore[arg-type]


def test_a_variable_must_be_bound() -> None:
    buffer = Buffer("s", (4,), FLOAT32, Scope.SHARED)
    stray = Var("stray", INT32)
    with pytest.raises(VerifyError, match="'stray' is used where it is not bound"):
        verify(kernel_of(Alloc(buffer), Store(buffer, (stray,), const(1.0))))


def test_a_variable_is_bound_once_and_not_visible_outside_its_loop() -> None:
    i = Var("i", INT32)
    with pytest.raises(VerifyError, match="'i' is bound twice"):
        verify(kernel_of(Let(i, const(1)), Let(i, const(2))))
    loop = For(i, const(0), const(4), const(1), Seq(()))
    with pytest.raises(VerifyError, match="'i' is used where it is not bound"):
        verify(kernel_of(loop, Let(Var("j", INT32), i)))


def test_a_statement_object_occurs_once() -> None:
    let = Let(Var("i", INT32), const(1))
    with pytest.raises(VerifyError, match="occurs twice"):
        verify(kernel_of(let, let))


def test_a_buffer_is_allocated_before_its_use() -> None:
    buffer = Buffer("s", (4,), FLOAT32, Scope.SHARED)
    with pytest.raises(VerifyError, match="used before it is allocated"):
        verify(kernel_of(Let(Var("x", FLOAT32), Load(buffer, (const(0),)))))


def test_a_view_has_no_gaps() -> None:
    every_other = Buffer("s", (4,), FLOAT32, Scope.SHARED, strides=(2,))
    view = Buffer("v", (2, 2), FLOAT32, Scope.SHARED, origin=every_other)
    load = Let(Var("x", FLOAT32), Load(view, (const(0), const(0))))
    with pytest.raises(VerifyError, match="'v' is a view of gaps in 's'"):
        verify(kernel_of(Alloc(every_other), load))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (Binary(BinaryOp.ADD, const(1), const(1.0), FLOAT32), VerifyError, "of int32 and float32"),
        (Binary(BinaryOp.LT, const(1.0), const(2.0), FLOAT32), VerifyError, "gives float32"),
        (Select(const(1), const(1.0), const(2.0)), VerifyError, "select on int32 between"),
        (Select(const(True), const(1.0), const(2)), VerifyError, "float32 and int32"),
        (Call("nonsense", (), FLOAT32), FrontendTypeError, "there is no intrinsic 'nonsense'"),
        (const(1), VerifyError, "'x' is float32, not int32"),
    ],
)
def test_types_of_expressions(value: Expr, error: type[TileError], message: str) -> None:
    with pytest.raises(error, match=message):
        verify(kernel_of(Let(Var("x", FLOAT32), value)))


def test_a_loop_has_a_step() -> None:
    loop = For(Var("i", INT32), const(0), const(4), const(0), Seq(()))
    with pytest.raises(FrontendValueError, match="step must not be zero"):
        verify(kernel_of(loop))
