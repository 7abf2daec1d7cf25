"""Instructions between lanes and scalar registers, between lanes, and with 8-bit floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.fp8 import encode, format_of, values
from tile_sim.gfx9.instruction import (
    Context,
    Instruction,
    bits,
    ids,
    operands_of,
    refuse_modifiers,
    vector_instruction,
)
from tile_sim.gfx9.operand_sources import Form, raw32, reader
from tile_sim.gfx9.operands import Operand
from tile_sim.gfx9.result_writes import wide, writer
from tile_sim.gfx9.vector import SDWA_MODIFIERS, base_name
from tile_sim.gfx9.wave import Wave

U32 = np.uint32
Decode = Callable[[Line, Context], Instruction]


def decode(line: Line, context: Context) -> Instruction | None:
    """Return an instruction of this file; None if the line is none."""
    found = _DECODERS.get(base_name(line.mnemonic))
    return None if found is None else found(line, context)


def _first_lane(line: Line, context: Context) -> Instruction:
    refuse_modifiers(line, ())
    target, source = operands_of(line, 2)
    read, number = raw32(source), target.first

    def step(w: Wave) -> None:
        lane = 0 if w.is_full or not w.exec_bits else (w.exec_bits & -w.exec_bits).bit_length() - 1
        w.set32(number, int(wide(read(w))[lane]))

    return vector_instruction(line, step, ids([source]), ids([target]))


def _scalar(operand: Operand) -> Callable[[Wave], int]:
    """Return a reader of a number that all lanes share."""
    read = raw32(operand)
    return lambda w: int(read(w))


def _read_lane(line: Line, context: Context) -> Instruction:
    refuse_modifiers(line, ())
    target, source, which = operands_of(line, 3)
    read, lane, number = raw32(source), _scalar(which), target.first

    def step(w: Wave) -> None:
        w.set32(number, int(wide(read(w))[lane(w) & 63]))

    return vector_instruction(line, step, ids([source, which]), ids([target]))


def _write_lane(line: Line, context: Context) -> Instruction:
    refuse_modifiers(line, ())
    target, source, which = operands_of(line, 3)
    value, lane, number = _scalar(source), _scalar(which), target.first

    def step(w: Wave) -> None:
        w.rows[number][lane(w) & 63] = value(w)

    return vector_instruction(line, step, ids([source, which, target]), ids([target]))


def _swap(line: Line, context: Context) -> Instruction:
    refuse_modifiers(line, ())
    first, second = operands_of(line, 2)
    a, b = first.first, second.first

    def step(w: Wave) -> None:
        old = w.rows[a].copy()
        w.put(a, w.rows[b])
        w.put(b, old)

    return vector_instruction(line, step, ids([first, second]), ids([first, second]))


def _swap_rows(width: int) -> Decode:
    """Exchange the odd rows of the first register with the even rows of the second."""
    lane = np.arange(64)
    odd = lane // width % 2 == 1

    def decoded(line: Line, context: Context) -> Instruction:
        refuse_modifiers(line, ("bound_ctrl", "fi"))
        first, second = operands_of(line, 2)
        a, b = first.first, second.first

        def step(w: Wave) -> None:
            x, y = w.rows[a].copy(), w.rows[b].copy()
            w.put(a, np.where(odd, y[lane ^ width], x))
            w.put(b, np.where(odd, y, x[lane ^ width]))

        return vector_instruction(line, step, ids([first, second]), ids([first, second]))

    return decoded


def _nop(line: Line, context: Context) -> Instruction:
    return vector_instruction(line, lambda w: None, (), ())


def _half_of(line: Line, position: int) -> int:
    """Return which half ``op_sel`` chooses for an operand."""
    chosen = bits(line.modifiers["op_sel"]) if "op_sel" in line.modifiers else []
    return chosen[position] if position < len(chosen) else 0


def _to_fp8(name: str) -> Decode:
    """Convert two floats to two bytes in one half of a register."""

    def decoded(line: Line, context: Context) -> Instruction:
        refuse_modifiers(line, ("op_sel",))
        target, *sources = operands_of(line, 3)
        form = format_of(name, context.architecture)
        a, b = (reader("f32", source) for source in sources)
        write = writer("u16", target, {}, half=_half_of(line, 2))

        def step(w: Wave) -> None:
            pair = encode(wide(a(w)), form) | encode(wide(b(w)), form) << U32(8)
            write(w, pair)

        return vector_instruction(line, step, ids([*sources, target]), ids([target]))

    return decoded


def _from_fp8(name: str) -> Decode:
    def decoded(line: Line, context: Context) -> Instruction:
        refuse_modifiers(line, (*SDWA_MODIFIERS, "op_sel", "clamp", "mul", "div", "byte_sel"))
        target, source = operands_of(line, 2)
        table = values(format_of(name, context.architecture))
        select = line.modifiers.get("src0_sel", "BYTE_0")
        if "op_sel" in line.modifiers:
            # Of the two bits, the first chooses the half and the second the byte in it.
            first, second = (*bits(line.modifiers["op_sel"]), 0)[:2]
            select = f"BYTE_{2 * first + second}"
        if "byte_sel" in line.modifiers:
            select = f"BYTE_{line.modifiers['byte_sel']}"
        read = reader("u32", source, select="BYTE_0" if select == "DWORD" else select)
        write = writer("f32", target, line.modifiers)

        def step(w: Wave) -> None:
            write(w, table[read(w) & U32(255)])

        return vector_instruction(line, step, ids([source]), ids([target]))

    return decoded


def _pair_from_fp8(name: str) -> Decode:
    def decoded(line: Line, context: Context) -> Instruction:
        refuse_modifiers(line, (*SDWA_MODIFIERS, "op_sel"))
        target, source = operands_of(line, 2)
        table = values(format_of(name, context.architecture))
        select = line.modifiers.get("src0_sel", f"WORD_{_half_of(line, 0)}")
        read = reader("u32", source, select="WORD_0" if select == "DWORD" else select)
        number = target.first

        def step(w: Wave) -> None:
            pair = read(w)
            w.put(number, table[pair & U32(255)].view(U32))
            w.put(number + 1, table[pair >> U32(8) & U32(255)].view(U32))

        return vector_instruction(line, step, ids([source]), ids([target]))

    return decoded


def _pack_halves(line: Line, context: Context) -> Instruction:
    refuse_modifiers(line, ("op_sel",))
    target, *sources = operands_of(line, 3)
    a, b = (reader("f16", s, half=_half_of(line, i)) for i, s in enumerate(sources))
    write = writer("u32", target, {})

    def step(w: Wave) -> None:
        low, high = a(w).view(np.uint16), b(w).view(np.uint16)
        write(w, low.astype(U32) | high.astype(U32) << U32(16))

    return vector_instruction(line, step, ids(sources), ids([target]))


def _by_table(form: Form) -> Decode:
    """Look each bit up in a table, by the three bits of the sources, the first one uppermost."""

    def decoded(line: Line, context: Context) -> Instruction:
        refuse_modifiers(line, ("bitop3", "op_sel"))
        target, *sources = operands_of(line, 4)
        table = int(line.modifiers.get("bitop3", "0"), 0)
        reads = [reader(form, x, half=_half_of(line, i)) for i, x in enumerate(sources)]
        write = writer(form, target, {}, half=_half_of(line, 3) or None)

        def step(w: Wave) -> None:
            a, b, c = (np.asarray(read(w)) for read in reads)
            result = a & ~a
            for entry in range(8):
                if table >> entry & 1:
                    x, y, z = (v if entry & bit else ~v for v, bit in ((a, 4), (b, 2), (c, 1)))
                    result = result | x & y & z
            write(w, result)

        return vector_instruction(line, step, ids([*sources, target]), ids([target]))

    return decoded


_DECODERS: Mapping[str, Decode] = {
    "v_bitop3_b32": _by_table("u32"),
    "v_bitop3_b16": _by_table("u16"),
    "v_readfirstlane_b32": _first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_swap_b32": _swap,
    "v_permlane16_swap_b32": _swap_rows(16),
    "v_permlane32_swap_b32": _swap_rows(32),
    "v_nop": _nop,
    "v_pack_b32_f16": _pack_halves,
    "v_cvt_pk_fp8_f32": _to_fp8("fp8"),
    "v_cvt_pk_bf8_f32": _to_fp8("bf8"),
    "v_cvt_f32_fp8": _from_fp8("fp8"),
    "v_cvt_f32_bf8": _from_fp8("bf8"),
    "v_cvt_pk_f32_fp8": _pair_from_fp8("fp8"),
    "v_cvt_pk_f32_bf8": _pair_from_fp8("bf8"),
}
