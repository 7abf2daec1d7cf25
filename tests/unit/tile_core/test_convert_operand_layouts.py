"""Register tiles that one operator makes and another reads otherwise: a copy in between."""

from __future__ import annotations

from typing import Any

from support.thread_machine import MACHINE, RULES
from tile_core.ir.node import walk
from tile_core.ir.stmt import Alloc, Kernel
from tile_core.layout import Fragment
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import InferLevel, LayoutMap, Rule
from tile_core.passes.convert_operand_layouts import convert_operand_layouts
from tile_core.passes.infer_layouts import infer_layouts
from tile_core.target import parse_target_spec
from tile_core.testing import build_ir as ir

TARGET = parse_target_spec("cuda:sm_80")
SUMS = Fragment((16, 16), lambda i, j: (i, j), threads=32)
FACTOR = Fragment((16, 16), lambda i, j, rep: (i + 16 * rep, j), replicate=2)


def rules(factor: Fragment) -> tuple[Rule[Any], ...]:
    def infer(op: Gemm, ctx: Any, level: InferLevel) -> LayoutMap:
        if level is not InferLevel.STRICT:
            return {}
        assert ctx.threads == 32
        demands = {op.c.buffer: SUMS}
        return demands if op.a.buffer.scope.is_global else {op.a.buffer: factor, **demands}

    return (*RULES, Rule(name="g", op=Gemm, lower=lambda op, ctx: None, infer_layout=infer))


def chain() -> Kernel:
    """Return two products of which the second reads the sums of the first twice."""
    a = ir.tensor("A", (16, 16))
    s, c, d = (ir.fragment(n, (16, 16)) for n in "scd")
    body = [*ir.alloc(s, c, d), ir.gemm(a, a, s), ir.gemm(s, a, c), ir.gemm(s, a, d)]
    return ir.kernel([a], 1, lambda bx: body, threads=32)


def test_readers_with_other_demands_get_copies() -> None:
    done = convert_operand_layouts(chain(), TARGET, rules(FACTOR), MACHINE)
    copies = [n for n in walk(done) if isinstance(n, Copy)]
    assert [(n.src.buffer.name, n.dst.buffer.name) for n in copies] == [
        ("s", "s_read"), ("s", "s_read1"),
    ]  # fmt: skip
    products = [n for n in walk(done) if isinstance(n, Gemm)]
    assert [n.a.buffer.name for n in products] == ["A", "s_read", "s_read1"]
    assert {n.buffer.name for n in walk(done) if isinstance(n, Alloc)} >= {"s_read", "s_read1"}
    layouts = infer_layouts(done, TARGET, rules(FACTOR), simt=MACHINE)
    assert layouts.layout_of(copies[0].src.buffer) == SUMS
    assert layouts.layout_of(copies[0].dst.buffer) == FACTOR
    assert all(layouts.is_exchanged(copy) for copy in copies)


def test_readers_that_agree_read_the_tile_itself() -> None:
    kernel = chain()
    assert convert_operand_layouts(kernel, TARGET, rules(SUMS), MACHINE) is kernel


def test_nothing_is_asked_where_no_tile_is_handed_over() -> None:
    a, c = ir.tensor("A", (16, 16)), ir.fragment("c", (16, 16))
    kernel = ir.kernel([a], 1, lambda bx: [*ir.alloc(c), ir.gemm(a, a, c)], threads=32)
    assert convert_operand_layouts(kernel, TARGET, (), MACHINE) is kernel
