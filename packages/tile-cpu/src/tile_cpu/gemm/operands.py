"""Operands of a register-tiled product in the forms the kernel reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.gemm.instruction_kernel import MicroKernel
from tile_cpu.gemm.register_tile_shape import GemmForm, RegisterTile
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.tir.build import allocate, scratch, vload, vstore
from tile_cpu.tir.nodes import PrimExpr, Stmt, TirBuffer
from tile_cpu.vectors import Matrix, as_expr, floor_div, floor_mod

# Rows of A in scratch are this many bytes longer than needed: rows a power of two apart
# would compete for the same cache sets.
ROW_PADDING_BYTES = 64
# Rows in a strip of k-major A.
STRIP = 8


@dataclass(frozen=True, slots=True)
class GemmSpec:
    """What is multiplied how: the machine, the inner step, the register tile, the loops."""

    machine: CpuMachine
    kernel: MicroKernel
    tile: RegisterTile
    form: GemmForm = GemmForm.PANELS

    @property
    def panel_width(self) -> int:
        """Columns of B per packed panel: NR."""
        return self.tile.nv * self.kernel.lanes


@dataclass(frozen=True, slots=True)
class OperandA:
    """The row operand: one group of k of one row is broadcast to all lanes.

    `matrix` has ``(i, k)`` elements of `MicroKernel.a_dtype`, or, if `k_major`, ``(k group, i)``
    elements of the kernel's group type.
    """

    matrix: Matrix
    k_major: bool = False
    strip: int = 0  # neighbours along i of a `k_major` matrix that lie together; 0: in rows
    sums: TirBuffer | None = None  # int32[m] to subtract from each row, see `emit_row_sums`

    def group(self, kernel: MicroKernel, row: Any, q: Any) -> PrimExpr:
        """Return group `q` of `row` as one scalar."""
        if self.k_major:
            return self.matrix.load(q, row, 1)
        if kernel.group > 1:
            return reinterpret(self.matrix.load(row, q * kernel.group, kernel.group), "int32", 1)
        return self.matrix.load(row, q, 1)


@dataclass(frozen=True, slots=True)
class PackedB:
    """B in panels: ``[n / NR][k / group][NR]`` groups."""

    buffer: TirBuffer  # scratch of the kernel's group type; see `packed_b`
    nv: int  # vectors per panel row, NR / lanes
    window: int = 0  # panels there is room for when it holds only some at a time; 0 means all
    panel: Any = 0  # where the block at hand begins among the panels
    row: Any = 0  # and, in groups, along k

    def moved(self, panel: Any, row: Any) -> PackedB:
        """Return the panels from `panel` on, and of each the group rows from `row` on."""
        return replace(self, panel=self.panel + panel, row=self.row + row)

    def load(self, kernel: MicroKernel, q: Any, vector: Any, count: Any = None) -> PrimExpr:
        """Return group row `q` of the `vector`-th vector of columns; panels are padded."""
        return vload(self.buffer, self._indices(kernel, q, vector), kernel.lanes)

    def store(self, kernel: MicroKernel, q: Any, vector: Any, value: PrimExpr) -> Stmt:
        """Set group row `q` of the `vector`-th vector of columns."""
        bits = reinterpret(value, kernel.group_dtype, kernel.lanes)
        return vstore(self.buffer, self._indices(kernel, q, vector), bits, kernel.lanes)

    def rows(self) -> Matrix:
        """Return the panel at hand as a matrix: a row for each group along k."""
        return Matrix(self.buffer, lambda q, j: [self.panel, self.row + q, j])

    def _indices(self, kernel: MicroKernel, q: Any, vector: Any) -> list[PrimExpr]:
        panel, within = floor_div(vector, self.nv), floor_mod(vector, self.nv)
        if self.window:
            panel = floor_mod(panel, self.window)
        at = (panel, q) if self.window else (self.panel + panel, self.row + q)
        return [*map(as_expr, at), as_expr(within * kernel.lanes)]


@dataclass(frozen=True, slots=True)
class TilePanels:
    """B in panels in the memory of a tile: ``[n / NR][k / group][NR][group]`` elements."""

    buffer: TirBuffer  # flat, of the tile's memory type, with the bits of `MicroKernel.b_dtype`
    nv: int  # vectors per panel row, NR / lanes
    groups: int  # along k

    def load(self, kernel: MicroKernel, q: Any, vector: Any, count: Any = None) -> PrimExpr:
        """Return group row `q` of the `vector`-th vector of columns; panels are whole."""
        value = vload(self.buffer, [self._at(kernel, q, vector)], kernel.chunk)
        return reinterpret(value, kernel.group_dtype, kernel.lanes)

    def store(self, kernel: MicroKernel, q: Any, vector: Any, value: PrimExpr) -> Stmt:
        """Set group row `q` of the `vector`-th vector of columns."""
        bits = reinterpret(value, str(self.buffer.dtype), kernel.chunk)
        return vstore(self.buffer, [self._at(kernel, q, vector)], bits, kernel.chunk)

    def _at(self, kernel: MicroKernel, q: Any, vector: Any) -> PrimExpr:
        panel, within = floor_div(vector, self.nv), floor_mod(vector, self.nv)
        return as_expr(((panel * self.groups + q) * self.nv + within) * kernel.chunk)


@dataclass(frozen=True, slots=True)
class DirectB:
    """B where it lies, ``(k, j)``, for kernels whose group is 1; converted while reading."""

    matrix: Matrix
    ahead: Any = 0  # fetch the same columns this many rows below what is read; 0 for nothing

    def load(self, kernel: MicroKernel, q: Any, vector: Any, count: Any = None) -> PrimExpr:
        """Return row `q` of the `vector`-th vector of columns, zero from lane `count` on."""
        lanes = kernel.lanes
        return self.matrix.load_as(kernel.b_dtype, q, vector * lanes, lanes, count)


@dataclass(frozen=True, slots=True)
class PackingB:
    """B where it lies, which is put into a panel as it is read."""

    source: DirectB
    packed: PackedB  # they hold B for everybody who multiplies later

    def load(self, kernel: MicroKernel, q: Any, vector: Any, count: Any = None) -> PrimExpr:
        """Return row `q` of the `vector`-th vector of columns, zero from lane `count` on."""
        return self.source.load(kernel, q, vector, count)

    def keep(self, kernel: MicroKernel, q: Any, vector: Any, value: PrimExpr) -> Stmt:
        """Put what was loaded from the same place into its panel."""
        return self.packed.store(kernel, q, vector, value)


OperandB: TypeAlias = "PackedB | TilePanels | DirectB | PackingB"


@dataclass(frozen=True, slots=True)
class Extent:
    """Size of a block: known capacity, and how much of it exists when that varies.

    The latter are int32 expressions, 0 <= valid <= capacity; None means all. What does not exist is
    neither read nor written.
    """

    m: int
    n: int
    k: int
    m_valid: Any = None
    n_valid: Any = None
    k_valid: Any = None

    @property
    def depth(self) -> Any:
        """How much of k exists."""
        return self.k if self.k_valid is None else self.k_valid


# (row, column, lanes, count) -> the vector that starts there; row and column are of the
# block; lanes from `count` on (if not None) lie outside it and must not be touched.
ValueAt: TypeAlias = Callable[[Any, Any, int, Any], PrimExpr]
# (row, column, value, lanes, count) -> the statement that puts it there.
StoreAt: TypeAlias = Callable[[Any, Any, PrimExpr, int, Any], Stmt]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two starts, or of two finishes, decided when a register tile runs."""

    condition: PrimExpr
    then: Start | Finish
    otherwise: Start | Finish

    def starts(self) -> tuple[Start, Start]:
        """Both sides of a choice of starts."""
        return cast("tuple[Start, Start]", (self.then, self.otherwise))

    def finishes(self) -> tuple[Finish, Finish]:
        """Both sides of a choice of finishes."""
        return cast("tuple[Finish, Finish]", (self.then, self.otherwise))


