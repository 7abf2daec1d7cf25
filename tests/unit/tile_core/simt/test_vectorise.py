"""Loops over neighbours become vectors only where that cannot be told from the scalar loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.thread_machine import MACHINE, GivenLayouts, agree, calls, poisoned
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.evaluate import evaluate
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import whole
from tile_core.ir.build_expr import as_expr, call, select
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import Check, CheckKind, Evaluate, For, LoopKind, Stmt
from tile_core.ops.atomic import AtomicKind, AtomicTile
from tile_core.simt.lane_strides import Lanes, along, is_steady
from tile_core.testing.build_ir import (
    alloc,
    call_atomic,
    copy,
    kernel,
    let,
    load,
    local,
    parallel,
    seq,
    shared,
    store,
    tensor,
    variable,
    view,
    when,
)

INT = dtype_of("int32")


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-6, 7, shape).astype(dtype_of(dtype).numpy())


def vectorized(count: int, body: Callable[[Expr], Any], start: int = 0) -> For:
    var = Var("u", INT)
    return For(
        var, as_expr(start), as_expr(start + count), as_expr(1), seq(body(var)),
        LoopKind.VECTORIZED,
    )  # fmt: skip


def by_threads(params: list[Any], body: Callable[[Expr], Any], threads: int = 4) -> Any:
    return kernel(params, 1, lambda bx, x, y, z: body(x), threads=threads, thread_indices=True)


def check(params: list[Any], body: Callable[[Expr], Any], args: list[Any]) -> list[Any]:
    return calls(agree(by_threads(params, body), GivenLayouts(4, {}), args))


A, B, C = (tensor(name, (64,)) for name in "ABC")


def test_explicit_vector_loops() -> None:
    body = lambda x: vectorized(4, lambda u: store(B, x * 4 + u, load(A, x * 4 + u)))  # noqa: E731
    assert check([A, B], body, [numbers((64,)), poisoned((64,))]) == [("load", 4), ("store", 4)]


def test_loops_that_do_not_start_at_zero() -> None:
    body = lambda x: vectorized(  # noqa: E731
        4, lambda u: store(B, x * 8 + u, load(A, x * 8 + u)), start=4
    )
    assert check([A, B], body, [numbers((64,)), poisoned((64,))]) == [("load", 4), ("store", 4)]
    shifted = lambda x: vectorized(  # noqa: E731
        4, lambda u: store(B, x * 8 + u, load(A, x * 8 + u)), start=2
    )
    found = check([A, B], shifted, [numbers((64,)), poisoned((64,))])
    assert found == [("load", 2), ("store", 2)]


@pytest.mark.parametrize(
    ("name", "index", "expected"),
    [
        ("aligned", lambda x, u: x * 4 + u, 4),
        ("off by two", lambda x, u: x * 4 + u + 2, 2),
        ("off by one", lambda x, u: x * 4 + u + 1, 0),
        ("strided", lambda x, u: (x * 4 + u) * 2, 0),
        ("backwards", lambda x, u: x * 4 + 3 - u, 0),
        ("broadcast", lambda x, u: x, 0),
        ("through digits", lambda x, u: (x * 4 + u) // 8 * 8 + (x * 4 + u) % 8, 4),
        ("swizzled", lambda x, u: ((x * 4 + u) // 4 ^ x % 2) * 4 + (x * 4 + u) % 4, 4),
        ("carried", lambda x, u: (x * 4 + u) // 3, 0),
    ],
)
def test_what_moves_by_one_from_an_aligned_base(
    name: str, index: Callable[[Expr, Expr], Expr], expected: int
) -> None:
    body = lambda x: vectorized(  # noqa: E731
        4, lambda u: store(B, x * 4 + u, load(A, index(x, u)))
    )
    found = check([A, B], body, [numbers((64,)), poisoned((64,))])
    loads = [width for call_name, width in found if call_name == "load"]
    assert loads == ([expected] if expected else [])
    assert ("store", 4) in found


def test_two_lanes_that_share_an_element_share_a_load() -> None:
    body = lambda x: vectorized(  # noqa: E731
        8, lambda u: store(B, x * 8 + u, load(A, (x * 8 + u) // 2))
    )
    found = check([A, B], body, [numbers((64,)), poisoned((64,))])
    assert found == [("load", 4), ("store", 4)]


@pytest.mark.parametrize(
    "body",
    [
        lambda x: vectorized(4, lambda u: store(A, x * 4 + u + 1, load(A, x * 4 + u) + 1.0)),
        lambda x: vectorized(4, lambda u: store(A, x * 4, load(A, x * 4) + load(B, x * 4 + u))),
        lambda x: vectorized(4, lambda u: [
            store(A, x * 4 + u, 1.0), store(B, x * 4 + u, load(A, x * 4 + 3 - u))]),
    ],
)  # fmt: skip
def test_lanes_that_depend_on_each_other_stay_in_order(body: Callable[[Expr], Stmt]) -> None:
    one = lambda x: when(x.__eq__(1), body(x))  # noqa: E731
    assert check([A, B], one, [numbers((64,)), numbers((64,), seed=1)]) == []


def test_memory_is_read_again_after_it_was_written() -> None:
    body = lambda x: vectorized(4, lambda u: [  # noqa: E731
        store(A, x * 4 + u, load(B, x * 4 + u) * 2.0),
        store(C, x * 4 + u, load(A, x * 4 + u) + 1.0),
    ])  # fmt: skip
    found = check([A, B, C], body, [numbers((64,)), numbers((64,)), poisoned((64,))])
    assert found == [("load", 4), ("store", 4), ("load", 4), ("store", 4)]


def test_names_reach_over_such_a_cut() -> None:
    body = lambda x: vectorized(4, lambda u: let("t", load(B, x * 4 + u) * 2.0, lambda t: [  # noqa: E731
        store(A, x * 4 + u, t),
        store(C, x * 4 + u, load(A, x * 4 + u) + t),
    ]))  # fmt: skip
    found = check([A, B, C], body, [numbers((64,)), numbers((64,)), poisoned((64,))])
    assert found.count(("store", 4)) == 2


def test_names_that_are_read_twice_again_and_again_stay_names() -> None:
    def deeper(value: Expr, at: Expr, left: int) -> Stmt:
        if not left:
            return store(B, at, value)
        return let("t", value * value + value * 0.5, lambda t: deeper(t, at, left - 1))

    loop = lambda x: vectorized(4, lambda u: deeper(load(A, x * 4 + u), x * 4 + u, 20))  # noqa: E731
    unit = np.random.default_rng(0).random((64,)).astype("float32") * 0.5
    assert check([A, B], loop, [unit, poisoned((64,))]) == [("load", 4), ("store", 4)]


def test_values_are_read_before_the_same_elements_are_written() -> None:
    body = lambda x: vectorized(4, lambda u: [  # noqa: E731
        store(B, x * 4 + u, load(A, x * 4 + u)),
        store(A, x * 4 + u, load(C, x * 4 + u)),
    ])  # fmt: skip
    found = check([A, B, C], body, [numbers((64,)), poisoned((64,)), numbers((64,), seed=2)])
    assert sorted(found) == [("load", 4), ("load", 4), ("store", 4), ("store", 4)]


def test_registers_written_between_a_load_and_a_store() -> None:
    r = local("R", (4,))
    body = lambda x: seq(alloc(r), vectorized(4, lambda u: [  # noqa: E731
        store(r, u, load(A, x * 4 + u)),
        store(B, x * 4 + u, load(r, u)),
        store(r, u, load(r, u) * 2.0),
        store(C, x * 4 + u, load(r, u)),
    ]))  # fmt: skip
    found = check([A, B, C], body, [numbers((64,)), poisoned((64,)), poisoned((64,))])
    assert found == [("load", 4), ("store", 4), ("store", 4)]


def test_addresses_that_registers_decide() -> None:
    r, i = local("R", (4,), "int32"), tensor("I", (64,), "int32")
    body = lambda x: seq(alloc(r), vectorized(4, lambda u: [  # noqa: E731
        store(r, u, load(i, x * 4 + u)),
        store(B, x * 4 + u, load(A, load(r, u))),
    ]))  # fmt: skip
    order = np.random.default_rng(3).permutation(64).astype(np.int32)
    found = check([A, B, i], body, [numbers((64,)), poisoned((64,)), order])
    assert found == [("load", 4), ("store", 4)]


def test_a_row_that_memory_names_is_loaded_whole() -> None:
    rows, i = tensor("T", (16, 8)), tensor("I", (4,), "int32")
    body = lambda x: vectorized(8, lambda u: store(B, x * 8 + u, load(rows, load(i, x), u)))  # noqa: E731
    found = check(
        [rows, B, i], body, [numbers((16, 8)), poisoned((64,)), np.array([3, 9, 15, 0], np.int32)]
    )
    assert found == [("load", 4), ("store", 4)]


def test_private_scalars_keep_lanes_in_order() -> None:
    total = variable("total")
    body = lambda x: seq(alloc(total), store(total, 0, 0.0), vectorized(4, lambda u: [  # noqa: E731
        store(total, 0, load(total, 0) + load(A, x * 4 + u)),
        store(B, x * 4 + u, load(total, 0)),
    ]))  # fmt: skip
    found = check([A, B], body, [numbers((64,)), poisoned((64,))])
    assert found == [("load", 4), ("store", 4)]


def test_branches_that_all_lanes_take_together_and_others() -> None:
    steady = lambda x: vectorized(4, lambda u: when(  # noqa: E731
        x < 2, store(B, x * 4 + u, load(A, x * 4 + u)), store(B, x * 4 + u, 1.0)))  # fmt: skip
    found = check([A, B], steady, [numbers((64,)), poisoned((64,))])
    assert found == [("load", 4), ("store", 4), ("store", 4)]
    cut = lambda x: vectorized(4, lambda u: when(  # noqa: E731
        x * 4 + u < 10, store(B, x * 4 + u, load(A, x * 4 + u))))  # fmt: skip
    assert check([A, B], cut, [numbers((64,)), poisoned((64,))]) == [("load", 2), ("store", 2)]
    data = lambda x: vectorized(4, lambda u: when(  # noqa: E731
        load(A, x * 4 + u) > 0.0, store(B, x * 4 + u, load(C, x * 4 + u))))  # fmt: skip
    found = check([A, B, C], data, [numbers((64,)), poisoned((64,)), numbers((64,), seed=4)])
    assert found == [("load", 4)]


def test_what_a_select_protects_is_loaded_under_its_condition() -> None:
    short = tensor("S", (4,))
    body = lambda x: vectorized(4, lambda u: store(  # noqa: E731
        B, x * 4 + u, select(x * 4 + u < 4, load(short, x * 4 + u), -1.0) * 2.0))  # fmt: skip
    found = check([short, B], body, [numbers((4,)), poisoned((64,))])
    assert found == [("load", 4), ("store", 4)]


def test_eager_selects_keep_both_sides() -> None:
    body = lambda x: vectorized(4, lambda u: store(  # noqa: E731
        B, x * 4 + u, select(x < 2, load(A, x * 4 + u), -1.0, lazy=False)))  # fmt: skip
    found = check([A, B], body, [numbers((64,)), poisoned((64,))])
    assert found == [("load", 4), ("store", 4)]


def test_both_branches_may_write_one_element() -> None:
    body = lambda x: vectorized(4, lambda u: [  # noqa: E731
        store(B, x * 4 + u, 0.0),
        when(load(A, x * 4 + u) > 0.0, store(B, x * 4 + u, 1.0), store(B, x * 4 + u, -1.0)),
    ])  # fmt: skip
    check([A, B], body, [numbers((64,)), poisoned((64,))])


def test_calls_and_one_element_read_twice() -> None:
    body = lambda x: vectorized(4, lambda u: store(  # noqa: E731
        B, x * 4 + u, call("exp2", load(A, x * 4 + u)) + load(A, x * 4 + u)))  # fmt: skip
    assert check([A, B], body, [numbers((64,)), poisoned((64,))]) == [("load", 4), ("store", 4)]


def test_views_of_one_memory_are_one_memory() -> None:
    s = shared("S", (16,), "int32")
    halves = view(s, (32,), "int16")
    b = tensor("B16", (64,), "int16")
    body = lambda x: seq(alloc(s), vectorized(4, lambda u: [  # noqa: E731
        store(s, x * 4 + u, x * 1000 + u),
        store(b, x * 4 + u, load(halves, x * 8 + u)),
    ]))  # fmt: skip
    assert ("load", 4) not in check([b], body, [poisoned((64,), "int16")])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", 4), ("float16", 2), ("bfloat16", 0), ("int32", 0)],
)
def test_sums_of_neighbours_are_updated_at_once(dtype: str, expected: int) -> None:
    a, c = tensor("A", (30, 64), dtype), tensor("C", (30, 64), dtype)
    k = kernel([a, c], 2, lambda bx: parallel((32, 64), lambda i, j: Evaluate(
        call_atomic("add", c, (i, j), load(a, i, j)))), threads=32)  # fmt: skip
    args = [numbers((30, 64), dtype), numbers((30, 64), dtype, 1)]
    found = calls(agree(k, GivenLayouts(32, {}), args))
    assert [n for name, n in found if name == "atomic_add"] == ([expected] if expected else [])


def test_sums_in_a_stated_order_go_one_by_one() -> None:
    a, c = tensor("A", (64,)), tensor("C", (64,))
    k = kernel([a, c], 2, lambda bx: AtomicTile(
        AtomicKind.ADD, whole(a), whole(c), memory_order="acq_rel"), threads=8)  # fmt: skip
    assert ("atomic_add", 4) not in calls(agree(k, GivenLayouts(8, {}), [numbers((64,))] * 2))


def test_machines_with_narrower_accesses() -> None:
    k = kernel([A, B], 1, lambda bx: copy(A, B), threads=4)
    args = [numbers((64,)), poisoned((64,))]
    narrow = replace(MACHINE, vector_bytes=8)
    found = calls(agree(k, GivenLayouts(4, {}), args, machine=narrow))
    assert found == [("load", 2), ("store", 2)]


def test_statements_about_extents_bring_vectors_back() -> None:
    n = Var("n", INT)
    a, b = tensor("A", (8, n)), tensor("B", (8, n))
    stated = Check((n % 4).__eq__(0), "n % 4 == 0", CheckKind.ASSUME)
    body = parallel((8, 32), lambda i, j: store(b, (i, j), load(a, i, j) + 1.0))
    k = kernel([a, b], 1, lambda bx: [stated, body], threads=8)
    found = calls(agree(k, GivenLayouts(8, {}), [numbers((8, 20)), poisoned((8, 20))]))
    assert found == [("load", 4), ("store", 4)]


@given(st.data())
def test_steps_along_lanes_are_exact(data: st.DataObject) -> None:
    tid, lane = Var("tid", INT), Var("v", INT)
    width = data.draw(st.sampled_from([2, 4, 8]))
    env = ConstraintSet().with_loop(tid, 0, 16).with_loop(lane, 0, width)
    leaf = st.sampled_from([tid, lane, tid * width, tid * width + lane, as_expr(3), as_expr(width)])

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        number = st.sampled_from([1, 2, 3, 4, 8, 16])
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a - b, inner, inner),
            st.builds(lambda a, n: a * n, inner, number),
            st.builds(lambda a, n: a // n, inner, number),
            st.builds(lambda a, n: a % n, inner, number),
            st.builds(lambda a, b: a % 64 ^ b % 64, inner, inner),
        )

    expr = data.draw(st.recursive(leaf, grow, max_leaves=8))
    other = data.draw(st.recursive(leaf, grow, max_leaves=4))
    lanes = Lanes(lane, width, env)

    step = along(expr, lanes)
    steady = is_steady(as_expr(expr < other), lanes)
    divisor = env.multiple_of(expr)
    for t in range(16):
        values = [evaluate(expr, {tid: t, lane: v}) for v in range(width)]
        if step is not None:
            base = evaluate(step.base, {tid: t})
            assert values == [base + step.factor * v for v in range(width)]
        if steady:
            limits = [evaluate(other, {tid: t, lane: v}) for v in range(width)]
            assert len({a < b for a, b in zip(values, limits, strict=True)}) == 1
        assert all(x % divisor == 0 if divisor else x == 0 for x in values)
