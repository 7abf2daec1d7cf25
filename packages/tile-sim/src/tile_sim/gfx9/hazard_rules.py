"""The distances themselves, in wait states: instructions that issue, and what ``s_nop`` counts.

Source: the sections on data hazards and on manually inserted wait states of AMD's instruction
set documents of MI200 and MI300, and the hazard recogniser of LLVM, which inserts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tile_sim.gfx9.instruction import EXEC_IDS, M0_IDS, VCC_IDS, Instruction, Unit, ids
from tile_sim.gfx9.matrix import Shape, shape_of
from tile_sim.gfx9.operands import FIRST_SCALAR_ID, Operand, parse_operand
from tile_sim.gfx9.vector import OPERATIONS, base_name

Need = tuple[int, str]
_NONE: Need = (0, "")
_LANE_OPERATIONS = ("v_readlane", "v_readfirstlane", "v_writelane")
_MEMORY_KINDS = frozenset({Unit.MEMORY, Unit.SHARED})


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a matrix instruction of so many groups of four cycles asks of those behind it.

    A fast one runs on the matrix cores proper: neither floats of 32 bits nor doubles do on gfx942.
    """

    shape: Shape
    passes: int
    is_fast: bool

    @property
    def is_double(self) -> bool:
        """Say whether it computes with doubles."""
        return self.shape.accumulator == "f64"


def matrix_of(instruction: Instruction, architecture: str) -> Matrix | None:
    """Return the timing of a matrix instruction; None for others."""
    shape = shape_of(instruction.line.mnemonic) if instruction.kind is Unit.MATRIX else None
    if shape is None:
        return None
    passes = {32: 16, 16: 8, 4: 2}[shape.size]
    is_fast = architecture == "gfx90a" or shape.left not in {"f32", "f64"}
    if architecture != "gfx90a" and is_fast and shape.blocks == 1:
        passes //= 2
    return Matrix(shape, passes, is_fast)


def reach_of(producer: Instruction) -> int:
    """Return how far behind an instruction another one may be too close to it."""
    if producer.kind is Unit.MATRIX:
        return 21
    if producer.kind is Unit.VECTOR:
        return 5
    if producer.kind is Unit.SCALAR:
        return 1 if producer.writes & M0_IDS else 0
    return 1 if producer.kind is Unit.MEMORY and not producer.writes else 0


def needed(producer: Instruction, consumer: Instruction, architecture: str) -> Need:
    """Return the wait states that must lie between two instructions, and what happens there."""
    written = producer.writes
    is_apart = written.isdisjoint(consumer.reads) and written.isdisjoint(consumer.writes)
    if is_apart and producer.kind is Unit.VECTOR and written.isdisjoint(EXEC_IDS):
        return _NONE
    if producer.kind is Unit.MATRIX:
        return _behind_matrix(producer, consumer, architecture)
    if producer.kind is Unit.VECTOR:
        rules: tuple[Callable[[Instruction, Instruction, str], Need], ...] = (
            _behind_scalar_result, _behind_lanes, _behind_slow, _behind_dot,
        )  # fmt: skip
        return max(rule(producer, consumer, architecture) for rule in rules)
    if producer.kind is Unit.SCALAR:
        if consumer.kind is Unit.MEMORY and consumer.reads & M0_IDS:
            return 1, "a load into shared memory reads M0 behind a scalar write"
        return _NONE
    return _behind_store(producer, consumer)


def _scalars(registers: frozenset[int]) -> frozenset[int]:
    return frozenset(r for r in registers if r >= FIRST_SCALAR_ID)


def _vectors(registers: frozenset[int]) -> frozenset[int]:
    return frozenset(r for r in registers if r < FIRST_SCALAR_ID)


def _is_vector(instruction: Instruction) -> bool:
    return instruction.kind in {Unit.VECTOR, Unit.MATRIX}


def _behind_scalar_result(producer: Instruction, consumer: Instruction, arch: str) -> Need:
    """Rules for vector instructions that write scalar registers, VCC and EXEC among them."""
    written = _scalars(producer.writes)
    if not written:
        return _NONE
    name = base_name(consumer.line.mnemonic)
    needs: list[Need] = [_NONE]
    if consumer.kind is Unit.MEMORY and written & consumer.reads:
        needs.append((5, "memory is addressed by what a vector instruction wrote"))
    if name in {"v_readlane_b32", "v_writelane_b32"}:
        lane = parse_operand(consumer.line.operands[2])
        if lane is not None and written & ids([lane]):
            needs.append((4, "a lane is chosen by what a vector instruction wrote"))
    if name.startswith("v_div_fmas") and written & VCC_IDS:
        needs.append((4, "a division reads VCC behind a vector write"))
    if written & EXEC_IDS:
        if _moves_lanes(consumer):
            needs.append((5, "lanes move behind a vector write of EXEC"))
        if consumer.kind is Unit.MATRIX:
            needs.append((4, "matrices are multiplied behind a vector write of EXEC"))
        if arch != "gfx90a" and name.startswith(_LANE_OPERATIONS):
            needs.append((4, "a lane is accessed behind a vector write of EXEC"))
    if arch != "gfx90a" and _is_vector(consumer) and written & consumer.reads:
        needs.append((2, "a vector instruction reads a scalar that another one wrote"))
    return max(needs)


def _moves_lanes(instruction: Instruction) -> bool:
    return instruction.line.mnemonic.endswith("_dpp")


def _moved_source(instruction: Instruction) -> Operand | None:
    """Return the source whose lanes move: the first behind the destinations."""
    operands = instruction.line.operands
    first = 2 if "_co_" in instruction.line.mnemonic else 1
    return parse_operand(operands[first])


