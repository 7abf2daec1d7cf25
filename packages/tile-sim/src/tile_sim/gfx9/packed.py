"""Packed instructions: two halves or two floats at once, dot products, mixed products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.floats import fma16, fma32
from tile_sim.gfx9.instruction import (
    Context,
    Instruction,
    bits,
    ids,
    operands_of,
    refuse_modifiers,
    vector_instruction,
)
from tile_sim.gfx9.operand_sources import DTYPES, Read, raw32, reader
from tile_sim.gfx9.operands import Bank, Operand
from tile_sim.gfx9.result_writes import wide, writer
from tile_sim.gfx9.vector import base_name
from tile_sim.gfx9.wave import Wave

U16, U32, F32, I64 = np.uint16, np.uint32, np.float32, np.int64
MODIFIERS = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp")


@dataclass(frozen=True, slots=True)
class Packed:
    """What a packed instruction does to each half."""

    form: str
    sources: int
    compute: Callable[..., Any]


def _masked(a: Any) -> Any:
    return a.view(U16) & U16(15)


PACKED: Mapping[str, Packed] = {
    "v_pk_add_f16": Packed("f16", 2, np.add),
    "v_pk_mul_f16": Packed("f16", 2, np.multiply),
    "v_pk_min_f16": Packed("f16", 2, np.fmin),
    "v_pk_max_f16": Packed("f16", 2, np.fmax),
    "v_pk_fma_f16": Packed("f16", 3, fma16),
    "v_pk_add_u16": Packed("u16", 2, np.add),
    "v_pk_sub_u16": Packed("u16", 2, np.subtract),
    "v_pk_add_i16": Packed("i16", 2, np.add),
    "v_pk_sub_i16": Packed("i16", 2, np.subtract),
    "v_pk_mul_lo_u16": Packed("u16", 2, np.multiply),
    "v_pk_mad_u16": Packed("u16", 3, lambda a, b, c: a * b + c),
    "v_pk_mad_i16": Packed("i16", 3, lambda a, b, c: a * b + c),
    "v_pk_min_u16": Packed("u16", 2, np.minimum),
    "v_pk_max_u16": Packed("u16", 2, np.maximum),
    "v_pk_min_i16": Packed("i16", 2, np.minimum),
    "v_pk_max_i16": Packed("i16", 2, np.maximum),
    "v_pk_lshlrev_b16": Packed("u16", 2, lambda n, a: a << _masked(n)),
    "v_pk_lshrrev_b16": Packed("u16", 2, lambda n, a: a >> _masked(n)),
    "v_pk_ashrrev_i16": Packed("i16", 2, lambda n, a: a >> _masked(n).view(np.int16)),
    "v_pk_add_f32": Packed("f32", 2, np.add),
    "v_pk_mul_f32": Packed("f32", 2, np.multiply),
    "v_pk_fma_f32": Packed("f32", 3, fma32),
    "v_pk_mov_b32": Packed("u32", 2, lambda a, b: a),
}


def decode(line: Line, context: Context) -> Instruction | None:
    """Return a packed instruction; None if the line is none."""
    name = base_name(line.mnemonic)
    if name in PACKED:
        return _packed(line, PACKED[name], is_move=name == "v_pk_mov_b32")
    if name in MIXED:
        return _mixed(line, MIXED[name])
    if name in DOTS:
        return _dot(line, DOTS[name], accumulates=name.split("_")[1].endswith("c"))
    return None


def _flags(line: Line, name: str, default: int) -> list[int]:
    found = bits(line.modifiers[name]) if name in line.modifiers else []
    return (found + [default] * 4)[:4]


def _packed(line: Line, told: Packed, *, is_move: bool) -> Instruction:
    refuse_modifiers(line, MODIFIERS)
    target, *sources = operands_of(line, told.sources + 1)
    low_reads, high_reads = [], []
    low, high = _flags(line, "op_sel", 0), _flags(line, "op_sel_hi", 1)
    neg_low, neg_high = _flags(line, "neg_lo", 0), _flags(line, "neg_hi", 0)
    if is_move:
        # Each source gives one word, and op_sel alone says which.
        high = low
    part = _word_part if told.form.endswith("32") else _half_part
    for position, source in enumerate(sources):
        low_reads.append(part(told.form, source, low[position], neg_low[position]))
        high_reads.append(part(told.form, source, high[position], neg_high[position]))
    compute = _finished(told, "clamp" in line.modifiers)
    number, is_wide = target.first, told.form.endswith("32")

    def step(w: Wave) -> None:
        first = compute(*(read(w) for read in low_reads))
        if is_move:
            second = compute(high_reads[1](w), None)
        else:
            second = compute(*(read(w) for read in high_reads))
        if is_wide:
            first = np.array(first).view(U32)
            w.put(number + 1, second.view(U32))
            w.put(number, first)
        else:
            a, b = first.view(U16).astype(U32), second.view(U16).astype(U32)
            w.put(number, a | b << U32(16))

    return vector_instruction(line, step, ids(sources), ids([target]))


def _finished(told: Packed, clamp: bool) -> Callable[..., Any]:
    """Return the computation with its clamp: of floats to [0, 1], of integers to their range."""
    dtype = np.dtype(DTYPES[told.form])
    if not clamp:
        return told.compute
    if dtype.kind == "f":
        return lambda *s: np.clip(np.nan_to_num(told.compute(*s)), 0, 1).astype(dtype)
    limits = np.iinfo(dtype)
    return lambda *s: np.clip(
        told.compute(*(np.asarray(x).astype(I64) for x in s)), limits.min, limits.max
    ).astype(dtype)


def _half_part(form: str, source: Operand, half: int, negative: int) -> Read:
    """Read one half of a source."""
    if form != "f16":
        return reader(form, source, half=half)
    read = reader("f16", source, half=half)
    return (lambda w: -read(w)) if negative else read


def _word_part(form: str, source: Operand, half: int, negative: int) -> Read:
    """Read one word of a source of two."""
    is_pair = source.bank is not Bank.CONSTANT
    part = Operand(source.bank, source.first + half * is_pair, 1, source.text)
    read = reader(form, part)
    return (lambda w: -read(w)) if negative else read


MIXED: Mapping[str, int | None] = {
    "v_fma_mix_f32": None,
    "v_fma_mixlo_f16": 0,
    "v_fma_mixhi_f16": 1,
}


def _mixed(line: Line, half: int | None) -> Instruction:
    """Multiply and add floats and halves as they come; ``op_sel_hi`` says which are halves."""
    refuse_modifiers(line, MODIFIERS)
    target, *sources = operands_of(line, 4)
    which, is_half = _flags(line, "op_sel", 0), _flags(line, "op_sel_hi", 0)
    reads = [
        reader("f16", s, half=which[i]) if is_half[i] else reader("f32", s)
        for i, s in enumerate(sources)
    ]
    form = "f32" if half is None else "f16"
    write = writer(form, target, line.modifiers, half=half)

    def step(w: Wave) -> None:
        a, b, c = (wide(read(w)).astype(np.float64) for read in reads)
        write(w, (a * b + c).astype(DTYPES[form]))

    kept = frozenset() if half is None else ids([target])
    return vector_instruction(line, step, ids(sources) | kept, ids([target]))


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot product of the small numbers in two words, added to a third."""

    form: str
    split: Callable[[Any], Any]


