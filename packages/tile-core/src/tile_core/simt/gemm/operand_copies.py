"""Copies of operands from shared memory into registers, where machines load single elements."""

from __future__ import annotations

from tile_core.ir.buffer import Scope
from tile_core.layout import Fragment
from tile_core.ops.copy import Copy
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.simt.gemm.matrix_unit import MatrixUnit
from tile_core.simt.gemm.shared_layouts import open_operand_layout
from tile_core.simt.rules.copy import lower_copy
from tile_core.simt.rules.store_layouts import goes_down
from tile_core.target import Target


def operand_copy_rule(name: str, unit: MatrixUnit) -> Rule[Copy]:
    """Return the rule that gives tiles which become operands in registers an operand's layout.

    They are copied as all tiles are: neighbouring threads read neighbouring rows.

    Parameters
    ----------
    name
        What the rule is called.
    """

    def infer(op: Copy, ctx: InferContext, level: InferLevel) -> LayoutMap:
        held = ctx.layout_of(op.dst.buffer)
        if level is InferLevel.STRICT or not isinstance(held, Fragment) or not goes_down(held):
            return {}
        return open_operand_layout(
            op.src.buffer, ctx, lambda shape, bits: unit.operand_layout(shape, bits, True)
        )

    return Rule(
        name=name, op=Copy, lower=lower_copy, infer_layout=infer, rejects=_rejects, priority=10
    )


def _rejects(op: Copy, target: Target) -> str | None:
    if (op.src.buffer.scope, op.dst.buffer.scope) != (Scope.SHARED, Scope.FRAGMENT):
        return "operands are copied from shared memory into fragments"
    if op.is_async or op.prefer_instruction is not None or op.loop_layout is not None:
        return "the copy asks for another instruction or order"
    if op.dst.buffer.rank != 2 or not op.dst.is_whole or op.src.is_element:
        return "operands are fragments of two dimensions"
    return None
