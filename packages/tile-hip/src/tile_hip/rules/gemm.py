"""How AMD GPUs multiply matrices: by the instructions of their matrix cores, or by arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Scope
from tile_core.ir.device_calls import KEEP_ORDER
from tile_core.layout import Layout, shared_operand
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import Rule
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.gemm.gemm_rules import fma_rule, instruction_rule
from tile_core.simt.gemm.matrix_unit import MatrixUnit
from tile_core.simt.gemm.shared_layouts import operand_copy_rule
from tile_core.simt.gemm_warp_partition import best_shared_first
from tile_core.target import Target
from tile_hip.atoms import (
    ROUNDS_FLOAT32,
    Pieces,
    atoms_in_runs,
    atoms_in_turns,
    atoms_like_accumulators,
)

MFMA, FMA, COPY = "hip.gemm.mfma", "hip.gemm.fma", "hip.copy.operand"

_ACCUMULATED_IN = {"float16": "float32", "bfloat16": "float32"}
"""Element types of accumulators that no instruction has, and those used instead."""


def gemm_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the ways `machine` multiplies matrices exactly, and loads their operands."""
    unit = matrix_cores(machine)
    return instruction_rule(MFMA, unit), fma_rule(FMA), operand_copy_rule(COPY, unit)


def xf32_rules(machine: SimtMachine) -> tuple[Rule[Gemm], ...]:
    """Return the rules for products of float32 that round the operands, if there are any.

    They keep as many bits of the mantissa as float16 has: only users can allow that.
    """
    if not machine.has("mfma_xf32"):
        return ()
    rounding = replace(machine, features=machine.features | {ROUNDS_FLOAT32})
    rule = instruction_rule(f"{MFMA}_xf32", matrix_cores(rounding))

    def rejects(op: Gemm, target: Target) -> str | None:
        if "float32" not in (str(op.a.buffer.dtype), str(op.b.buffer.dtype)):
            return "no operand is float32"
        return rule.rejects(op, target)

    return (replace(rule, rejects=rejects, priority=rule.priority + 1),)


def matrix_cores(machine: SimtMachine) -> MatrixUnit:
    """Return what `machine` multiplies with, and how its waves read operands.

    Operands are held by most elements along K at once, or by as many as the kernel says with
    ``k_pack``. An operand in registers is held as accumulators are, so that the result of a product
    is one where it is, unless the other one has its rows along K: that gains by being read at once,
    as keys are that meet queries in registers. Of an operand that lies across K a lane reads
    neighbours across, which are its part of as many products. Among instructions of 32 and of 16
    rows, those are taken whose squares the waves share best, the larger ones if both are as good.
    """

    def atoms(op: Gemm, warps: int) -> tuple[MatrixAtom, ...]:
        first, second = (_COUNTS[::-1] if is_across else (1,) for is_across in _across(op))
        pieces = itertools.product(first, second)
        found = [atom for counts in pieces for atom in _atoms(op, machine, counts)]
        return best_shared_first(found, op.mnk, warps, op.policy, lambda x: _narrow_reads(x, op))

    def others(op: Gemm) -> Iterator[MatrixAtom]:
        for counts in itertools.product(_COUNTS, _COUNTS):
            yield from _atoms(op, machine, counts)

    def layout(shape: tuple[int, ...], bits: int, is_k_last: bool) -> Layout:
        lies = rows_of_chunks if is_k_last or bits != 16 else rows_in_turns
        return lies(shape, bits, machine.banks)

    return MatrixUnit(
        machine=machine, atoms=atoms, others=others, fence=KEEP_ORDER, operand_layout=layout
    )


_REGISTER_BITS = 32

_COUNTS = (1, 2, 4)
"""Neighbouring rows, or columns, of which a lane may read as many at once."""


def _atoms(op: Gemm, machine: SimtMachine, counts: tuple[int, int]) -> tuple[MatrixAtom, ...]:
    """Return the atoms of so many pieces along M and N, in order of how they read along K."""
    if op.nibbles:
        return ()
    a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
    rows, columns = zip(counts, _across(op), strict=True)
    found = _table(op)(machine, a, b, _ACCUMULATED_IN.get(c, c), Pieces(rows, columns))
    if op.k_pack > 1:
        return tuple(sorted(found, key=lambda atom: atom.template[0] != op.k_pack))
    return found


