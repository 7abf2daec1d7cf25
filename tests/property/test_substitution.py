"""Substituting index variables means reading elements elsewhere, whatever is bound on the way."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_api.arrays.equations.equations import Equations, Output, Parameter
from tile_api.arrays.equations.evaluate import evaluated
from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    const,
    index,
    integer_part,
    load,
    make,
    multiply,
    rebuild,
    reduce,
    walk,
)  # fmt: skip
from tile_api.arrays.equations.recurrence import Recurrence, Steps
from tile_api.arrays.equations.substitution import substituted
from tile_core.dtypes import dtype_of

N = 3
NAMES = ("a", "b", "b'", "c")
WHOLE = dtype_of("int64")
TABLE = np.random.default_rng(0).integers(-4, 5, (N, N))
variables = st.sampled_from(NAMES).map(lambda name: index(name, N))
places = st.one_of(
    variables,
    st.integers(0, N - 1).map(const),
    st.tuples(variables, variables).map(lambda p: integer_part("mod", add(*p), const(N))),
)
loads = st.tuples(places, places).map(lambda at: load("table", at, WHOLE))


def summed(inner):
    return st.builds(lambda name, x: reduce("sum", name, N, x), st.sampled_from(NAMES), inner)


@st.composite
def carried(draw, inner):
    """A value carried from step to step, which binds two names."""
    step, element = draw(st.permutations(NAMES))[:2]
    start, added = draw(inner), draw(inner)
    within = sum(n.op == "scan" for n in walk(start, added))
    of = Recurrence(f"carry.{within}", step, N, (((element, N),),))  # as captures count them
    before = make("carry", draw(places), value=(of.token, 0), dtype=WHOLE)
    steps = Steps(of, (reduce("sum", step, N, start),), (add(before, added),))
    return steps.value(0, draw(places), (draw(places),), is_before=draw(st.booleans()))


def grown(inner):
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: add(*p)), pairs.map(lambda p: multiply(*p)), summed(inner),
        carried(inner),
    )  # fmt: skip


def elements(x: Expr) -> np.ndarray:
    """Return an expression at all values of the variables."""
    output = Output("out", (N,) * len(NAMES), WHOLE, tuple(index(n, N) for n in NAMES), x)
    parameter = Parameter("table", TABLE.shape, WHOLE)
    return evaluated(Equations("f", (parameter,), (output,), None), {"table": TABLE})[0]


@settings(max_examples=150)
@given(
    st.recursive(loads, grown, max_leaves=5),
    st.dictionaries(st.sampled_from(NAMES), places, min_size=1, max_size=3),
)
def test_a_variable_is_read_elsewhere(x: Expr, values: dict[str, Expr]) -> None:
    at = [elements(values.get(name, index(name, N))) for name in NAMES]
    np.testing.assert_array_equal(elements(substituted(x, values)), elements(x)[tuple(at)])


def test_work_grows_with_the_text_and_not_with_the_ways_through_it(monkeypatch) -> None:
    """Each of 40 levels stands twice in the next one: 2 ** 40 ways lead to the lowest."""
    element = load("table", (index("b", N), index("a", N)), WHOLE)
    x = load("table", (index("a", N), index("a", N)), WHOLE)
    for _ in range(40):
        body = multiply(x, element)
        x = add(reduce("sum", "b", N, body), reduce("max", "b", N, body))
    calls = []

    def counted(root, known):
        calls.append(root)
        assert len(calls) < 1000, "levels are substituted again and again"
        return rebuild(root, known)

    monkeypatch.setattr("tile_api.arrays.equations.substitution.rebuild", counted)
    found = substituted(x, {"a": index("c", N)})
    assert found.free == {"c"}


def test_a_sum_within_a_step_may_have_the_name_of_the_step() -> None:
    """``h[c] = h[step] + Σ_b table[a, b]``, where the steps are counted by another ``b``."""
    a, b = index("a", N), index("b", N)
    of = Recurrence("carry.0", "b", N, ((("c", N),),))
    before = make("carry", b, value=(of.token, 0), dtype=WHOLE)
    row = reduce("sum", "b", N, load("table", (a, b), WHOLE))
    steps = Steps(of, (load("table", (a, a), WHOLE),), (add(before, row),))
    first = steps.value(0, const(0), (const(0),), is_before=False)
    wanted = np.diag(TABLE) + TABLE.sum(axis=1)
    np.testing.assert_array_equal(elements(first)[:, 0, 0, 0], wanted)
