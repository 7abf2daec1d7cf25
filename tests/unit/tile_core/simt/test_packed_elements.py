"""Elements narrower than a byte in programs of threads, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.thread_machine import GivenLayouts, agree, calls, poisoned
from tile_core.ir.node import walk
from tile_core.ir.stmt import Store
from tile_core.layout.loop_layout import planned
from tile_core.ops.control import Barrier
from tile_core.testing.build_ir import (
    alloc,
    copy,
    fill,
    fragment,
    kernel,
    let,
    load,
    parallel,
    region,
    seq,
    serial,
    shared,
    store,
    tensor,
    when,
)

NARROW = ("int4", "uint4", "float4_e2m1fn")


def packed(shape: tuple[int, int], seed: int = 0) -> Any:
    """Return a tensor of 4-bit elements: bytes of two."""
    rows, columns = shape
    return np.random.default_rng(seed).integers(0, 256, (rows, columns // 2)).astype(np.uint8)


@pytest.mark.parametrize("dtype", NARROW)
def test_tiles_hold_a_byte_for_each_element(dtype: str) -> None:
    shape, box = (16, 32), (14, 32)
    a, c = tensor("A", box, dtype), tensor("C", box, dtype)
    wide, tile = tensor("W", box, "float16"), shared("S", shape, dtype)
    part = fragment("F", shape)
    k = kernel([a, c, wide], 1, lambda bx: [
        alloc(tile, part),
        copy(region(a, (0, 0), shape), tile),
        Barrier(),
        copy(tile, region(c, (0, 0), shape)),
        parallel(shape, lambda i, j: store(part, (i, j), load(tile, i, j) * 2.0)),
        parallel(shape, lambda i, j: store(wide, (i, j), load(part, i, j) + load(a, i, j))),
    ], threads=32)  # fmt: skip
    fragment_of_part = planned(shape, 32, 8, holds_tiles=True).fragment
    layouts = GivenLayouts(32, {part: fragment_of_part}, vector=8)
    args = [packed(box), np.zeros((14, 16), np.uint8), poisoned(box, "float16")]
    lowered = agree(k, layouts, args)
    assert calls(lowered)[0] == ("load", 4)  # eight elements


@pytest.mark.parametrize("dtype", NARROW)
def test_values_are_computed_in_a_wider_type_and_brought_back(dtype: str) -> None:
    shape = (8, 16)
    a, b, c = (tensor(n, shape, dtype) for n in "ABC")
    wide = tensor("W", shape, "int32")
    k = kernel([a, b, c, wide], 1, lambda bx: [
        parallel(shape, lambda i, j: let("x", load(a, i, j) + load(b, i, j), lambda x: [
            store(c, (i, j), x * load(a, i, j) - load(b, i, j)),
            store(wide, (i, j), x),
        ])),
    ], threads=8)  # fmt: skip
    args = [packed(shape), packed(shape, 1), np.zeros((8, 8), np.uint8), poisoned(shape, "int32")]
    agree(k, GivenLayouts(8, {}, vector=8), args)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("source", ["float32", "int32", "float16"])
def test_conversions_to_narrow_elements(dtype: str, source: str) -> None:
    shape = (8, 16)
    a, c = tensor("A", shape, source), tensor("C", shape, dtype)
    k = kernel([a, c], 1, lambda bx: copy(a, c), threads=8)
    given = np.random.default_rng(0).integers(-20, 21, shape).astype(source)
    if source != "int32":
        given = given / given.dtype.type(4)
    agree(k, GivenLayouts(8, {}, vector=2), [given, np.zeros((8, 8), np.uint8)])


def test_fills_write_whole_bytes() -> None:
    shape = (4, 16)
    c = tensor("C", shape, "int4")
    k = kernel([c], 1, lambda bx: fill(region(c, (0, 0), (4, 8)), -3), threads=4)
    agree(k, GivenLayouts(4, {}), [np.full((4, 8), 0x5A, np.uint8)])


def test_one_thread_may_write_both_halves_one_after_the_other() -> None:
    shape = (4, 8)
    c = tensor("C", shape, "uint4")
    k = kernel([c], 1, lambda bx: parallel(
        (4,), lambda i: serial(8, lambda s: store(c, (i, s), i * 3 + s))), threads=4)  # fmt: skip
    agree(k, GivenLayouts(4, {}), [np.zeros((4, 4), np.uint8)])


@pytest.mark.parametrize("shape", [(4, 8), (2, 48), (3, 10), (1, 2), (5, 34)])
def test_loops_are_dealt_out_in_pairs(shape: tuple[int, int]) -> None:
    """Also where the last round of pairs leaves threads without work."""
    a, c = tensor("A", shape, "int32"), tensor("C", shape, "int4")
    k = kernel([a, c], 1, lambda bx: copy(a, c), threads=32)
    given = np.random.default_rng(0).integers(-8, 8, shape).astype(np.int32)
    poison = np.full((shape[0], shape[1] // 2), 0x5A, np.uint8)
    agree(k, GivenLayouts(32, {}, vector=1), [given, poison])


@pytest.mark.parametrize("vector", [1, 4])
def test_threads_that_hold_half_a_byte_keep_the_other_half(vector: int) -> None:
    a, c = tensor("A", (4, 7), "int32"), tensor("C", (4, 10), "int4")
    k = kernel([a, c], 1, lambda bx: copy(a, region(c, (0, 1), (4, 7))), threads=8)
    given = np.random.default_rng(0).integers(-8, 8, (4, 7)).astype(np.int32)
    lowered = agree(k, GivenLayouts(8, {}, vector=vector), [given, np.full((4, 5), 0x5A, np.uint8)])
    assert {name for name, _ in calls(lowered)} == {"store_nibble"}


ONCE_IN = {
    "every element": (lambda i, c: store(c, (i,), i), True),
    "every second element": (lambda i, c: when((i % 2).__eq__(0), store(c, (i,), i)), False),
    "every second pair": (lambda i, c: when((i // 2 % 2).__eq__(0), store(c, (i,), i)), True),
    "a name of each": (lambda i, c: let("x", i ^ 1, lambda x: [store(c, (x,), i)]), False),
    "rounds of its own": (lambda i, c: serial(i % 2, lambda k: store(c, (i,), k)), False),
    "rounds of the pair": (lambda i, c: serial(i // 2, lambda k: store(c, (i,), k)), True),
    "what it has stored": (
        lambda i, c: seq(store(c, (i,), 1), when(load(c, i).__eq__(1), store(c, (i,), 0))), None
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ONCE_IN)
def test_whole_bytes_are_those_of_which_a_thread_certainly_stores_both_halves(form: str) -> None:
    """Others keep the half that another thread may store at the same time."""
    body, is_whole = ONCE_IN[form]
    c = tensor("C", (16,), "uint4")
    k = kernel([c], 1, lambda bx: parallel((16,), lambda i: body(i, c)), threads=8)
    lowered = agree(k, GivenLayouts(8, {}, vector=2), [np.full(8, 0x5A, np.uint8)])
    apart = [name for name, _ in calls(lowered)]
    plain = [n for n in walk(lowered) if isinstance(n, Store) and n.buffer.scope.is_global]
    assert (bool(plain), bool(apart)) == (is_whole in (True, None), is_whole in (False, None))
