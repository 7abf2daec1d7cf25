"""Masks behind products, and the conditions of whole tiles that leave them out."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tile_core.arith.evaluate import evaluate
from tile_core.ir.build_expr import binary, select, unary
from tile_core.ir.expr import BinaryOp, Const, Expr, UnaryOp, Var
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import If, Kernel
from tile_core.ops.gemm import Gemm
from tile_core.passes.mask_gemms import mask_gemms, tile_predicate
from tile_core.testing import build_ir as ir

INFINITY = float("inf")


def causal(hidden: float = -INFINITY, between: Any = None, *, late: bool = False) -> Kernel:
    """Return sums of products for 8 rows and 16 columns of each round, masked below."""
    a, b = ir.tensor("A", (64, 4)), ir.tensor("B", (64, 4))
    out = ir.tensor("C", (8, 16))
    s = ir.fragment("s", (8, 16))

    def mask(bx: Var, k: Var) -> Any:
        def element(i: Var, j: Var) -> Any:
            cond = binary(BinaryOp.GE, bx * 8 + i, k * 16 + j)
            shown = ir.load(s, i, j) if late else 0.0
            return ir.store(s, (i, j), select(cond, shown, ir.value(hidden, "float32")))

        return ir.parallel((8, 16), element)

    def body(bx: Var) -> Any:
        def one(k: Var) -> Any:
            rows = ir.region(a, (bx * 8, 0), (8, 4))
            columns = ir.region(b, (k * 16, 0), (16, 4))
            product = ir.gemm(rows, columns, s, transpose_b=True, clear=late)
            parts = (
                [product, mask(bx, k)] if late else [mask(bx, k), between and between(s), product]
            )
            return [*(p for p in parts if p is not None), ir.copy(s, out)]

        return [*ir.alloc(s), ir.serial(4, one)]

    return ir.kernel([a, b, out], 8, body)


def masked(kernel: Kernel) -> Kernel:
    return mask_gemms(kernel, lambda op: True)


def test_a_mask_goes_behind_its_product_and_under_a_condition() -> None:
    done = masked(causal())
    text = print_kernel(done)
    (branch,) = [n for n in walk(done) if isinstance(n, If)]
    (product,) = [n for n in walk(done) if isinstance(n, Gemm)]
    assert text.index("@gemm") < text.index("if bx * 8 < s_1 * 16 + 15")
    assert isinstance(product.clear, Const)
    assert product.clear.value is True
    assert branch.otherwise is None


def test_a_mask_behind_its_product_is_skipped_where_it_hides_nothing() -> None:
    done = masked(causal(late=True))
    (branch,) = [n for n in walk(done) if isinstance(n, If)]
    assert "bx * 8 < s_1 * 16 + 15" in print_kernel(done)
    assert branch.otherwise is None


@pytest.mark.parametrize(
    "kernel",
    [
        causal(hidden=-1e4),  # the order of these additions can be seen
        causal(between=lambda s: ir.copy(s, ir.fragment("other", (8, 16)))),
    ],
)
def test_other_masks_stay_where_they_are(kernel: Kernel) -> None:
    assert masked(kernel) is kernel


def test_nothing_is_done_for_products_that_threads_make_themselves() -> None:
    kernel = causal()
    assert mask_gemms(kernel, lambda op: False) is kernel


I, J, N, K = Var("i", ir.INT32), Var("j", ir.INT32), Var("n", ir.INT32), Var("k", ir.INT32)
BOX = {I: 3, J: 4}


def conditions() -> dict[str, Expr]:
    before = binary(BinaryOp.LT, K * 4 + J, N)
    below = binary(BinaryOp.GE, K + I, J * 2 - N)
    return {
        "before": before,
        "below": below,
        "both": binary(BinaryOp.AND, before, below),
        "either": binary(BinaryOp.OR, before, below),
        "neither": unary(UnaryOp.NOT, binary(BinaryOp.OR, before, below)),
        "backwards": binary(BinaryOp.GT, N - I, K - J),
        "equal": binary(BinaryOp.EQ, K + I, N),
        "not linear": binary(BinaryOp.LT, I * J, N),
        "of none": binary(BinaryOp.LE, K, N),
    }


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("name", conditions())
def test_a_tile_has_an_element_if_its_condition_says_so(name: str, negated: bool) -> None:
    """It never misses one; of one comparison of linear numbers it is right both ways."""
    cond = conditions()[name]
    found = tile_predicate(cond, BOX, negated=negated)
    assert not {I, J} & set(walk(found))
    exact = name in {"before", "below", "backwards", "of none"}
    for n, k in itertools.product(range(-9, 10, 3), range(-4, 5)):
        some = any(
            bool(evaluate(cond, {N: n, K: k, I: i, J: j})) is not negated
            for i, j in itertools.product(range(3), range(4))
        )
        said = bool(evaluate(found, {N: n, K: k}))
        assert said or not some
        assert said == some or not exact


def test_what_threads_may_not_share_is_taken_to_be_true() -> None:
    limits = ir.tensor("limits", (8,), "int32")
    cond = binary(BinaryOp.LT, K * 4 + J, ir.load(limits, K))
    assert isinstance(tile_predicate(cond, BOX), Const)