def _halves(dtype: Any) -> Callable[[Any], Any]:
    def split(word: Any) -> Any:
        parts = np.ascontiguousarray(wide(word))[:, None].view(dtype)
        return parts.astype(np.float64 if parts.dtype.kind == "f" else I64)

    return split


def _nibbles(word: Any) -> Any:
    shifts = np.arange(0, 32, 4, dtype=U32)
    return (wide(word)[:, None] >> shifts & U32(15)).astype(I64)


def _signed_nibbles(word: Any) -> Any:
    found = _nibbles(word)
    return np.where(found > 7, found - 16, found)


def _brain_floats(word: Any) -> Any:
    parts = np.stack([wide(word) << U32(16), wide(word) & U32(0xFFFF0000)], -1)
    return np.ascontiguousarray(parts).view(F32).astype(np.float64)


DOTS: Mapping[str, Dot] = {
    "v_dot2_f32_f16": Dot("f32", _halves(np.float16)),
    "v_dot2c_f32_f16": Dot("f32", _halves(np.float16)),
    "v_dot2_f32_bf16": Dot("f32", _brain_floats),
    "v_dot2c_f32_bf16": Dot("f32", _brain_floats),
    "v_dot2_i32_i16": Dot("i32", _halves(np.int16)),
    "v_dot2c_i32_i16": Dot("i32", _halves(np.int16)),
    "v_dot2_u32_u16": Dot("u32", _halves(U16)),
    "v_dot4_i32_i8": Dot("i32", _halves(np.int8)),
    "v_dot4c_i32_i8": Dot("i32", _halves(np.int8)),
    "v_dot4_u32_u8": Dot("u32", _halves(np.uint8)),
    "v_dot8_i32_i4": Dot("i32", _signed_nibbles),
    "v_dot8c_i32_i4": Dot("i32", _signed_nibbles),
    "v_dot8_u32_u4": Dot("u32", _nibbles),
}


def _dot(line: Line, told: Dot, *, accumulates: bool) -> Instruction:
    refuse_modifiers(line, ("clamp", "op_sel_hi", "op_sel", "neg_lo", "neg_hi"))
    target, *sources = operands_of(line, 3 if accumulates else 4)
    if accumulates:
        sources = [*sources, target]
    if any(_flags(line, "neg_lo", 0)) or any(_flags(line, "neg_hi", 0)):
        refuse_modifiers(line, ("clamp",))
    a, b, c = raw32(sources[0]), raw32(sources[1]), reader(told.form, sources[2])
    write, dtype = writer(told.form, target, line.modifiers), DTYPES[told.form]
    clamp = "clamp" in line.modifiers and told.form != "f32"

    def step(w: Wave) -> None:
        before = wide(c(w))
        products = (told.split(a(w)) * told.split(b(w))).sum(-1)
        total = products + before.astype(products.dtype)
        if clamp:
            limits = np.iinfo(dtype)
            total = np.clip(total, limits.min, limits.max)
        write(w, total.astype(dtype))

    return vector_instruction(line, step, ids(sources), ids([target]))