Start: TypeAlias = "ValueAt | Choice | None"
Finish: TypeAlias = "StoreAt | Choice"


def start_from(matrix: Matrix, kernel: MicroKernel) -> ValueAt:
    """Start accumulators from `matrix`."""
    return partial(matrix.load_as, kernel.accumulator)


@dataclass(frozen=True, slots=True)
class StoreTo:
    """Finish by storing to `matrix`, converted to its element type."""

    matrix: Matrix

    def __call__(self, row: Any, column: Any, value: PrimExpr, lanes: int, count: Any) -> Stmt:
        """Return the statement that stores one vector."""
        return self.matrix.store(row, column, value, lanes, count)


@dataclass(frozen=True, slots=True)
class AddTo:
    """Finish by adding to `matrix`: sums of a step begin with 0, so none is long.

    The rounding of a sum grows with its terms: of 9 sums of 64 it is that of 73 terms, not of 576.
    """

    matrix: Matrix
    accumulator: str

    def __call__(self, row: Any, column: Any, value: PrimExpr, lanes: int, count: Any) -> Stmt:
        """Return the statement that adds one vector."""
        before = self.matrix.load_as(self.accumulator, row, column, lanes, count)
        return self.matrix.store(row, column, before + value, lanes, count)


def round_up(value: int, unit: int) -> int:
    """Return the least multiple of `unit` that is at least `value`."""
    return -(-value // unit) * unit


def packed_b(spec: GemmSpec, k: int, n: int, *, window: int = 0) -> tuple[PackedB, list[Stmt]]:
    """Return room for `k` x `n` elements of B in panels, and its allocation.

    k is rounded up so that a transposing pack can write whole squares, and n so that an
    interleaving pack can write whole vectors. With a `window` there is room only for so many
    columns, those that are packed together: whole panels.
    """
    kernel = spec.kernel
    groups = round_up(-(-k // kernel.group), kernel.lanes)
    columns = window or round_up(max(n, 1), window_columns(spec))
    panels = columns // spec.panel_width
    buffer = scratch([panels, groups, spec.panel_width], kernel.group_dtype, "b_panels")
    return PackedB(buffer, spec.tile.nv, panels if window else 0), [allocate(buffer)]


def window_columns(spec: GemmSpec) -> int:
    """Return how many columns of B are packed together: whole panels and whole vectors.

    At least two panels and two lines of memory, because rows of B are often a power of two
    apart and each visit to a row costs a miss in the address cache.
    """
    two_lines = 2 * 64 * 8 // dtype_of(spec.kernel.b_dtype).bits
    return math.lcm(2 * spec.panel_width, spec.kernel.chunk, two_lines)


def copied_a(
    spec: GemmSpec, m: int, k: int, *, k_major: bool = False
) -> tuple[OperandA, list[Stmt]]:
    """Return room for `m` x `k` elements of A in the form the kernel reads, and its allocation.

    k-major elements of 32 bits lie in strips as high as a register tile: it then reads one
    stretch of memory, not half of a line here and there.
    """
    kernel = spec.kernel
    if k_major and kernel.group == 1 and spec.tile.mr == STRIP and kernel.lanes % STRIP == 0:
        strips = round_up(m, kernel.lanes) // STRIP
        columns = max(k, 1) + ROW_PADDING_BYTES // (4 * STRIP)
        buffer = scratch([strips, columns, STRIP], kernel.a_dtype, "a_rows")

        def at(q: Any, i: Any) -> list[Any]:
            return [floor_div(i, STRIP), q, floor_mod(i, STRIP)]

        return OperandA(Matrix(buffer, at), True, STRIP), [allocate(buffer)]
    if k_major:
        rows, columns = -(-k // kernel.group), round_up(m, kernel.chunk)
        dtype = kernel.a_dtype if kernel.group == 1 else "int32"
    else:
        rows, columns, dtype = m, round_up(k, kernel.chunk), kernel.a_dtype
    held = "uint16" if dtype == "bfloat16" else dtype
    buffer = scratch([max(rows, 1), padded_row(columns, dtype)], held, "a_rows")
    return OperandA(Matrix.of(buffer, element=dtype), k_major), [allocate(buffer)]


def padded_row(columns: int, dtype: str) -> int:
    """Return a row length for scratch tiles: `columns` and a little, against cache conflicts."""
    return columns + ROW_PADDING_BYTES // max(1, dtype_of(dtype).bits // 8)
