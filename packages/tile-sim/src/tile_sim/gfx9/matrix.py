"""Matrix instructions: the layouts of their operands over the 64 lanes, and their sums.

With D rows and columns (32 or 16), G = 64 / D groups of lanes and L = K / G: lane l holds of A
row ``l % D`` and of B column ``l % D``, both at ``k = L * (l // D) + e`` for e below L, packed
from the low bits of the first register. It holds of C and D column ``l % D``; register r lies in
row ``8 * (r // 4) + 4 * (l // 32) + r % 4`` if D is 32, in row ``4 * (l // 16) + r`` if D is 16.
Forms with several blocks give each block ``64 / blocks`` lanes. Source: AMD's instruction set
documents and its matrix instruction calculator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.fp8 import format_of, values
from tile_sim.gfx9.instruction import (
    Context,
    Instruction,
    Undecodable,
    Unit,
    bits,
    ids,
    operands_of,
    refuse_modifiers,
    vector_instruction,
)
from tile_sim.gfx9.operands import Bank, Operand, constant_bits
from tile_sim.gfx9.wave import Wave

_NAME = re.compile(
    r"v_mfma_(f32|i32|f64)_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?"
    r"(f32|f16|bf16|i8|xf32|f64|(?:fp8|bf8)_(?:fp8|bf8))(_1k)?(?:_e64)?$"
)
_WIDTH = {"f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "f64": 64}


@dataclass(frozen=True, slots=True)
class Shape:
    """One form of the instruction: ``D = A @ B + C`` for each of its blocks."""

    accumulator: str
    left: str
    right: str
    size: int
    depth: int
    blocks: int

    @property
    def elements(self) -> int:
        """Return how many elements of A a lane holds."""
        return self.size * self.depth * self.blocks // 64

    @property
    def input_registers(self) -> int:
        """Return how many registers of A a lane holds."""
        return max(1, self.elements * _WIDTH[self.left] // 32)

    @property
    def output_registers(self) -> int:
        """Return how many registers of D a lane holds."""
        words = 2 if self.accumulator == "f64" else 1
        return words * self.size * self.size * self.blocks // 64


def shape_of(mnemonic: str) -> Shape | None:
    """Return the form that a mnemonic names; None if it names none.

    Examples
    --------
    >>> shape_of("v_mfma_f32_32x32x8_f16").elements
    4
    """
    found = _NAME.match(mnemonic)
    if found is None or found[2] != found[3]:
        return None
    left, _, right = found[6].partition("_")
    size, depth = int(found[2]), int(found[4])
    blocks = int(found[5]) if found[5] else _blocks(size, depth, left, is_double=bool(found[7]))
    return Shape(found[1], left, right or left, size, depth, blocks)


def _blocks(size: int, depth: int, left: str, *, is_double: bool) -> int:
    """Return the blocks of a form whose name does not tell: several, if it is not deep."""
    if size == 4:
        return 4 if left == "f64" else 16
    least = {"f32": 2, "f16": 8, "bf16": 4, "i8": 8}.get(left, 0) * (1 + is_double)
    return 1 if depth >= least else 64 // size


def decode(line: Line, context: Context) -> Instruction | None:
    """Return a matrix instruction; None if the line is none."""
    shape = shape_of(line.mnemonic)
    if shape is None:
        return None
    refuse_modifiers(line, ("cbsz", "abid", "blgp", "neg"))
    if any(int(line.modifiers.get(name, "0")) for name in ("cbsz", "abid")):
        raise Undecodable("blocks of A that are broadcast are unknown")
    target, left, right, addend = operands_of(line, 4)
    _check_registers(shape, target, left, right, addend)
    signs = _signs(line)
    before, after = _accumulator(shape, addend), target.first
    a = _elements(shape.left, shape, left, context, signs[0])
    b = _elements(shape.right, shape, right, context, signs[1])
    count = shape.output_registers
    multiply = _double_step if shape.accumulator == "f64" else _plain_step
    step = multiply(shape, _Parts(a, b, before, signs[2]), after, count)
    reads = ids([left, right, addend])
    return vector_instruction(line, step, reads, ids([target]), Unit.MATRIX)


def _signs(line: Line) -> list[float]:
    """Return the signs of A, B and C: products of doubles may turn them around."""
    if "neg" in line.modifiers:
        flags = bits(line.modifiers["neg"])
    else:
        number = int(line.modifiers.get("blgp", "0"))
        flags = [number >> i & 1 for i in range(3)]
        if number and "f64" not in line.mnemonic:
            raise Undecodable("lanes of B that are moved are unknown")
    return [-1.0 if flag else 1.0 for flag in flags]


def _check_registers(shape: Shape, target: Operand, *sources: Operand) -> None:
    left, right, addend = sources
    expected = (shape.output_registers, shape.input_registers, shape.input_registers)
    counts = (target.count, left.count, right.count)
    if counts != expected:
        raise Undecodable(f"it has {counts} registers in place of {expected}")
    if addend.bank is Bank.VECTOR and (addend.first < 256) != (target.first < 256):
        raise Undecodable("its addend and its result lie in registers of two kinds")
    if addend.bank is Bank.VECTOR and addend.count != target.count:
        raise Undecodable(f"its addend has {addend.count} registers, its result {target.count}")


def _elements(
    name: str, shape: Shape, operand: Operand, context: Context, sign: float
) -> Callable[[Wave], Array]:
    """Return a reader of A or B as ``(blocks, D, K)``: rows of A, columns of B."""
    first, count = operand.first, operand.count
    convert = _converter(name, context)
    blocks, size = shape.blocks, shape.size
    groups = 64 // (size * blocks)

    def read(w: Wave) -> Array:
        words = np.ascontiguousarray(w.vectors[first : first + count].T)
        numbers = convert(words)
        if sign < 0:
            numbers = -numbers
        by_group = numbers.reshape(blocks, groups, size, -1)
        if name == "f64":
            by_group = numbers.reshape(groups, blocks, size, -1).transpose(1, 0, 2, 3)
        return by_group.transpose(0, 2, 1, 3).reshape(blocks, size, -1)

    def read_block(w: Wave) -> Array:
        numbers = convert(np.ascontiguousarray(w.vectors[first : first + count].T))
        return numbers.reshape(groups, size, -1).transpose(1, 0, 2).reshape(1, size, -1)

    return read_block if blocks == 1 and sign > 0 else read


def _products(a: Array, b: Array) -> Array:
    """Return ``A @ B`` of each block; both are given as rows."""
    if len(a) == 1:
        return np.matmul(a[0], b[0].T)
    return np.matmul(a, b.transpose(0, 2, 1))


def _converter(name: str, context: Context) -> Callable[[Array], Array]:
    """Return what makes numbers of packed words, ``(64, registers) -> (64, elements)``."""
    if name == "f16":
        return lambda words: words.view(np.float16).astype(np.float32)
    if name == "bf16":
        return lambda words: (words.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if name == "i8":
        return lambda words: words.view(np.int8).astype(np.float64)
    if name in {"fp8", "bf8"}:
        table = values(format_of(name, context.architecture))
        return lambda words: table[words.view(np.uint8)]
    if name == "xf32":
        return lambda words: (words + 0xFFF + (words >> 13 & 1) & 0xFFFFE000).view(np.float32)
    if name == "f64":
        return lambda words: words.view(np.float64)
    return lambda words: words.view(np.float32)


def _accumulator(shape: Shape, addend: Operand) -> Callable[[Wave], Array]:
    """Return a reader of C, as words in the order of registers and lanes."""
    first, count = addend.first, shape.output_registers
    if addend.bank is Bank.VECTOR:
        return lambda w: w.vectors[first : first + count]
    is_float, wide = shape.accumulator != "i32", shape.accumulator == "f64"
    found = constant_bits(addend.text, 64 if wide else 32, is_float=is_float)
    halves = [found & 0xFFFFFFFF, found >> 32]
    words = [halves[i % 2] if wide else halves[0] for i in range(count)]
    constant = np.repeat(np.array(words, np.uint32)[:, None], 64, 1)
    return lambda w: constant


def _to_registers(product: Array, size: int, blocks: int) -> Array:
    """Bring ``(blocks, rows, columns)`` into registers and lanes.

    A register of a block of 16 or 4 columns holds several of its rows, 4 apart; further blocks
    follow in further registers (32 columns), or in the lanes and registers that are left.
    """
    if size == 32:
        parts = product.reshape(blocks, 4, 2, 4, 32)
        return parts.transpose(0, 1, 3, 2, 4).reshape(16 * blocks, 64)
    if size == 16:
        parts = product.reshape(blocks, 4, 4, 16)
        return parts.transpose(0, 2, 1, 3).reshape(4 * blocks, 64)
    return product.transpose(1, 0, 2).reshape(4, 64)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Readers of A, B and C, and the sign of C."""

    a: Callable[[Wave], Array]
    b: Callable[[Wave], Array]
    before: Callable[[Wave], Array]
    sign: float


