"""Instructions of lanes with carries and masks: long sums and products, choices, divisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tile_sim.gfx9.arrays import bits_of, mask_of
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.dpp import MODIFIERS as DPP_MODIFIERS
from tile_sim.gfx9.dpp import Moved
from tile_sim.gfx9.floats import fma32, fma64
from tile_sim.gfx9.instruction import (
    VCC_IDS,
    Context,
    Instruction,
    ids,
    operands_of,
    refuse_modifiers,
    vector_instruction,
)
from tile_sim.gfx9.operand_sources import raw64, reader
from tile_sim.gfx9.operands import Operand
from tile_sim.gfx9.result_writes import wide, writer
from tile_sim.gfx9.vector import SDWA_MODIFIERS, base_name, source_readers
from tile_sim.gfx9.wave import Wave

U32, U64, I64 = np.uint32, np.uint64, np.int64
_SUMS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "v_add_co_u32": lambda a, b, c: a + b,
    "v_sub_co_u32": lambda a, b, c: a - b,
    "v_subrev_co_u32": lambda a, b, c: b - a,
    "v_addc_co_u32": lambda a, b, c: a + b + c,
    "v_subb_co_u32": lambda a, b, c: a - b - c,
    "v_subbrev_co_u32": lambda a, b, c: b - a - c,
}


def decode(line: Line, context: Context) -> Instruction | None:
    """Return an instruction with a carry or a mask; None if the line is none."""
    name = base_name(line.mnemonic)
    if name in _SUMS:
        return _sum(line, name)
    if name == "v_cndmask_b32":
        return _choice(line)
    if name in {"v_mad_u64_u32", "v_mad_i64_i32"}:
        return _long_product(line, signed=name == "v_mad_i64_i32")
    if name.startswith("v_div_scale_"):
        return _div_scale(line, name[-3:])
    if name.startswith("v_div_fmas_"):
        return _div_fmas(line, name[-3:])
    return None


def _set_carry(w: Wave, operand: Operand, carry: Any) -> None:
    """Write a mask; the bits of lanes that are off are zero."""
    w.set64(operand.first, bits_of(wide(carry)) & w.exec_bits)


def _sum(line: Line, name: str) -> Instruction:
    refuse_modifiers(line, (*SDWA_MODIFIERS, *DPP_MODIFIERS, "clamp"))
    takes_carry = "addc" in name or "subb" in name
    target, carry_out, *rest = operands_of(line, 5 if takes_carry else 4)
    carry_in = rest.pop() if takes_carry else None
    moved = Moved(line.modifiers) if line.mnemonic.endswith("_dpp") else None
    left, right = source_readers(line, ("u32", "u32"), rest, moved)
    modifiers = {key: value for key, value in line.modifiers.items() if key != "clamp"}
    write = writer("u32", target, modifiers, mask=moved.mask if moved else None)
    compute, clamp = _SUMS[name], "clamp" in line.modifiers

    def step(w: Wave) -> None:
        carry = I64(0) if carry_in is None else mask_of(w.get64(carry_in.first)).astype(I64)
        exact = wide(compute(left(w).astype(I64), right(w).astype(I64), carry))
        overflow = (exact < 0) | (exact > 0xFFFFFFFF)
        if clamp:
            exact = np.clip(exact, 0, 0xFFFFFFFF)
        write(w, exact.astype(U32))
        _set_carry(w, carry_out, overflow)

    reads = ids(rest) | (ids([carry_in]) if carry_in else frozenset())
    return vector_instruction(line, step, reads, ids([target, carry_out]))


def _choice(line: Line) -> Instruction:
    refuse_modifiers(line, (*SDWA_MODIFIERS, *DPP_MODIFIERS))
    target, *sources, mask = operands_of(line, 4)
    moved = Moved(line.modifiers) if line.mnemonic.endswith("_dpp") else None
    no, yes = source_readers(line, ("f32", "f32"), sources, moved)
    write = writer("u32", target, line.modifiers, mask=moved.mask if moved else None)
    number = mask.first

    def step(w: Wave) -> None:
        chosen = mask_of(w.get64(number))
        write(w, np.where(chosen, yes(w).view(U32), no(w).view(U32)))

    return vector_instruction(line, step, ids([*sources, mask]), ids([target]))


def _long_product(line: Line, *, signed: bool) -> Instruction:
    refuse_modifiers(line, ("clamp",))
    target, carry_out, left, right, addend = operands_of(line, 5)
    form, dtype = ("i32", I64) if signed else ("u32", U64)
    a, b = reader(form, left), reader(form, right)
    c, write = raw64(addend, "i64" if signed else "u64"), writer("u64", target, {})

    def step(w: Wave) -> None:
        product = (a(w).astype(dtype) * b(w).astype(dtype)).view(U64)
        before = c(w)
        total = product + before
        if signed:
            p, q, r = product.view(I64), before.view(I64), total.view(I64)
            carry = ((p ^ r) & (q ^ r)) < 0
        else:
            carry = total < product
        write(w, total)
        _set_carry(w, carry_out, carry)

    return vector_instruction(line, step, ids([left, right, addend]), ids([target, carry_out]))


def _biased_exponent(a: Any) -> Any:
    mantissa_bits, exponent_mask = (23, 0xFF) if a.dtype == np.float32 else (52, 0x7FF)
    raw = a.view(U32 if a.dtype == np.float32 else U64)
    return (raw >> raw.dtype.type(mantissa_bits)).astype(I64) & exponent_mask


def div_scale(value: Any, denominator: Any, numerator: Any) -> tuple[Any, Any]:
    """Scale one side of a division so that no step of it leaves the range of normal numbers.

    With the value comes where the result will have to be scaled back.
    """
    value, denominator, numerator = np.broadcast_arrays(value, denominator, numerator)
    single = value.dtype == np.float32
    far, step, tiny = (96, 64, 23) if single else (768, 128, 53)
    least = np.finfo(value.dtype).smallest_normal
    en, ed = _biased_exponent(numerator), _biased_exponent(denominator)
    is_den, is_num = value == denominator, value == numerator
    with np.errstate(all="ignore"):
        inverse, quotient = np.abs(1 / denominator), np.abs(numerator / denominator)
        small_inverse, small_quotient = inverse < least, quotient < least
        up, down = np.ldexp(value, step), np.ldexp(value, -step)
    is_bad = (numerator == 0) | (denominator == 0)
    conditions = [
        is_bad, en - ed >= far, ed == 0, small_inverse & small_quotient, small_inverse,
        small_quotient, en <= tiny,
    ]  # fmt: skip
    nan = np.full_like(value, np.nan)
    results = [
        nan, np.where(is_den, up, value), up, np.where(is_den, up, value), down,
        np.where(is_num, up, value), up,
    ]  # fmt: skip
    yes, no = np.ones_like(is_bad), np.zeros_like(is_bad)
    flags = [no, yes, no, yes, no, yes, no]
    return np.select(conditions, results, value), np.select(conditions, flags, no)


def _div_scale(line: Line, form: str) -> Instruction:
    refuse_modifiers(line, ())
    target, flag, *sources = operands_of(line, 5)
    a, b, c = (reader(form, source) for source in sources)
    write = writer(form, target, {})

    def step(w: Wave) -> None:
        scaled, flags = div_scale(wide(a(w)), wide(b(w)), wide(c(w)))
        write(w, scaled)
        _set_carry(w, flag, flags)

    return vector_instruction(line, step, ids(sources), ids([target, flag]))


def _div_fmas(line: Line, form: str) -> Instruction:
    refuse_modifiers(line, ("clamp", "mul", "div"))
    target, *sources = operands_of(line, 4)
    a, b, c = (reader(form, source) for source in sources)
    write = writer(form, target, line.modifiers)
    fma, power, middle = (fma32, 64, 127) if form == "f32" else (fma64, 128, 1023)

    def step(w: Wave) -> None:
        estimate = wide(c(w))
        found = fma(wide(a(w)), wide(b(w)), estimate)
        exponent = np.where(_biased_exponent(estimate) > middle, power, -power)
        scaled = np.ldexp(found, exponent)
        write(w, np.where(mask_of(w.vcc), scaled, found))

    return vector_instruction(line, step, ids(sources) | VCC_IDS, ids([target]))
