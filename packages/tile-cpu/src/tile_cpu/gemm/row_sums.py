"""Sums of the rows of A, which compensate for flipped signs of B."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_cpu.gemm.instruction_kernel import SIGN_BITS, MicroKernel
from tile_cpu.gemm.operands import GemmSpec, OperandA, round_up
from tile_cpu.gemm.transpose import lane_sums
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.tir.build import Temporaries, allocate, i32, loop, scratch, seq, splat, vload, vstore
from tile_cpu.tir.nodes import PrimExpr, Stmt, TirBuffer
from tile_cpu.vectors import as_expr, ceil_div, floor_div, floor_mod, if_any, minimum, zero


def row_sums(spec: GemmSpec, m: int) -> tuple[TirBuffer, list[Stmt]]:
    """Return room for the sums of `m` rows, and its allocation."""
    sums = scratch([round_up(m, spec.kernel.lanes)], "int32", "a_sums")
    return sums, [allocate(sums)]


def emit_row_sums(
    spec: GemmSpec,
    operand: OperandA,
    sums: TirBuffer,
    m: int,
    k: int,
    *,
    m_valid: Any = None,
    k_valid: Any = None,
    padded: bool = False,
) -> tuple[OperandA, Stmt]:
    """Return `operand` with its row sums, and the statement that computes them.

    Flipping the sign bit of a byte adds 128 to it, or subtracts 128. The product with such
    a B is off by 128 times the sum of the row of A, with that sign: what the same
    instruction gives with 128 in place of every element of B.

    `operand` is A in the form the kernel reads, its extents are as in `emit_pack_b`. If `padded`,
    rows are zero from their end to a whole vector, as `emit_copy_rows` leaves them.
    """
    kernel = spec.kernel
    rows, depth = m if m_valid is None else m_valid, k if k_valid is None else k_valid
    if padded and not operand.k_major:
        depth = ceil_div(depth, kernel.chunk) * kernel.chunk
    if operand.k_major:
        body = _along_columns(kernel, operand, sums, rows, ceil_div(depth, kernel.group))
    else:
        body = loop(
            ceil_div(rows, kernel.lanes),
            lambda block: _square(
                kernel, operand, sums, block * kernel.lanes, (rows, depth), padded
            ),
            name="block",
        )
    return replace(operand, sums=sums), body


def _along_columns(
    kernel: MicroKernel, operand: OperandA, sums: TirBuffer, rows: Any, groups: Any
) -> Stmt:
    lanes = kernel.lanes

    def one(j: Any) -> Stmt:
        acc = scratch([lanes], "int32", "acc")

        def add(q: Any) -> Stmt:
            vector = operand.matrix.load(q, j * lanes, lanes)
            return vstore(acc, [i32(0)], _added(kernel, vload(acc, [i32(0)], lanes), vector), lanes)

        return seq(
            allocate(acc, on_stack=True),
            vstore(acc, [i32(0)], zero("int32", lanes), lanes),
            loop(groups, add, name="q"),
            vstore(sums, [as_expr(j * lanes)], vload(acc, [i32(0)], lanes), lanes),
        )

    return loop(ceil_div(rows, lanes), one, name="j")


def _square(
    kernel: MicroKernel,
    operand: OperandA,
    sums: TirBuffer,
    first: Any,
    extent: tuple[Any, Any],
    padded: bool,
) -> Stmt:
    """Sum as many rows as there are lanes; their sums are one vector."""
    (rows, depth), lanes, chunk = extent, kernel.lanes, kernel.chunk
    acc = scratch([lanes * lanes], "int32", "acc")
    ragged = not isinstance(rows, int) or rows % lanes != 0
    named, every = Temporaries(), [as_expr(first + r) for r in range(lanes)]
    last = as_expr(rows) - 1
    names = [named(minimum(row, last) if ragged else row, "row") for row in every]

    def step(c: Any, count: Any = None) -> list[Stmt]:
        statements = []
        for r, row in enumerate(names):
            at = [i32(r * lanes)]
            vector = operand.matrix.load(row, c * chunk, chunk, count)
            total = _added(kernel, vload(acc, at, lanes), reinterpret(vector, "int32", lanes))
            statements.append(vstore(acc, at, total, lanes))
        return statements

    whole, rest = floor_div(depth, chunk), 0 if padded else floor_mod(depth, chunk)
    tail = if_any(rest, lambda: step(as_expr(whole), rest))
    keep = Temporaries()
    total, _ = lane_sums(keep, [vload(acc, [i32(r * lanes)], lanes) for r in range(lanes)], lanes)
    return seq(
        named.statements,
        allocate(acc, on_stack=True),
        [vstore(acc, [i32(r * lanes)], zero("int32", lanes), lanes) for r in range(lanes)],
        loop(whole, step, name="c"),
        tail,
        keep.statements,
        vstore(sums, [as_expr(first)], total, lanes),
    )


def _added(kernel: MicroKernel, total: PrimExpr, groups: PrimExpr) -> PrimExpr:
    return kernel.accumulate(total, groups, splat(SIGN_BITS, kernel.lanes))
