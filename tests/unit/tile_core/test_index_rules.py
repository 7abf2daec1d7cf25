"""Each rule of the rewriter of indices: its equation, and what it makes of forms, exhaustively."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from tile_core.arith.affine import Linear
from tile_core.arith.expander import write
from tile_core.arith.index_rules import (
    EXTREMES,
    QUOTIENTS,
    REMAINDERS,
    SUMS,
    UNIONS,
    XORS,
    Rule,
)
from tile_core.arith.simplify import Ranges, Simplifier
from tile_core.ir.expr import BinaryOp
from tile_core.ir.operations import BINARY
from tile_core.layout.formulas import INT64, OPERATORS, as_index, evaluate, inputs
from tile_core.layout.index_tables import box_coords

DIVISORS = (2, 3, 4, 6, 8)
SUM_RULES = tuple(rule for table in SUMS.values() for rule in table)
EVERY = (*QUOTIENTS, *REMAINDERS, *SUM_RULES, *XORS, *UNIONS, *EXTREMES.values())


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.before)
def test_the_equation_holds_for_all_small_numbers(rule: Rule) -> None:
    texts = (rule.when, rule.before, rule.after)
    names = sorted(set(re.findall(r"\b[a-z]\b", " ".join(texts))))
    when, before, after = (eval(f"lambda {', '.join(names)}: {text}") for text in texts)
    domains = (range(-5, 6) if name in "xy" else range(1, 9) for name in names)
    held = 0
    for at in product(*domains):
        if when(*at):
            held += 1
            assert before(*at) == after(*at), dict(zip(names, at, strict=True))
    assert held


I, J, K = inputs(3)
EXTENTS = (8, 12, 4)
"""Values of the coordinates; the last one is 0, 4, 8 or 12."""
AT = [x * y for x, y in zip(box_coords(EXTENTS), (1, 1, 4), strict=True)]


def forms(simplifier: Simplifier) -> list[Linear]:
    """Return sums of digits, with bits that do and do not overlap, in one set of atoms."""
    wide = I * 12 + J
    parts = [
        I, J, K, wide, I * 4 + J * 2, I - J, I // 2, J % 4, wide % 6, wide // 3, I ^ J, (I * 2) ^ J,
        (I ^ J) // 2, wide // 2 * 2, K + J % 4, K // 4, as_index(3), as_index(8),
    ]  # fmt: skip
    sides = [a + b * k for a in parts[:12] for b in parts for k in (-1, 1, 2, 3, 4, 8)]
    return [simplifier.form(expr) for expr in (*parts, *sides)]


def made() -> Simplifier:
    simplifier = Simplifier(Ranges({}), multiples={K: 4})
    for var, values in zip((I, J, K), AT, strict=True):
        simplifier.ranges.bind(var, 0, int(values.max()))
    return simplifier


SIMPLIFIER = made()
FORMS = forms(SIMPLIFIER)
RULES = SIMPLIFIER.rules
FEW = FORMS[:18] + FORMS[18::40]


def of(form: Linear) -> Any:
    """Return all values of a form."""
    return np.broadcast_to(np.asarray(evaluate(write(form, INT64), AT)), EXTENTS)


def fired(found: Linear | None, expected: Any) -> bool:
    if found is not None:
        np.testing.assert_array_equal(of(found), expected)
    return found is not None


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("rule", "op"),
    [(r, BinaryOp.FLOORDIV) for r in QUOTIENTS] + [(r, BinaryOp.FLOORMOD) for r in REMAINDERS],
    ids=lambda item: getattr(item, "before", None),
)
def test_divisions(rule: Rule, op: BinaryOp) -> None:
    """Rules see what is left once multiples of the divisor are taken out."""
    found = 0
    for form, c in product(FORMS, DIVISORS):
        rest = form.split(c)[1]
        found += fired(rule.apply(RULES, rest, c, INT64), BINARY[op](of(rest), c))
    assert found


def test_no_rule_says_more_about_what_stays_a_division() -> None:
    tables = {BinaryOp.FLOORDIV: QUOTIENTS, BinaryOp.FLOORMOD: REMAINDERS}
    stayed = 0
    for form, c in product(FEW, DIVISORS):
        for made in (RULES.quotient(form, c, INT64), RULES.remainder(form, c, INT64)):
            for atom, _ in made.terms:
                match atom.operands:
                    case (op, Linear() as x, int() as by) if op in tables:
                        stayed += 1
                        assert [r for r in tables[op] if r.apply(RULES, x, by, INT64)] == []
    assert stayed


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("rule", SUM_RULES, ids=lambda rule: rule.before)
def test_sums(rule: Rule) -> None:
    found = 0
    for form, b, m, k in product(FEW, DIVISORS, DIVISORS, (1, 2)):
        quotient = RULES.quotient(form, b, INT64)
        for high in (quotient, RULES.remainder(quotient.plus(1), m, INT64)):
            low = RULES.remainder(form, b, INT64)
            value = high.times(b * k) + low.times(k)
            for term in value.terms:
                if term[0].operands is not None and rule in SUMS.get(term[0].operands[0], ()):
                    found += fired(rule.apply(RULES, value, term, INT64), of(value))
    assert found


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("rule", "op"),
    [(r, BinaryOp.BITXOR) for r in XORS]
    + [(r, BinaryOp.BITOR) for r in UNIONS]
    + [(r, op) for op, r in EXTREMES.items()],
    ids=lambda item: getattr(item, "before", None),
)
def test_two_sums(rule: Rule, op: BinaryOp) -> None:
    found = 0
    for x, y in product(FEW, FEW):
        expected = OPERATORS[op](of(x), of(y))
        found += fired(rule.apply(RULES, x, y, INT64), expected)
    assert found
