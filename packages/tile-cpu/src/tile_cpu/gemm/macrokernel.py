"""A complete block of a matrix product, from tensors in memory to stored results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.gemm.block_sizes import step_depth
from tile_cpu.gemm.dot_rows import emit_dot_rows
from tile_cpu.gemm.instruction_kernel import choose_kernel
from tile_cpu.gemm.operands import (
    Choice,
    DirectB,
    Extent,
    Finish,
    GemmSpec,
    OperandA,
    OperandB,
    PackedB,
    PackingB,
    Start,
    StoreTo,
    copied_a,
    packed_b,
    padded_row,
    round_up,
    start_from,
    window_columns,
)
from tile_cpu.gemm.packing import emit_copy_rows, emit_pack_b
from tile_cpu.gemm.prefetch import (
    Prefetch,
    PrefetchRegion,
    spread,
    spread_by_panel,
    spread_next_window,
    spread_results,
)
from tile_cpu.gemm.register_tile_shape import MAX_VECTOR_ROWS, GemmForm, choose_form, choose_tile
from tile_cpu.gemm.row_sums import emit_row_sums, row_sums
from tile_cpu.gemm.tile_loops import BeforePanel, emit_tile_gemm
from tile_cpu.tir.build import allocate, i32, loop, scratch, seq
from tile_cpu.tir.nodes import IfThenElse, Select, Stmt, TirBuffer, tirx
from tile_cpu.vectors import Matrix, as_expr, ceil_div, floor_div, floor_mod, minimum, opaque

# Where B is read in place a step stays within few pages, fewer when it is read once for
# every few additions.
DIRECT_ROWS, VECTOR_ROWS, ONE_STEP = 32, 8, 128
# Where B is only waited for, its rows are fetched this many steps ahead.
STEPS_AHEAD = 2
CACHE_WAYS, LONG_VECTOR_BYTES = 8, 64


def plan_gemm(
    machine: CpuMachine,
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
    kernel = choose_kernel(machine, a_dtype, b_dtype, c_dtype, grouped=form is not GemmForm.DIRECT)
    if form is GemmForm.DOT_ROWS and kernel.flip_b:
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


def plan_steps(spec: GemmSpec, k_extent: Any, rows: int) -> KSteps:
    """Cut `k_extent` elements, an int or an int32 expression, into equal steps of `rows` of A.

    The last step is not much shorter than the others, so that no time goes into loading
    and storing C for a few products. There is always at least one step.
    """
    if spec.form is GemmForm.PANELS:
        wanted, unit = step_depth(spec, rows), spec.kernel.chunk
        longest = wanted * 3 // 2  # what one step may take
    else:
        wanted, unit = VECTOR_ROWS if spec.tile.mr <= MAX_VECTOR_ROWS else DIRECT_ROWS, 1
        longest = ONE_STEP * 3 // 2
    if isinstance(k_extent, int):
        count = 1 if k_extent <= longest else (k_extent + wanted // 2) // wanted
        step = max(1, -(-k_extent // count))
        if count > 1:
            step = round_up(step, unit)
        return KSteps(step, step, max(1, -(-k_extent // step)))
    even = floor_div(k_extent + i32(wanted // 2), wanted)
    rough, name_rough = opaque("rough", Select(k_extent <= longest, i32(1), even))
    share = tirx.truncdiv(k_extent + rough - 1, rough)
    step, name_step = opaque("step", tirx.Max(ceil_div(share, unit) * unit, i32(unit)))
    steps = tirx.Max(tirx.truncdiv(k_extent + step - 1, step), i32(1))
    count_var, name_count = opaque("steps", steps)
    capacity = round_up(longest, unit)
    return KSteps(capacity, step, count_var, (*name_rough, *name_step, *name_count))


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
    packed: PackedB | None = None,
) -> Stmt:
    """Return ``finish(start + op(A) op(B))`` for one block of C, over all of k.

    `spec` is from `plan_gemm` with the same `transposed_b`. The elements of the block's rows of A
    and columns of B are ``(i, k)`` and ``(k, j)``, or ``(k, i)`` and ``(j, k)`` if transposed; i
    and j count from the block's corner, k from the start to `k_extent`, an int or an int32
    expression, may be 0; the k of `extent` is not used. `start` must not be a `Choice`. B that is
    `packed` already, along all of k, is read there.
    """
    if spec.form is GemmForm.DOT_ROWS and not transposed_a:
        static = isinstance(k_extent, int)
        depth = (k_extent, None) if static else (0, k_extent)
        whole = replace(extent, k=depth[0], k_valid=depth[1])
        return emit_dot_rows(spec, a, b, whole, start=start, finish=finish)
    if spec.form is GemmForm.DOT_ROWS:
        spec = replace(spec, form=GemmForm.PANELS)
    steps = plan_steps(spec, k_extent, extent.m)
    in_place = _readable(spec, a, k_extent, transposed_a)
    sides = transposed_a, transposed_b
    run = _Block(spec, a, b, extent, steps, k_extent, *sides, in_place, packed)
    if isinstance(steps.count, int) and steps.count == 1:
        return seq(run.allocations(), run.step(i32(0), start, finish, prefetch=False))
    return _all_steps(run, start, finish)


def _all_steps(run: _Block, start: Start, finish: Finish) -> Stmt:
    """Sum over several steps in scratch: the first starts, the last finishes."""
    kernel, extent, steps = run.spec.kernel, run.extent, run.steps
    row = padded_row(round_up(extent.n, kernel.lanes), kernel.accumulator)
    sums = scratch([extent.m, row], kernel.accumulator, "c_sums")
    kept = Matrix.of(sums)

    def one(ko: Any) -> Stmt:
        first = Choice(tirx.EQ(ko, i32(0)), start, start_from(kept, kernel))
        last = Choice(tirx.EQ(ko, as_expr(steps.count) - 1), finish, StoreTo(kept))
        return run.step(ko, first, last, prefetch=True)

    return seq(
        steps.statements, run.allocations(), allocate(sums), loop(steps.count, one, name="ko")
    )


def _readable(spec: GemmSpec, a: Matrix, k_extent: Any, transposed: bool) -> bool:
    """Tell whether the kernel can broadcast A straight from memory, and should."""
    kernel = spec.kernel
    whole_groups = kernel.group == 1 or (isinstance(k_extent, int) and k_extent % kernel.group == 0)
    same = a.dtype == kernel.a_dtype
    # Rows a power of two apart fall into the same cache set, which holds eight lines.
    return not transposed and same and whole_groups and spec.tile.mr <= CACHE_WAYS


@dataclass(slots=True, eq=False)
class _Block:
    """The operands of one block, and how a step along k is emitted."""

    spec: GemmSpec
    a: Matrix
    b: Matrix
    extent: Extent
    steps: KSteps
    k_extent: Any
    transposed_a: bool
    transposed_b: bool
    a_in_place: bool
    shared: PackedB | None  # B in panels before the block begins
    a_copy: OperandA | None = None
    b_copy: PackedB | None = None
    sums: TirBuffer | None = None

    def allocations(self) -> list[Stmt]:
        """Return the allocation of what operands are copied to."""
        statements: list[Stmt] = []
        if not self.a_in_place:
            self.a_copy, room = copied_a(
                self.spec, self.extent.m, self.steps.capacity, k_major=self.transposed_a
            )
            statements += room
        if self.spec.form is not GemmForm.DIRECT and self.shared is None:
            spec = self.spec
            window = spec.panel_width if self._packs_in_kernel() else window_columns(spec)
            self.b_copy, room = packed_b(spec, self.steps.capacity, self.extent.n, window=window)
            statements += room
        if self.spec.kernel.flip_b:
            self.sums, room = row_sums(self.spec, self.extent.m)
            statements += room
        return statements

    def step(self, ko: Any, start: Start, finish: Finish, *, prefetch: bool) -> Stmt:
        """Return step `ko`: copy what must be copied, multiply, meanwhile prefetch."""
        k0, bind_k0 = opaque("k0", ko * self.steps.step)
        valid, bind_valid = self._valid(k0)
        a, ready_a = self._operand_a(k0, valid)
        b, pack, packing = self._operand_b(k0, valid, prefetch)
        ahead, bind_ahead = self._ahead(ko, k0, finish) if prefetch else (None, [])
        extent = replace(self.extent, k=self.steps.capacity, k_valid=valid)
        product = emit_tile_gemm(
            self.spec,
            a,
            b,
            extent,
            start=start,
            finish=finish,
            prefetch=ahead,
            before_panel=pack,
            packing=packing,
        )
        return seq(bind_k0, bind_valid, bind_ahead, ready_a, product)

    def _is_streamed(self) -> bool:
        """Whether B, read in place, takes longer to arrive than to multiply."""
        in_place = self.b_copy is None and self.shared is None
        return in_place and self.spec.tile.mr <= MAX_VECTOR_ROWS

    def _packs_in_kernel(self) -> bool:
        """Whether B is packed by what multiplies its first rows, not by a pass before."""
        spec, extent = self.spec, self.extent
        whole = extent.m_valid is None and extent.n_valid is None
        in_place = spec.form is GemmForm.PANELS and not self.transposed_b and spec.kernel.group == 1
        return spec.machine.packs_in_kernel and whole and in_place

    def _valid(self, k0: Any) -> tuple[Any, list[Stmt]]:
        extent, step = self.k_extent, self.steps.step
        if isinstance(extent, int) and extent == step * self.steps.count:
            return None, []
        if self.steps.count == 1:
            return opaque("depth", extent)
        return opaque("depth", minimum(as_expr(extent) - k0, step))

    def _operand_a(self, k0: Any, valid: Any) -> tuple[OperandA, list[Stmt]]:
        m, k, ready = self.extent.m, self.steps.capacity, []
        operand = OperandA(self.a.moved(0, k0))
        if self.a_copy is not None:
            operand = self.a_copy
            source = self.a.moved(k0, 0) if self.transposed_a else self.a.moved(0, k0)
            copy = emit_copy_rows(
                self.spec,
                source,
                operand,
                m,
                k,
                transposed=self.transposed_a,
                m_valid=self.extent.m_valid,
                k_valid=valid,
            )
            ready.append(copy)
        if self.sums is not None:
            operand, add = emit_row_sums(
                self.spec,
                operand,
                self.sums,
                m,
                k,
                m_valid=self.extent.m_valid,
                k_valid=valid,
                padded=self.a_copy is not None,
            )
            ready.append(add)
        return operand, ready

    def _operand_b(
        self, k0: Any, valid: Any, prefetch: bool
    ) -> tuple[OperandB, BeforePanel | None, PackingB | None]:
        """Return what is read, what makes a panel of it ready, and what is read while packing."""
        if self.shared is not None:
            return self.shared.moved(0, floor_div(k0, self.spec.kernel.group)), None, None
        packed = self.b_copy
        if packed is None:
            unaided = self.spec.tile.mr == 1 and self.spec.machine.streams_unaided
            fetches = prefetch and self._is_streamed() and not unaided
            below = self.steps.step * STEPS_AHEAD if fetches else 0
            return DirectB(self.b.moved(k0, 0), below), None, None
        if self._packs_in_kernel():
            return packed, None, PackingB(DirectB(self.b.moved(k0, 0)), packed)
        return packed, lambda panel: self._pack(packed, k0, valid, panel), None

    def _pack(self, packed: PackedB, k0: Any, valid: Any, panel: Any) -> Stmt:
        """Pack the window of panels that begins with `panel`, if one does.

        One window at a time stays in the first-level cache from being written to being
        read; packing all of B first would take twice as long.
        """
        spec, extent = self.spec, self.extent
        unit, width = window_columns(spec), spec.panel_width
        column = panel * width
        total = extent.n if extent.n_valid is None else extent.n_valid
        whole = extent.n_valid is None and extent.n % unit == 0
        pack = emit_pack_b(
            spec,
            self.b.moved(column, k0) if self.transposed_b else self.b.moved(k0, column),
            packed,
            self.steps.capacity,
            unit,
            transposed=self.transposed_b,
            k_valid=valid,
            n_valid=None if whole else minimum(as_expr(total) - column, unit),
        )
        if packed.window == 1:
            return pack
        return IfThenElse(tirx.EQ(floor_mod(panel, packed.window), i32(0)), pack, None)

    def _ahead(self, ko: Any, k0: Any, finish: Finish) -> tuple[Prefetch, list[Stmt]]:
        """Return the prefetch of what comes after step `ko`, which begins at `k0`.

        That is the next step's part of A and B; in the last step the part that the block
        to the right will read first, which most often is the next one, and room for the
        results.
        """
        last = tirx.EQ(ko, as_expr(self.steps.count) - 1)
        k1, bind_k1 = opaque("k1", Select(last, i32(0), k0 + self.steps.step))
        right, bind_right = opaque("right", Select(last, i32(self.extent.n), i32(0)))
        fetches = self._fetches(k0, k1, right)
        if isinstance(finish, Choice) and isinstance(finish.then, StoreTo):
            tile = self.spec.tile.mr, self.spec.panel_width
            fetches.append(spread_results(finish.then.matrix, *tile, finish.condition))
        return lambda *where: [f for one in fetches for f in one(*where)], [*bind_k1, *bind_right]

    def _b_region(self, k: Any, column: Any) -> PrefetchRegion:
        """Return what is packed together, or is the next panel, from `k` and `column` on."""
        depth, columns = self.steps.capacity, window_columns(self.spec)
        if self.shared is not None:
            group, width = self.spec.kernel.group, self.spec.panel_width
            panel = self.shared.moved(floor_div(column, width), floor_div(k, group))
            return PrefetchRegion(panel.rows(), -(-depth // group), width)
        if self.transposed_b:
            return PrefetchRegion(self.b.moved(column, k), columns, depth)
        return PrefetchRegion(self.b.moved(k, column), depth, columns)

    def _fetches(self, now: Any, k0: Any, column: Any) -> list[Prefetch]:
        """Return the prefetches of A from `k0` on, and of B from there and from `column` on.

        With panels of short vectors those of B that are next, in the step that is at
        `now`: a step is long there, and its operands fill the second-level cache. Nothing where B
        is streamed: its own rows are fetched as they are read, and of A a step takes a line.
        """
        if self._is_streamed():
            return []
        is_short = self.spec.machine.vector_bytes < LONG_VECTOR_BYTES
        if is_short and (self.b_copy is not None or self.shared is not None):
            window = 1 if self.b_copy is None else self.b_copy.window
            width = self.spec.panel_width
            return [spread_next_window(self._b_region, now, (k0, column), width, window)]
        k, m, n = self.steps.capacity, self.extent.m, self.extent.n
        if self.transposed_a:
            a = PrefetchRegion(self.a.moved(k0, 0), k, m)
        else:
            a = PrefetchRegion(self.a.moved(0, k0), m, k)
        if self.shared is not None:
            return [spread(a)]
        if self.transposed_b:
            return [spread(a, PrefetchRegion(self.b.moved(column, k0), n, k))]
        b = self.b.moved(k0, column)
        if self.b_copy is None:
            return [spread(a, PrefetchRegion(b, k, n))]
        window = self.b_copy.window
        return [spread(a), spread_by_panel(b, k, self.spec.panel_width, window)]
