"""Cycles of the statements of a block on one core, each times how often it runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from tile_core.arith.affine import Linear, linear_in
from tile_core.arith.constraints import ConstraintSet
from tile_core.cost.arithmetic import FUNCTIONS, arithmetic_of
from tile_core.cost.iteration_spaces import Space, as_factor
from tile_core.cost.kernel_work import region_elements
from tile_core.cost.statement_walk import Visitor
from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.expr import Call, Expr, Extent, Load, Ramp, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Evaluate, For, Let, Pipelined, Stmt, Store, While
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy, Fill, Transpose
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import TileOperator
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize, ReducerUpdate
from tile_core.ops.scan import Scan
from tile_cpu.cost.functions import FUNCTION_CYCLES, OTHER_FUNCTION, QUOTIENT_CYCLES
from tile_cpu.cost.memory import Levels
from tile_cpu.cost.products import Block, ProductCycles, product_cycles, step_count
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.gemm.macrokernel import plan_gemm
from tile_cpu.gemm.register_tile_shape import GemmForm
from tile_cpu.lowering.buffer_addresses import row_major
from tile_cpu.ops import BlockedGemm, StreamedGemm
from tile_cpu.rules.panels import extents_of, tile_spec
from tile_cpu.speeds import CpuSpeeds

NEST_CYCLES = 12.0
"""To enter a nest of loops: bounds, addresses, constants."""

ROW_CYCLES = 4.0
"""To begin another row of vectors."""

ROUND_CYCLES = 3.0
"""Of a loop that is not one of vectors."""

ACROSS_CYCLES = 8.0
"""To add up the lanes of one vector, several rows side by side."""

PAGE_BYTES, PAGE_CYCLES = 4096, 30.0
"""A page of memory, and to find one that the address cache has forgotten."""

SCALAR_CYCLES = 1.0
ATOMIC_CYCLES = 20.0
SCAN_CYCLES = 4.0


class Timing(Visitor):
    """Adds up cycles by what they are spent on: ``multiply``, ``pack`` and so on."""

    def __init__(self, machine: CpuMachine, speeds: CpuSpeeds, levels: Levels) -> None:
        self.machine, self.speeds, self.levels = machine, speeds, levels
        self.cycles: defaultdict[str, float] = defaultdict(float)
        self.notes: dict[str, None] = {}

    def note(self, text: str) -> None:
        """Remember what had to be assumed."""
        self.notes[text] = None

    def loop(self, stmt: For | Pipelined | While, space: Space, inner: Space) -> None:
        """Count the iterations: within one over elements, each is of a vector of these."""
        stores = [*nodes_of(stmt.body, Store)]
        lanes = (
            self._vector_lanes(s.value, nodes_of(s.value, Load), ((s.buffer, s.indices),), inner)
            for s in stores
        )
        self.cycles["loops"] += ROUND_CYCLES * inner.total() / min(lanes, default=1)

    def leaf(self, stmt: Stmt, space: Space) -> None:
        """Count one statement."""
        match stmt:
            case Gemm() | StreamedGemm():
                self._tile_product(stmt, space)
            case BlockedGemm():
                self._blocked_product(stmt, space)
            case TileOperator():
                self._operator(stmt, space)
            case ReducerUpdate(value=value):
                self._elements(value, (), space, more=1.0)
            case Store(buffer=buffer, indices=indices, value=value):
                self._elements(value, ((buffer, indices),), space)
            case Let(value=value) | Evaluate(value=value):
                self._elements(value, (), space)

    def condition(self, cond: Expr, space: Space) -> None:
        """Count the test of a condition."""
        self.cycles["loops"] += SCALAR_CYCLES * space.total() / self._lanes_along(space)

    # Products --------------------------------------------------------------------------------

    def _blocked_product(self, op: BlockedGemm, space: Space) -> None:
        times = space.total()
        if not times:
            return
        m, n = op.mn
        types = (str(op.a.buffer.dtype), str(op.b.buffer.dtype), str(op.accumulator))
        spec = plan_gemm(self.machine, *types, m, n, transposed_b=op.transpose_b)
        k = _mean(op.k, space)
        rows, columns = _valid(op, space, times)
        steps = step_count(spec, k, m)
        copies = op.transpose_a or types[0] != spec.kernel.a_dtype or spec.tile.mr > 8
        block = Block(rows, columns, k, spec.form is GemmForm.PANELS, op.transpose_b, copies)
        once = product_cycles(self.speeds, spec, block, steps)
        self._add_product(once, times)
        operands, _ = op.work().touched or ((), ())
        rows_of_b = n if op.transpose_b else k
        self.cycles["wait"] += self._second_operand(op.b, operands[1], rows_of_b, space)
        arriving = self._arrival(operands[:1], space)
        self.cycles["wait"] += max(0.0, arriving - times * once.total)

    def _tile_product(self, op: Gemm | StreamedGemm, space: Space) -> None:
        times = space.total()
        m, n, k = extents_of(op)
        spec = tile_spec(op, self.machine)
        b_global = op.b.buffer.scope.is_global
        is_dot = spec.form is GemmForm.DOT_ROWS
        in_place = spec.kernel.group == 1 and not op.transpose_b
        copies = not is_dot and (op.transpose_a or str(op.a.buffer.dtype) != spec.kernel.a_dtype)
        packs = not is_dot and (not in_place or b_global)
        block = Block(m, n, k, packs, op.transpose_b, copies)
        once = product_cycles(self.speeds, spec, block, 1.0)
        self._add_product(once, times)
        if b_global:
            arriving = self._arrival((op.b,), space)
            meanwhile = once.total if is_dot else once.pack
            self.cycles["wait"] += max(0.0, arriving - times * meanwhile)

    def _add_product(self, once: ProductCycles, times: float) -> None:
        self.cycles["multiply"] += times * once.multiply
        self.cycles["edges"] += times * (once.edges + NEST_CYCLES)
        self.cycles["pack"] += times * once.pack

    def _second_operand(self, b: Region, all_of_it: Region, rows: float, space: Space) -> float:
        """Return the cycles in which B comes near: it is packed before it is multiplied.

        Each row lies in a page of its own if rows are long: a window of columns looks up as many
        pages as there are rows.
        """
        arriving = self._arrival((all_of_it,), space)
        length = space.constant(b.buffer.shape[-1]) or 0
        if length * b.buffer.dtype.bits / 8 >= PAGE_BYTES:
            arriving += PAGE_CYCLES * rows * space.total()
        return arriving

    # Operators -------------------------------------------------------------------------------

    def _operator(self, op: TileOperator, space: Space) -> None:
        work = op.work()
        reads, writes = work.touched or (op.reads(), op.writes())
        times = space.total()
        vectors = sum(self._vectors(r, space) for r in writes)
        read = sum(self._vectors(r, space) for r in reads)
        per_row = NEST_CYCLES * times + ROW_CYCLES * sum(_rows(r) for r in writes) * times
        cycles = vectors / self.speeds.stores + read / self.speeds.loads
        kind = "copies"
        match op:
            case Fill():
                cycles = vectors / self.speeds.stores
            case Copy(src=src, dst=dst):
                narrow = src.buffer.dtype.bits != dst.buffer.dtype.bits
                cycles += 2.0 * vectors * narrow
            case Transpose():
                cycles += 4.0 * vectors
            case Reduce():
                kind, rows = "reductions", _rows_of_reduction(op) * times
                cycles = read * (1 / self.speeds.loads + 1 / self.speeds.operations)
                cycles += ACROSS_CYCLES * rows
            case ReducerFinalize():
                kind, cycles = "reductions", ACROSS_CYCLES * _elements(op.dst) * times
            case Scan():
                kind, cycles = "reductions", SCAN_CYCLES * _elements(op.src) * times
            case AtomicTile():
                cycles = ATOMIC_CYCLES * _elements(op.src) * times
        cycles += per_row
        moved = self._arrival((*reads, *writes), space)
        self.cycles[kind] += cycles
        self.cycles["wait"] += max(0.0, moved - cycles)

    def _vectors(self, region: Region, space: Space) -> float:
        """Return how many vectors the elements of a region take."""
        lanes = self._lanes(region.buffer.dtype)
        last = static_value(region.extents[-1]) if region.extents else 1
        elements = region_elements(region, space)
        if not last:
            return elements / lanes
        return elements / last * math.ceil(last / lanes)

    def _lanes(self, dtype: DType) -> int:
        return max(1, self.machine.lanes(max(8, min(64, dtype.bits))))

    # Elements --------------------------------------------------------------------------------

    def _elements(
        self,
        value: Expr,
        stores: tuple[tuple[Buffer, tuple[Expr, ...]], ...],
        space: Space,
        more: float = 0.0,
    ) -> None:
        times = space.total()
        if not times:
            return
        own = [*nodes_of(value, Load)]
        lanes = self._vector_lanes(value, own, stores, space)
        row = _row(space)
        vectors = times / row * math.ceil(row / lanes)
        found = arithmetic_of(value)
        cycles = (found.instructions + more) / self.speeds.operations
        cycles += _functions(value) + found.divisions * QUOTIENT_CYCLES
        ports = (len(own) / self.speeds.loads, len(stores) / self.speeds.stores)
        cycles = max(cycles, *ports)  # each has its own
        if lanes == 1:
            cycles = SCALAR_CYCLES * (1 + found.instructions + len(own) + len(stores))
            cycles += _functions(value) / 2 + found.divisions * QUOTIENT_CYCLES
        total = vectors * max(cycles, 1.0 if space.axes else 0.0)
        total += times / row * ROW_CYCLES
        moved = math.fsum(
            self._element_arrival(b, i, space)
            for b, i in (*stores, *((n.buffer, n.indices) for n in own))
        )
        self.cycles["arithmetic"] += total
        self.cycles["wait"] += max(0.0, moved - total)

    def _vector_lanes(
        self,
        value: Expr,
        loads: Iterable[Load],
        stores: Iterable[tuple[Buffer, tuple[Expr, ...]]],
        space: Space,
    ) -> int:
        """Return how many elements are computed at once."""
        inner = [a for a in space.axes if a.is_element]
        if not inner:
            return 1
        var = inner[-1].var
        bits = [value.dtype.bits]
        for buffer, indices in (*((n.buffer, n.indices) for n in loads), *stores):
            bits.append(buffer.dtype.bits)
            if not _is_contiguous(buffer, indices, var):
                return 1
        return max(1, self.machine.lanes(min(64, max(16, *bits) if len(bits) > 1 else bits[0])))

    def _lanes_along(self, space: Space) -> int:
        return self.machine.lanes(32) if any(a.is_element for a in space.axes) else 1

    # Arrival ---------------------------------------------------------------------------------

    def _arrival(self, regions: Iterable[Region], space: Space) -> float:
        """Return the cycles in which the elements of regions reach the first-level cache."""
        return math.fsum(self._bytes_arrive(r.buffer, region_elements(r, space)) for r in regions)

    def _element_arrival(self, buffer: Buffer, indices: tuple[Expr, ...], space: Space) -> float:
        inner = {a.var: a for a in space.axes if a.is_element}
        try:
            reach = space.reach(*indices)
        except Exception:
            return self._bytes_arrive(buffer, space.total())
        unused = [space.constant(a.count) or 1 for v, a in inner.items() if v not in reach]
        return self._bytes_arrive(buffer, space.total() / math.prod(unused or [1]))

    def _bytes_arrive(self, buffer: Buffer, elements: float) -> float:
        level = self.levels.far if buffer.scope.is_global else self.levels.scratch
        if not buffer.scope.is_global and level.name == "L1":
            return 0.0
        return elements * buffer.dtype.bits / 8 / level.bytes_per_cycle


def _is_contiguous(buffer: Buffer, indices: tuple[Expr, ...], var: Var) -> bool:
    """Tell whether neighbours along `var` are neighbours in memory, or one element."""
    slopes = [linear_in(i.base if isinstance(i, Ramp) else i, var) for i in indices]
    known = [slope[0] for slope in slopes if slope is not None]
    if len(known) == len(slopes):
        return not any(known[:-1]) and all(slope in (0, 1) for slope in known[-1:])
    shape = buffer.static_shape
    if shape is None or buffer.strides or any(isinstance(i, Ramp) for i in indices):
        return False
    facts, place = ConstraintSet(), Linear()
    for at, stride in zip(indices, row_major(shape), strict=True):
        place = place + facts.linear(at).times(stride)
    slope, rest = place.apart(var)
    return slope in (0, 1) and not any(var in free_variables(a.expr) for a, _ in rest.terms)


def _functions(value: Expr) -> float:
    """Return the cycles of the functions in an expression, on one vector."""
    return math.fsum(
        FUNCTION_CYCLES.get(node.function, OTHER_FUNCTION)
        for node in nodes_of(value, Call)
        if node.function in FUNCTIONS
    )


def _row(space: Space) -> int:
    """Return how far the innermost index of elements counts, 1 where there is none."""
    inner = [a for a in space.axes if a.is_element]
    return max(1, space.constant(inner[-1].count) or 1) if inner else 1


def _mean(extent: Extent, space: Space) -> float:
    fixed = space.constant(extent)
    if fixed is not None:
        return float(fixed)
    return space.total(as_factor(extent)) / space.total()


def _valid(op: BlockedGemm, space: Space, times: float) -> tuple[float, float]:
    """Return the rows and columns that a block has inside of the tensors, on average."""

    def mean(region: Region, axis: int) -> float:
        ones = tuple(e if d == axis else 1 for d, e in enumerate(region.extents))
        starts = tuple(s if d == axis else 0 for d, s in enumerate(region.starts))
        return region_elements(replace(region, starts=starts, extents=ones), space) / times

    rows = mean(op.a, op.a.buffer.rank - 1 if op.transpose_a else op.a_rows)
    return rows, mean(op.b, op.b_rows if op.transpose_b else op.b.buffer.rank - 1)


def _rows(region: Region) -> float:
    return float(math.prod(static_value(e) or 1 for e in region.extents[:-1]))


def _elements(region: Region) -> float:
    return float(math.prod(static_value(e) or 1 for e in region.extents))


def _rows_of_reduction(op: Reduce) -> float:
    """Return how many vectors have to be added up across: none along columns."""
    along_rows = op.dim == len(op.src.extents) - 1
    return _elements(op.dst) if along_rows else 0.0
