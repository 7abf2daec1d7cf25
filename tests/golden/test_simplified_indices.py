"""What becomes of indices: each as the simplifier writes it, and which conditions are proved.

That values stay is asked by `test_simplify_indices.py` and `test_index_rules.py`; here, that
nothing is simplified less than it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.simplify import Ranges, Simplifier
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import binary, maximum, minimum
from tile_core.ir.expr import BinaryOp, Expr, Var
from tile_core.ir.printer import print_expr_text

Golden = Callable[..., None]

I, J, K, N = (Var(name, dtype_of("int32")) for name in "ijkn")
LARGEST = {I: 7, J: 11, K: 12}
"""Of K, multiples of 4."""
WIDE = I * 12 + J
PARTS: list[Expr] = [
    I, J, K, WIDE, I * 4 + J * 2, I - J, I // 2, J % 4, WIDE % 6, WIDE // 3, I ^ J, (I * 2) ^ J,
    (I ^ J) // 2, WIDE // 2 * 2, K + J % 4, K // 4, I * 8 + J % 8, K * 3 + I % 4 - 2,
]  # fmt: skip
DIVISORS = (1, 2, 3, 4, 6, 8, 12, 96)
COMPARISONS = (BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE)


def simplifier() -> Simplifier:
    made = Simplifier(Ranges({}), multiples={K: 4})
    for var, largest in LARGEST.items():
        made.ranges.bind(var, 0, largest)
    return made


def lines(exprs: Iterator[Expr]) -> str:
    """Return each expression with what becomes of it, if anything does."""
    made = simplifier()
    pairs = ((print_expr_text(expr), print_expr_text(made.expr(expr))) for expr in exprs)
    return "\n".join(f"{a}  ->  {b if a != b else 'itself'}" for a, b in pairs)


def test_divisions(golden: Golden) -> None:
    golden(lines(e for x, c in product(PARTS, DIVISORS) for e in (x // c, x % c)))


def test_digits_put_together(golden: Golden) -> None:
    def made() -> Iterator[Expr]:
        for x, (a, b) in product(PARTS[:10], ((2, 3), (4, 2), (3, 4), (8, 8))):
            yield x // a * a + x % a
            yield x // (a * b) * b + x // a % b
            yield (x % (a * b)) // a * a + x % a + 5
            yield (x // a % b + 1) * a - a

    golden(lines(made()))


def test_two_parts(golden: Golden) -> None:
    def made() -> Iterator[Expr]:
        for x, y in product(PARTS[::2], PARTS[1::3]):
            yield from (x ^ y, x | y, minimum(x, y), maximum(x, y))
        for x, mask in product(PARTS, (1, 3, 4, 7, 12)):
            yield x & mask

    golden(lines(made()))


def test_comparisons(golden: Golden) -> None:
    """Of each number with all six relations."""
    made, found = simplifier(), []
    for x, c in product(PARTS, (-12, -1, 0, 7, 8, 11, 12, 96)):
        told = (print_expr_text(made.expr(binary(op, x, c))) for op in COMPARISONS)
        found.append(f"{print_expr_text(x)} and {c}  ->  {'; '.join(told)}")
    golden("\n".join(found))


def test_proofs(golden: Golden) -> None:
    """With `n` a positive multiple of 4, ``i < n`` and ``j <= i``."""
    base = ConstraintSet()
    facts = (I >= 0, J >= 0, N >= 1, binary(BinaryOp.EQ, N % 4, 0), I < N, J <= I)
    for fact in facts:
        base = base.assuming(fact)
    exprs = (I, J, I - J, N - I, N - J, N % 4, N // 4 * 4, I // 2, I + J, N * 2 - I - J, I * 4 + 3)
    asked = [
        binary(op, x, y)
        for x, y in product(exprs, (-1, 0, 1, 4, I, J, N, N - 1, N * 2, N * 4))
        for op in COMPARISONS
    ]
    golden("\n".join(print_expr_text(e) for e in asked if base.proves(e)))
