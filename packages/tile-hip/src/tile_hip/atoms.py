"""The matrix instructions of AMD's waves, as data: all of them follow from one formula.

A wave of 64 lanes multiplies D×K by K×D, with D = 32 or 16. Lanes form G = 64 / D groups of one
lane for each row. Along the other dimension a group has runs of neighbours: runs of the first
group, of the second, …, then the next runs of each; see `held_in_runs`. For the accumulator these
runs have 4 elements (float64: one). For the operands any order of K is right that is the same for
both, so that their runs are ours to say:

* as many elements as one lane reads from shared memory at once, of one or several instructions
  that follow each other along K (PACK),
* those of the accumulator: it is then an operand as it is, and stays where it is,
* or single elements.

An operand whose neighbours in memory lie across K is read so too: a lane has neighbouring rows of
it then, of as many products, which share a lane's registers in turns (`Pieces`).

Instructions as they are have columns of the accumulator in a lane. The header gives them the
operands in the other order, so that neighbours of a row are in one lane. Shapes: AMD "CDNA3
Instruction Set Architecture", "Matrix Arithmetic Instructions"; layouts: AMD matrix instruction
calculator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from tile_core.dtypes import DType, dtype_of
from tile_core.layout import Fragment
from tile_core.machine import SimtMachine
from tile_core.simt.atoms import MatrixAtom, register_types

LANES = 64
"""Threads of a wave."""

ROUNDS_FLOAT32 = "float32_as_xf32"
"""A feature that users grant, and no machine has: products of float32 may round to xf32."""

_READ_BITS = 128
"""What one lane reads from shared memory at once."""

_FNUZ = ("float8_e4m3fnuz", "float8_e5m2fnuz")
_OCP = ("float8_e4m3fn", "float8_e5m2")


ElementPlace: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]
"""Lane and register of an element, given its row and its place along the other dimension."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Products that are made of the same lanes' neighbouring rows and columns.

    There are so many along M and N, and neighbours are side by side in the registers of the
    operand or not, as reads across K leave them.
    """

    rows: tuple[int, bool] = (1, False)
    columns: tuple[int, bool] = (1, False)


ONE_PIECE = Pieces()
"""One product at a time."""


@dataclass(frozen=True, slots=True)
class MatrixInstruction:
    """One instruction: the accumulator of D×D is increased by the product of D×K and K×D.

    D is `edge`; a machine must have the ability `feature`.
    """

    feature: str
    edge: int
    k: int
    a: DType
    b: DType
    c: DType

    @property
    def held(self) -> int:
        """Elements of each operand in a lane."""
        return self.k * self.edge // LANES

    @property
    def accumulator_run(self) -> int:
        """Neighbours of a row of the accumulator in a lane."""
        return 1 if self.c.bits == 64 else 4

    def atom(self, pack: int, run: int, pieces: Pieces = ONE_PIECE) -> MatrixAtom:
        """Return `pack` instructions that follow each other along K, for each of the pieces.

        A lane holds `run` neighbours along K.
        """
        edge, depth, held = self.edge, self.k * pack, self.held * pack
        operand, total = held_in_runs(edge, run), held_in_runs(edge, self.accumulator_run)
        (rows, by_rows), (columns, by_columns) = pieces.rows, pieces.columns
        slots = edge * edge // LANES * columns

        def of_accumulator(i: Any, j: Any) -> tuple[Any, Any]:
            lane, register = total(i // rows, j // columns)
            return lane, i % rows * slots + register * columns + j % columns

        a = _in_pieces(operand, rows, held, by_rows)
        b = _in_pieces(operand, columns, held, by_columns)
        strides = (columns, rows if by_rows else 1, columns if by_columns else 1)
        return MatrixAtom(
            function=f"mma_{edge}x{edge}x{self.k}",
            template=(pack,) if strides == (1, 1, 1) else (pack, *strides),
            pieces=(rows, columns),
            feature=self.feature,
            a_dtype=self.a,
            b_dtype=self.b,
            c_dtype=self.c,
            a=Fragment((edge * rows, depth), a),
            b=Fragment((depth, edge * columns), lambda k, j: b(j, k)),
            c=Fragment((edge * rows, edge * columns), of_accumulator),
        )


def held_in_runs(edge: int, run: int) -> ElementPlace:
    """Return lane and register of element ``x`` in row ``i`` of `edge` rows.

    So many neighbours of a row as `run` says are in one lane, in registers that follow each
    other.
    """
    groups = LANES // edge

    def place(i: Any, x: Any) -> tuple[Any, Any]:
        return i + x // run % groups * edge, x // (run * groups) * run + x % run

    return place


def _in_pieces(of_piece: ElementPlace, count: int, held: int, side_by_side: bool) -> ElementPlace:
    """Return lane and register in an operand whose neighbouring rows belong to so many pieces.

    One piece has `held` registers.
    """

    def place(i: Any, k: Any) -> tuple[Any, Any]:
        lane, register = of_piece(i // count, k)
        piece = i % count
        return lane, register * count + piece if side_by_side else piece * held + register

    return place


def _rows() -> Iterator[tuple[str, int, int, str, str, str]]:
    """Yield feature, K of the forms of 32 and of 16 rows (0: none), and element types."""
    for kind, narrow, wide in (
        ("float16", "mfma_f16", "mfma_f16_wide"),
        ("bfloat16", "mfma_bf16", "mfma_bf16_wide"),
    ):
        yield wide, 16, 32, kind, kind, "float32"
        yield narrow, 8, 16, kind, kind, "float32"
    yield "mfma_i8_wide2", 32, 64, "int8", "int8", "int32"
    yield "mfma_i8_wide", 16, 32, "int8", "int8", "int32"
    yield "mfma_i8", 8, 16, "int8", "int8", "int32"
    for feature, kinds in (("mfma_fp8_fnuz", _FNUZ), ("mfma_fp8", _OCP)):
        for a in kinds:
            for b in kinds:
                yield feature, 16, 32, a, b, "float32"
    for kind in ("tfloat32", "float32"):
        yield "mfma_xf32", 4, 8, kind, kind, "float32"
        yield "mfma_f32", 2, 4, kind, kind, "float32"
    yield "mfma_f64", 0, 4, "float64", "float64", "float64"


@cache
def all_instructions() -> tuple[MatrixInstruction, ...]:
    """Return every row of the table; of the same types, those with a larger K come first."""
    return tuple(
        MatrixInstruction(feature, edge, k, *map(dtype_of, types))
        for feature, wide, narrow, *types in _rows()
        for edge, k in ((32, wide), (16, narrow))
        if k
    )


def all_atoms() -> tuple[MatrixAtom, ...]:
    """Return every atom of one piece that the instructions of the table make."""
    found = [i.atom(pack, i.held * pack) for i in all_instructions() for pack in _packs(i)]
    found += [i.atom(_accumulator_pack(i), i.accumulator_run) for i in all_instructions()]
    return tuple(found)


@cache
def instructions_for(machine: SimtMachine, a: str, b: str, c: str) -> tuple[MatrixInstruction, ...]:
    """Return the instructions of `machine` that multiply tiles of elements `a` and `b` exactly.

    If none takes these types, one is chosen whose types hold all their values: operands in
    shared memory are converted on their way into registers. Where the machine is said to do
    so, float32 is rounded as xf32 is: half the mantissa, for several times the speed.
    """
    for left, right in register_types(a, b, float32=True):
        found = tuple(
            i
            for i in all_instructions()
            if (i.a, i.b, i.c) == (left, right, c) and machine.has(i.feature)
        )
        exact = tuple(i for i in found if not _rounds(i))
        if found:
            return found if machine.has(ROUNDS_FLOAT32) else exact
    return ()


def _rounds(instruction: MatrixInstruction) -> bool:
    return instruction.feature == "mfma_xf32" and instruction.a == "float32"


@cache
def atoms_in_runs(
    machine: SimtMachine, a: str, b: str, c: str, pieces: Pieces = ONE_PIECE
) -> tuple[MatrixAtom, ...]:
    """Return the atoms whose lanes hold neighbours along K: most at once come first.

    These are 16 bytes of the narrower tile. Of a wider one they are several reads.
    """
    bits = min(max(8, dtype_of(x).bits) for x in (a, b))
    return tuple(
        i.atom(pack, i.held * pack, pieces)
        for i in instructions_for(machine, a, b, c)
        for pack in _packs(i, bits)
    )


@cache
def atoms_like_accumulators(
    machine: SimtMachine, a: str, b: str, c: str, pieces: Pieces = ONE_PIECE
) -> tuple[MatrixAtom, ...]:
    """Return the atoms whose operands are held as accumulators are."""
    return tuple(
        i.atom(_accumulator_pack(i), i.accumulator_run, pieces)
        for i in instructions_for(machine, a, b, c)
    )


@cache
def atoms_in_turns(
    machine: SimtMachine, a: str, b: str, c: str, pieces: Pieces = ONE_PIECE
) -> tuple[MatrixAtom, ...]:
    """Return the atoms in which neighbours along K are in different groups of lanes.

    Groups that read across K then read neighbouring rows of a tile.
    """
    found = instructions_for(machine, a, b, c)
    return tuple(i.atom(pack, 1, pieces) for i in found for pack in _packs(i))


def _packs(instruction: MatrixInstruction, bits: int = 0) -> Iterator[int]:
    """Yield how many instructions may follow each other: as many as 16 bytes feed, and fewer.

    `bits` is the width of an element in memory, if it is not that in registers.
    """
    pack = max(1, _READ_BITS // (instruction.held * (bits or instruction.a.bits)))
    while pack:
        yield pack
        pack //= 2


def _accumulator_pack(instruction: MatrixInstruction) -> int:
    """Return how many instructions consume whole runs of an accumulator."""
    return max(1, instruction.accumulator_run // instruction.held)
