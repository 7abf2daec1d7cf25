"""Instructions that map lanes to lanes, in all their encodings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.dpp import MODIFIERS as DPP_MODIFIERS
from tile_sim.gfx9.dpp import Moved
from tile_sim.gfx9.floats import CONVERSIONS, FLOATS
from tile_sim.gfx9.instruction import (
    Context,
    Instruction,
    Undecodable,
    bits,
    ids,
    operands_of,
    refuse_modifiers,
    vector_instruction,
)
from tile_sim.gfx9.integers import DOUBLE_WORDS, HALVES, WORDS
from tile_sim.gfx9.operand_sources import DTYPES, Operation, Read, raw32, reader
from tile_sim.gfx9.operands import Operand
from tile_sim.gfx9.result_writes import Write, writer

OPERATIONS: Mapping[str, Operation] = {
    **WORDS, **DOUBLE_WORDS, **HALVES, **FLOATS, **CONVERSIONS,
}  # fmt: skip
_ENCODING = re.compile(r"_(?:e32|e64|sdwa|dpp|e64_dpp)$")
SDWA_MODIFIERS = ("dst_sel", "dst_unused", "src0_sel", "src1_sel")
MODIFIERS = ("clamp", "mul", "div", "op_sel", *SDWA_MODIFIERS, *DPP_MODIFIERS)


@lru_cache(maxsize=4096)
def base_name(mnemonic: str) -> str:
    """Return a mnemonic without its encoding."""
    return _ENCODING.sub("", mnemonic)


def decode(line: Line, context: Context) -> Instruction | None:
    """Return the instruction; None if it is none of those that map lanes to lanes."""
    name = base_name(line.mnemonic)
    found = OPERATIONS.get(name)
    if found is None:
        return None
    refuse_modifiers(line, MODIFIERS)
    operands = operands_of(line, len(found.sources) + 1)
    sources = operands[1:]
    if found.accumulates:
        sources = [*sources, operands[0]]
    step = build(line, found, operands[0], sources)
    return vector_instruction(line, step, ids(sources), ids(operands[:1]))


def build(line: Line, told: Operation, target: Operand, sources: list[Operand]) -> Any:
    """Return the step of an operation on given operands."""
    moved = Moved(line.modifiers) if line.mnemonic.endswith("_dpp") else None
    reads = source_readers(line, (*told.sources, *told.sources[:1]), sources, moved)
    write = _target_writer(line, told, target, len(sources), moved)
    compute = told.compute
    if "clamp" in line.modifiers and not told.result.startswith("f"):
        compute = _saturating(told)
    return compose(compute, reads, write)


def source_readers(
    line: Line, forms: tuple[str, ...], sources: list[Operand], moved: Moved | None = None
) -> list[Read]:
    """Return readers of sources, with the modifiers of the line."""
    halves = bits(line.modifiers["op_sel"]) if "op_sel" in line.modifiers else [0] * 4
    reads = []
    for position, (form, operand) in enumerate(zip(forms, sources, strict=False)):
        is_float = form.startswith("f")
        raw = None
        if moved is not None and position == 0:
            raw = moved.read(raw32(operand, 32, is_float=is_float))
        select = line.modifiers.get(f"src{position}_sel", "")
        half = halves[position] if position < len(halves) else 0
        reads.append(reader(form, operand, half=half, raw=raw, select=select))
    return reads


def _target_writer(
    line: Line, told: Operation, target: Operand, sources: int, moved: Moved | None
) -> Write:
    chosen = bits(line.modifiers["op_sel"]) if "op_sel" in line.modifiers else []
    is_high = any(chosen[sources:])
    half: int | None = None
    if told.result.endswith("16") and (told.keeps_half or is_high):
        half = int(is_high)
    mask = moved.mask if moved is not None else None
    return writer(told.result, target, line.modifiers, mask=mask, half=half)


def compose(compute: Callable[..., Any], reads: list[Read], write: Write) -> Any:
    """Return a step that reads, computes and writes."""
    match reads:
        case [first]:
            return lambda w: write(w, compute(first(w)))
        case [first, second]:
            return lambda w: write(w, compute(first(w), second(w)))
        case [first, second, third]:
            return lambda w: write(w, compute(first(w), second(w), third(w)))
    raise Undecodable("it has too many sources")


def _saturating(told: Operation) -> Callable[..., Any]:
    """Return a computation with integers that stops at the ends of their range."""
    dtype = DTYPES[told.result]
    limits, compute = np.iinfo(dtype), told.compute

    def saturated(*sources: Any) -> Any:
        exact = compute(*(np.asarray(source).astype(np.int64) for source in sources))
        return np.clip(exact, limits.min, limits.max).astype(dtype)

    return saturated