def _behind_lanes(producer: Instruction, consumer: Instruction, arch: str) -> Need:
    """Rules for vector instructions that write vector registers."""
    shared = _vectors(producer.writes) & consumer.reads
    if not shared or not _is_vector(consumer):
        return _NONE
    name = base_name(consumer.line.mnemonic)
    if _moves_lanes(consumer):
        source = _moved_source(consumer)
        if source is not None and shared & ids([source]):
            return 2, "lanes move that a vector instruction wrote"
    if consumer.kind is Unit.MATRIX:
        return 2, "matrices are multiplied that a vector instruction wrote"
    if arch != "gfx90a" and name.startswith(_LANE_OPERATIONS[:2]):
        return 1, "a lane is read that a vector instruction wrote"
    return _NONE


def _behind_slow(producer: Instruction, consumer: Instruction, arch: str) -> Need:
    """Rules of gfx942 for results that come late, or fill a part of a register."""
    if arch == "gfx90a" or consumer.kind is not Unit.VECTOR:
        return _NONE
    if not _vectors(producer.writes) & consumer.reads:
        return _NONE
    if _is_slow(producer) and not _is_slow(consumer):
        return 1, "a vector instruction reads the result of a transcendental one"
    selects = producer.line.modifiers.get("dst_sel", "DWORD")
    if selects != "DWORD":
        return 1, "a vector instruction reads a register of which a part was written"
    return _NONE


def _is_slow(instruction: Instruction) -> bool:
    found = OPERATIONS.get(base_name(instruction.line.mnemonic))
    return found is not None and found.is_slow


def _behind_dot(producer: Instruction, consumer: Instruction, arch: str) -> Need:
    """Rules for dot products: only the sum of the same instruction takes their result at once."""
    name = base_name(producer.line.mnemonic)
    if not name.startswith("v_dot"):
        return _NONE
    is_same = base_name(consumer.line.mnemonic) == name
    if consumer.kind is Unit.VECTOR and producer.writes & consumer.writes and not is_same:
        return 3, "a vector instruction overwrites the result of a dot product"
    if consumer.kind not in {Unit.VECTOR, *_MEMORY_KINDS} or not producer.writes & consumer.reads:
        return _NONE
    if is_same:
        operands = [parse_operand(text) for text in consumer.line.operands[1:3]]
        if not producer.writes & ids(operand for operand in operands if operand):
            return _NONE
    return 3, "the result of a dot product is read"


def _behind_store(producer: Instruction, consumer: Instruction) -> Need:
    """Wide stores still read their data when the next instruction issues."""
    if consumer.kind is not Unit.VECTOR or "_store_dword" not in producer.line.mnemonic:
        return _NONE
    is_buffer = producer.line.mnemonic.startswith("buffer")
    if is_buffer and producer.line.operands[3].startswith(("s", "m", "v")):
        return _NONE
    data = parse_operand(producer.line.operands[0 if is_buffer else 1])
    if data is None or data.count < 3 or not ids([data]) & consumer.writes:
        return _NONE
    return 1, "the data of a wide store is overwritten"


def _behind_matrix(producer: Instruction, consumer: Instruction, arch: str) -> Need:
    told = matrix_of(producer, arch)
    if told is None:
        return _NONE
    if consumer.kind is Unit.MATRIX:
        return _matrix_behind_matrix(told, producer, consumer, arch)
    needs: list[Need] = [_NONE]
    is_memory = consumer.kind in _MEMORY_KINDS
    if (consumer.kind is Unit.VECTOR or is_memory) and producer.writes & consumer.reads:
        needs.append((_until_read(told, arch, is_memory), "the result of a matrix product is read"))
    if consumer.kind is Unit.VECTOR:
        if producer.writes & consumer.writes:
            need = _until_read(told, arch, is_memory=False)
            needs.append((need, "a product of matrices is overwritten"))
        addend = parse_operand(producer.line.operands[3])
        is_kept = told.is_fast and not told.is_double
        if addend is not None and ids([addend]) & consumer.writes and is_kept:
            needs.append((told.passes - 1, "the addend of a product of matrices is overwritten"))
    return max(needs)


def _until_read(told: Matrix, arch: str, is_memory: bool) -> int:
    """Return the wait states before a product may be read, or written anew."""
    if told.is_double:
        small, large = (9, 18) if is_memory else (6, 11)
        if arch == "gfx950" and not is_memory:
            large = 19
        return small if told.shape.size == 4 else large
    if arch == "gfx90a" or told.is_fast:
        return told.passes + 3 + (arch == "gfx950" and told.passes > 2)
    return told.passes + 2


def _matrix_behind_matrix(
    told: Matrix, producer: Instruction, consumer: Instruction, arch: str
) -> Need:
    left, right, addend = (parse_operand(text) for text in consumer.line.operands[1:4])
    operands = ids(operand for operand in (left, right) if operand is not None)
    if producer.writes & operands:
        if told.is_double:
            return _until_read(told, arch, is_memory=False), "a product is multiplied again"
        late = 3 if arch == "gfx90a" or told.is_fast else 2
        return told.passes + late, "a product is multiplied again"
    taken = ids([addend]) if addend is not None else frozenset()
    if not producer.writes & taken:
        return _NONE
    if taken == producer.writes:
        is_short = told.shape.size == 4
        needs = 4 if is_short and told.is_double else 2 if is_short and arch != "gfx90a" else 0
        return needs, "a product of small matrices is added to"
    if told.is_double:
        return 4 if told.shape.size == 4 else 9, "a part of a product is added to"
    return told.passes + (arch != "gfx90a" and told.is_fast), "a part of a product is added to"