def _plain_step(shape: Shape, parts: _Parts, after: int, count: int) -> Any:
    """Return the step of a form whose sums are floats or 32-bit integers.

    Sums of bytes are taken in doubles, which are exact; EXEC plays no part.
    """
    a, b, before, size, blocks = parts.a, parts.b, parts.before, shape.size, shape.blocks
    dtype = np.int32 if shape.accumulator == "i32" else np.float32
    is_integer = shape.accumulator == "i32"

    def step(w: Wave) -> None:
        product = _to_registers(_products(a(w), b(w)), size, blocks)
        if is_integer:
            product = product.astype(np.int64).astype(np.int32)
        total = before(w).view(dtype) + product
        w.vectors[after : after + count] = total.view(np.uint32)

    return step


def _double_step(shape: Shape, parts: _Parts, after: int, count: int) -> Any:
    """Return the step of a form of doubles: row i lies in register pair i // 4, lanes i % 4."""
    a, b, before, size = parts.a, parts.b, parts.before, shape.size

    def step(w: Wave) -> None:
        product = _products(a(w), b(w))
        if size == 16:
            by_lane = product.reshape(4, 4, 16).reshape(4, 64).T
        else:
            by_lane = product.transpose(1, 0, 2).reshape(64, 1)
        words = np.ascontiguousarray(before(w).T).view(np.float64)
        total = np.ascontiguousarray(words * parts.sign + by_lane)
        w.vectors[after : after + count] = total.view(np.uint32).T

    return step
