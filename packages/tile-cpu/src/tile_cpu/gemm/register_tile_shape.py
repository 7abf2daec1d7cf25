"""How many rows and vectors one register tile has, and how extents are cut into tiles."""

from __future__ import annotations

from enum import Enum

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine, Isa
from tile_cpu.gemm.instruction_kernel import MicroKernel

# A block of at most this many rows multiplies B where it lies: each of its elements would
# be packed to be used once.
MAX_DIRECT_ROWS = 16
# Up to this many rows that also holds when every element has to be converted.
MAX_VECTOR_ROWS = 4
# Up to this many a transposed B is multiplied as dot products along its rows, and up to the
# number above also if that takes another inner step.
MAX_DOT_ROWS = 16
# Two lines of a cache: processors fetch them from memory together.
PAIR_BYTES = 128


class GemmForm(Enum):
    """How the loops around the inner step are arranged."""

    PANELS = "B is packed into panels"
    DIRECT = "B is read where it lies, (k, n)"
    DOT_ROWS = "dot products along the rows of B, (n, k)"


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """`mr` rows times `nv` vectors of accumulators, held in registers over the k loop."""

    mr: int
    nv: int


@dataclass(frozen=True, slots=True)
class Segment:
    """`count` pieces of `size`, the first at `start`."""

    start: int
    count: int
    size: int


def choose_form(b_dtype: str, m: int, *, transposed_b: bool) -> GemmForm:
    """Return the loop form for blocks of `m` rows."""
    bits = dtype_of(b_dtype).bits
    if transposed_b:
        form, limit = GemmForm.DOT_ROWS, MAX_VECTOR_ROWS if bits <= 8 else MAX_DOT_ROWS
    else:
        form, limit = GemmForm.DIRECT, MAX_DIRECT_ROWS if bits >= 32 else MAX_VECTOR_ROWS
    return form if m <= limit else GemmForm.PANELS


def choose_tile(machine: CpuMachine, kernel: MicroKernel, m: int, n: int) -> RegisterTile:
    """Return the register tile for a block of `m` x `n`.

    The shape hardly matters as long as nothing spills and there are enough independent
    sums to hide the latency of an FMA, so it is chosen for divisibility and for few
    passes over the block of C. Short blocks take all their rows at once.
    """
    vectors = max(1, -(-n // kernel.lanes))
    many = machine.vector_registers == 32
    if many and m <= 16:
        nv = 4 if m <= 6 else 2 if m <= 14 else 1
        return RegisterTile(m, min(nv, vectors))
    if many:
        # Short vectors leave room for a third, and a core with four pipes for them wants it.
        nv = 3 if machine.isa is Isa.AARCH64 else 2
        return RegisterTile(8, min(nv, vectors)) if vectors > 1 else RegisterTile(16, 1)
    if m <= 5:
        return RegisterTile(m, min({1: 6, 2: 4, 3: 3, 4: 2, 5: 2}[m], vectors))
    return RegisterTile(6, min(2, vectors)) if vectors > 1 else RegisterTile(8, 1)


def in_pairs_of_lines(tile: RegisterTile, nbytes: int) -> RegisterTile:
    """Return a tile without the vectors, of `nbytes`, that begin a pair of lines and end within it.

    Lines come from memory in pairs. One row of A waits for nothing but these, and in columns that
    end within a pair it waits for its other line once more.
    """
    pairs = tile.nv * nbytes // PAIR_BYTES
    return RegisterTile(tile.mr, pairs * PAIR_BYTES // nbytes) if pairs else tile


def row_segments(m: int, mr: int) -> tuple[Segment, ...]:
    """Cut `m` rows into register tiles of at most `mr`, none much shorter than half of it.

    ``row_segments(128, 6)`` is twenty tiles of 6 and two of 4: one of 2 would wait for the
    latency of its own additions.
    """
    full, rest = divmod(m, mr)
    if rest == 0:
        return (Segment(0, full, mr),) if full else ()
    if full == 0:
        return (Segment(0, 1, rest),)
    if 2 * rest >= mr:
        return (Segment(0, full, mr), Segment(full * mr, 1, rest))
    both = mr + rest
    head = (Segment(0, full - 1, mr),) if full > 1 else ()
    start = (full - 1) * mr
    if both % 2 == 0:
        return (*head, Segment(start, 2, both // 2))
    return (
        *head,
        Segment(start, 1, both - both // 2),
        Segment(start + both - both // 2, 1, both // 2),
    )