def _across(op: Gemm) -> tuple[bool, bool]:
    """Return which operands are in memory with their rows, or columns, side by side."""
    in_memory = [r.buffer.scope is Scope.SHARED for r in (op.a, op.b)]
    return in_memory[0] and op.transpose_a, in_memory[1] and not op.transpose_b


def _narrow_reads(atom: MatrixAtom, op: Gemm) -> int:
    """Return how many operands a lane reads less of at once than a register holds.

    That does not count where an operand was an accumulator: it has as many rows as its own
    product's.
    """
    if _table(op) is atoms_like_accumulators:
        return 0
    tiles = (op.a.buffer.dtype, op.b.buffer.dtype)
    return sum(
        is_across and count * max(8, dtype.bits) < _REGISTER_BITS
        for is_across, count, dtype in zip(_across(op), atom.pieces, tiles, strict=True)
    )


def _table(op: Gemm) -> Callable[..., tuple[MatrixAtom, ...]]:
    """Return which atoms suit the operands: by what of them is read along K at once."""
    along_k = ((op.a, not op.transpose_a), (op.b, op.transpose_b))
    if any(by_rows and r.buffer.scope is Scope.SHARED for r, by_rows in along_k):
        return atoms_in_runs
    in_registers = any(r.buffer.scope is Scope.FRAGMENT for r, _ in along_k)
    return atoms_like_accumulators if in_registers else atoms_in_turns


_CHUNK_BITS, _WORD_BITS = 128, 32


def rows_of_chunks(shape: tuple[int, ...], bits: int, banks: int) -> Layout:
    """Return a layout in which neighbouring lanes read 16 bytes of neighbouring rows at once.

    As many lanes are served together as fill all banks: 8 of 32 banks, 16 of 64. The chunks of
    a row change places by its number, counted in lines of all banks, so that these lanes find
    theirs in different banks. With 32 banks these are the swizzles of all machines.

    Raises
    ------
    LayoutError
        If elements do not fill chunks.
    """
    served = banks * _WORD_BITS // _CHUNK_BITS
    if served == 8 or len(shape) < 2:
        return shared_operand(shape, bits)
    if bits < 1 or _CHUNK_BITS % bits:
        raise LayoutError(f"elements of {bits} bits do not fill 16-byte chunks")
    vector = _CHUNK_BITS // bits
    chunks = shape[-1] // vector
    span = next(s for s in (16, 8, 4, 2, 1) if chunks % s == 0)
    if shape[-1] % vector or span == 1:
        return shared_operand(shape, bits)
    per_line = served // span

    def place(*coords: Any) -> Any:
        *lead, i, j = coords
        chunk = j // vector
        turned = chunk // span * span + (chunk % span ^ i // per_line % span)
        return (*lead, i, turned * vector + j % vector)

    return Layout(shape, place, shape)


def rows_in_turns(shape: tuple[int, ...], bits: int, banks: int) -> Layout:
    """Return the layout of an operand that lies across K: groups of lanes read rows far apart.

    A group of lanes reads a row, and begins `_RUN` rows behind the group before it. Where several
    rows are in one line of all banks, all groups would find theirs at the same place of a line:
    rows of a line change places by the number of the group. Longer rows lie as `rows_of_chunks`.
    """
    per_line, rest = divmod(banks * _WORD_BITS, shape[-1] * bits)
    if len(shape) < 2 or rest or per_line not in (2, 4) or shape[-2] % (_RUN * per_line):
        return rows_of_chunks(shape, bits, banks)

    def place(*coords: Any) -> Any:
        *lead, i, j = coords
        turned = i // per_line * per_line + (i % per_line ^ i // _RUN % per_line)
        return (*lead, turned, j)

    return Layout(shape, place, shape)


_RUN = 8
"""Rows along K that a group of lanes holds of 16-bit operands: 16 bytes of the other one."""
