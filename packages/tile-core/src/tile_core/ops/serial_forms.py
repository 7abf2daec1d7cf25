"""Every tile operator as scalar loops in tile IR: the meaning, and everybody's last resort."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Evaluate, For, If, Leaf, Seq, Stmt, Store
from tile_core.ops.gpu_only import GpuOperator
from tile_core.records import replace


def has_serial_form(cls: type[Leaf]) -> bool:
    """Whether operators of a class can be written as statements on single elements."""
    return cls.serial_form is not Leaf.serial_form


def expand(op: Leaf) -> Stmt:
    """Return statements that do what `op` does, one element at a time.

    Before   copy A[bx*64:+64, 0:+32], T
    After    for i in range(64): for j in range(32): T[i, j] = cast(A[bx*64 + i, j])

    The result holds no operators, only loops, branches, scalar variables, loads and stores.
    No bounds are checked in it: accesses to global buffers are guarded by their definition.
    Barriers and waits become nothing: whoever expands runs the block as one thread.

    Raises
    ------
    UnsupportedOnTarget
        If the operator has no serial form: a rule for the target must know what it does.
    """
    form = op.serial_form()
    if form is None:
        raise UnsupportedOnTarget(
            f"operator {_name(op)!r} has no serial form",
            span=op.span,
            hint="the package that defines the operator must provide a rule for this target",
        )
    return _located(form, op)


def _name(op: Leaf) -> str:
    return op.name if isinstance(op, GpuOperator) else type(op).mnemonic


def _located(stmt: Stmt, op: Leaf) -> Stmt:
    """Return `stmt` with the place of `op` on every statement that has none."""
    if op.span is None:
        return stmt

    def place(node: Node) -> Node:
        if node.span is None and isinstance(node, (Evaluate, For, If, Seq, Store)):
            return replace(node, span=op.span)
        return node

    return rewrite(stmt, place)
