"""A complete block of a matrix product, from tensors in memory to stored results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tile_core.tir.build import allocate, bind, i32, loop, scratch, seq
from tile_core.tir.nodes import Stmt, tirx
from tile_cpu.gemm.dot_rows import emit_dot_rows
from tile_cpu.gemm.kernel import MicroKernel, choose_kernel
from tile_cpu.gemm.operands import (
    Choice,
    DirectB,
    Extent,
    Finish,
    GemmSpec,
    OperandA,
    OperandB,
    Start,
    copied_a,
    packed_b,
    padded_row,
    round_up,
    start_from,
    store_to,
)
from tile_cpu.gemm.packing import emit_copy_rows, emit_pack_b
from tile_cpu.gemm.prefetch import Region
from tile_cpu.gemm.shape import Form, choose_form, choose_tile
from tile_cpu.gemm.tile import emit_tile_gemm
from tile_cpu.machine import Machine
from tile_cpu.vectors import Matrix, as_expr, minimum

# Groups of k per step. A panel of B and a few rows of A then fill the first-level cache,
# and C is read and written seldom, however short the steps of the kernel's own loop are.
PANEL_GROUPS = 128
# Where B is read in place a step should stay within few pages.
DIRECT_ROWS = 16


def plan_gemm(
    machine: Machine,
    a_dtype: str,
    b_dtype: str,
    c_dtype: str,
    m: int,
    n: int,
    *,
    transposed_b: bool = False,
) -> GemmSpec:
    """Choose inner step, register tile and loop form for blocks of `m` x `n`.

    `m` and `n` are the capacity of a block: the rows and columns most blocks have.
    """
    form = choose_form(b_dtype, m, transposed_b=transposed_b)
    kernel = choose_kernel(machine, a_dtype, b_dtype, c_dtype, grouped=form is not Form.DIRECT)
    if form is Form.DOT_ROWS and kernel.flip_a:
        # Flipping signs pays off only for packed B.
        kernel = choose_kernel(machine, "int16", "int16", c_dtype)
    return GemmSpec(machine, kernel, choose_tile(machine, kernel, m, n), form)


@dataclass(frozen=True, slots=True)
class KSteps:
    """The k loop of a block: `count` steps of `step` elements, at most `capacity`."""

    capacity: int
    step: Any
    count: Any
    statements: tuple[Stmt, ...] = ()


def plan_steps(spec: GemmSpec, k_extent: Any) -> KSteps:
    """Cut `k_extent` elements, an int or an int32 expression, into equal steps.

    The last step is not much shorter than the others, so that no time goes into loading
    and storing C for a few products. There is always at least one step.
    """
    kernel = spec.kernel
    wanted = PANEL_GROUPS * kernel.group if spec.form is Form.PANELS else DIRECT_ROWS
    unit = kernel.chunk if spec.form is Form.PANELS else 1
    if isinstance(k_extent, int):
        count = max(1, (k_extent + wanted // 2) // wanted)
        step = max(1, -(-k_extent // count))
        if count > 1:
            step = round_up(step, unit)
        return KSteps(step, step, max(1, -(-k_extent // step)))
    rough, bind_rough = bind(
        "rough", tirx.Max(tirx.floordiv(k_extent + i32(wanted // 2), i32(wanted)), i32(1))
    )
    share = tirx.floordiv(k_extent + rough - 1, rough)
    rounded = tirx.floordiv(share + i32(unit - 1), i32(unit)) * unit
    step, bind_step = bind("step", tirx.Max(rounded, i32(unit)))
    steps = tirx.Max(tirx.floordiv(k_extent + step - 1, step), i32(1))
    count_var, bind_count = bind("steps", steps)
    capacity = round_up(wanted + wanted // 2, unit)
    return KSteps(capacity, step, count_var, (bind_rough, bind_step, bind_count))


def emit_blocked_gemm(
    spec: GemmSpec,
    a: Matrix,
    b: Matrix,
    extent: Extent,
    *,
    k_extent: Any,
    finish: Finish,
    start: Start = None,
    transposed_a: bool = False,
    transposed_b: bool = False,
    a_in_place: bool = True,
    prefetch: bool = True,
) -> Stmt:
    """Return ``finish(start + op(A) op(B))`` for one block of C, over all of k.

    Parameters
    ----------
    spec
        From `plan_gemm` with the same `transposed_b`.
    a, b
        The block's rows of A and columns of B: ``(i, k)`` and ``(k, j)``, or ``(k, i)`` and
        ``(j, k)`` if transposed; i and j count from the block's corner, k from the start.
    extent
        Capacity of the block and how much of it exists; its k is not used.
    k_extent
        Length of k, a Python int or an int32 expression, may be 0.
    finish
        Where results go; called once for each vector of C.
    start
        What sums start from; None is zero. Must not be a `Choice`.
    a_in_place
        Allow reading A where it lies, if its form permits. False if the kernel writes it.
    prefetch
        Fetch the next step's part of A and B into the second-level cache meanwhile.
    """
    if spec.form is Form.DOT_ROWS and not transposed_a:
        whole = replace(extent, k=k_extent if isinstance(k_extent, int) else 0, k_valid=None)
        whole = whole if isinstance(k_extent, int) else replace(whole, k_valid=k_extent)
        return emit_dot_rows(spec, a, b, whole, start=start, finish=finish)
    if spec.form is Form.DOT_ROWS:
        spec = replace(spec, form=Form.PANELS)
    steps = plan_steps(spec, k_extent)
    run = _Block(
        spec,
        a,
        b,
        extent,
        steps,
        k_extent,
        transposed_a,
        transposed_b,
        a_in_place and _readable(spec.kernel, a, k_extent, transposed_a),
    )
    single = isinstance(steps.count, int) and steps.count == 1
    if single:
        return seq(run.allocations(), run.step(i32(0), start, finish, prefetch=False))
    kernel = spec.kernel
    row = padded_row(round_up(extent.n, kernel.lanes), kernel.accumulator)
    sums = scratch([extent.m, row], kernel.accumulator, "c_sums")
    kept = Matrix.of(sums)

    def one(ko: Any) -> Stmt:
        first = Choice(tirx.EQ(ko, i32(0)), start, start_from(kept, kernel))
        last = Choice(tirx.EQ(ko, as_expr(steps.count) - 1), finish, store_to(kept))
        return run.step(ko, first, last, prefetch=prefetch)

    return seq(
        steps.statements, run.allocations(), allocate(sums), loop(steps.count, one, name="ko")
    )


def _readable(kernel: MicroKernel, a: Matrix, k_extent: Any, transposed: bool) -> bool:
    """Tell whether the kernel can broadcast A straight from memory."""
    whole_groups = kernel.group == 1 or (isinstance(k_extent, int) and k_extent % kernel.group == 0)
    return not transposed and a.dtype == kernel.a_dtype and not kernel.flip_a and whole_groups


class _Block:
    """The operands of one block, and how a step along k is emitted."""

    def __init__(
        self,
        spec: GemmSpec,
        a: Matrix,
        b: Matrix,
        extent: Extent,
        steps: KSteps,
        k_extent: Any,
        transposed_a: bool,
        transposed_b: bool,
        a_in_place: bool,
    ) -> None:
        self.spec, self.a, self.b, self.extent = spec, a, b, extent
        self.steps, self.k_extent = steps, k_extent
        self.transposed_a, self.transposed_b = transposed_a, transposed_b
        self.a_in_place = a_in_place
        self.a_copy: OperandA | None = None
        self.b_copy: Any = None

    def allocations(self) -> list[Stmt]:
        """Return the allocation of what operands are copied to."""
        statements: list[Stmt] = []
        if not self.a_in_place:
            self.a_copy, room = copied_a(
                self.spec, self.extent.m, self.steps.capacity, k_major=self.transposed_a
            )
            statements += room
        if self.spec.form is not Form.DIRECT:
            self.b_copy, room = packed_b(self.spec, self.steps.capacity, self.extent.n)
            statements += room
        return statements

    def step(self, ko: Any, start: Start, finish: Finish, *, prefetch: bool) -> Stmt:
        """Return step `ko`: copy what must be copied, multiply, meanwhile prefetch."""
        k0, bind_k0 = bind("k0", ko * self.steps.step)
        valid, bind_valid = self._valid(k0)
        a, copy_a = self._operand_a(k0, valid)
        b, copy_b = self._operand_b(k0, valid)
        ahead = self._regions(k0 + self.steps.step) if prefetch else ()
        extent = replace(self.extent, k=self.steps.capacity, k_valid=valid)
        product = emit_tile_gemm(
            self.spec, a, b, extent, start=start, finish=finish, prefetch=ahead
        )
        return seq(bind_k0, bind_valid, copy_a, copy_b, product)

    def _valid(self, k0: Any) -> tuple[Any, Stmt | None]:
        extent, step = self.k_extent, self.steps.step
        if isinstance(extent, int) and extent == step * self.steps.count:
            return None, None
        if self.steps.count == 1:
            return bind("depth", as_expr(extent))
        return bind("depth", minimum(as_expr(extent) - k0, step))

    def _operand_a(self, k0: Any, valid: Any) -> tuple[OperandA, Stmt | None]:
        if self.a_copy is None:
            return OperandA(self.a.moved(0, k0)), None
        source = self.a.moved(k0, 0) if self.transposed_a else self.a.moved(0, k0)
        copy = emit_copy_rows(
            self.spec,
            source,
            self.a_copy,
            self.extent.m,
            self.steps.capacity,
            transposed=self.transposed_a,
            m_valid=self.extent.m_valid,
            k_valid=valid,
        )
        return self.a_copy, copy

    def _operand_b(self, k0: Any, valid: Any) -> tuple[OperandB, Stmt | None]:
        source = self.b.moved(0, k0) if self.transposed_b else self.b.moved(k0, 0)
        if self.b_copy is None:
            return DirectB(source), None
        pack = emit_pack_b(
            self.spec,
            source,
            self.b_copy,
            self.steps.capacity,
            self.extent.n,
            transposed=self.transposed_b,
            k_valid=valid,
            n_valid=self.extent.n_valid,
        )
        return self.b_copy, pack

    def _regions(self, k0: Any) -> tuple[Region, ...]:
        k, m, n = self.steps.capacity, self.extent.m, self.extent.n
        a = (
            Region(self.a.moved(k0, 0), k, m)
            if self.transposed_a
            else Region(self.a.moved(0, k0), m, k)
        )
        b = (
            Region(self.b.moved(0, k0), n, k)
            if self.transposed_b
            else Region(self.b.moved(k0, 0), k, n)
        )
        return a, b


__all__ = ["KSteps", "emit_blocked_gemm", "plan_gemm", "plan_steps"]
