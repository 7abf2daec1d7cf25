"""Scalar instructions: one value for the whole wave, as Python integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.instruction import (
    EXEC_IDS,
    Context,
    Instruction,
    Undecodable,
    Unit,
    ids,
    operands_of,
    vector_instruction,
)
from tile_sim.gfx9.operand_sources import scalar_flag
from tile_sim.gfx9.operands import Bank, Operand, constant_bits, parse_operand
from tile_sim.gfx9.wave import Wave

scalar_instruction = partial(vector_instruction, kind=Unit.SCALAR)

M32, M64 = 0xFFFFFFFF, (1 << 64) - 1
Get = Callable[[Wave], int]
ORIGIN = 0x0000_1000_0000_0000
"""What ``s_getpc`` returns: addresses relative to the code are told from here."""


def signed(value: int, bits: int = 32) -> int:
    """Return a number of `bits` bits in two's complement.

    Examples
    --------
    >>> signed(0xFFFFFFFE)
    -2
    """
    return value - (1 << bits) if value >> bits - 1 else value


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar instruction, by the bits of the destination, then of each source.

    It computes from SCC and the sources the result and SCC after; None leaves SCC.
    """

    bits: tuple[int, ...]
    compute: Callable[..., tuple[int, int | None]]

    def __post_init__(self) -> None:
        if not set(self.bits) <= {32, 64}:
            raise ValueError(f"operands have one or two registers of 32 bits, not {self.bits} bits")


def _logic(compute: Callable[..., int], bits: int, sources: int = 2) -> Scalar:
    mask = (1 << bits) - 1

    def run(scc: int, *values: int) -> tuple[int, int]:
        found = compute(*values) & mask
        return found, int(found != 0)

    return Scalar((bits,) * (sources + 1), run)


def _move(compute: Callable[..., int], *bits: int) -> Scalar:
    mask = (1 << bits[0]) - 1
    return Scalar(bits, lambda scc, *values: (compute(*values) & mask, None))


def _overflowing(exact: int) -> tuple[int, int]:
    return exact & M32, int(not -(1 << 31) <= exact < 1 << 31)


def _carried(exact: int) -> tuple[int, int]:
    return exact & M32, int(not 0 <= exact <= M32)


def _extremum(is_signed: bool, is_min: bool) -> Scalar:
    def run(scc: int, a: int, b: int) -> tuple[int, int]:
        x, y = (signed(a), signed(b)) if is_signed else (a, b)
        first = x < y if is_min else x > y
        return (a if first else b), int(first)

    return Scalar((32, 32, 32), run)


def _extract(bits: int, is_signed: bool) -> Scalar:
    def run(scc: int, a: int, field: int) -> tuple[int, int]:
        offset, width = field & (63 if bits == 64 else 31), field >> 16 & 0x7F
        found = a >> offset & (1 << width) - 1
        if is_signed and width and found >> width - 1:
            found = (found - (1 << width)) & (1 << bits) - 1
        return found, int(found != 0)

    return Scalar((bits, bits, 32), run)


def _first_one(value: int) -> int:
    return (value & -value).bit_length() - 1 if value else M32


def _leading(bits: int) -> Callable[[int], int]:
    return lambda value: bits - value.bit_length() if value else M32


def _leading_signed(bits: int) -> Callable[[int], int]:
    mask = (1 << bits) - 1
    return lambda value: _leading(bits)(~value & mask if value >> bits - 1 else value)


def _whole_quads(value: int) -> int:
    found = value | value >> 1
    found = (found | found >> 2) & 0x1111111111111111
    return found * 15


def _reverse(bits: int) -> Callable[[int], int]:
    return lambda value: int(f"{value:0{bits}b}"[::-1], 2)


def _shift(bits: int, kind: str) -> Scalar:
    top = bits - 1

    def run(scc: int, a: int, count: int) -> tuple[int, int]:
        count &= top
        if kind == "left":
            found = a << count & (1 << bits) - 1
        elif kind == "right":
            found = a >> count
        else:
            found = signed(a, bits) >> count & (1 << bits) - 1
        return found, int(found != 0)

    return Scalar((bits, bits, 32), run)


def _shifted_add(count: int) -> Scalar:
    return Scalar((32, 32, 32), lambda scc, a, b: _carried((a << count) + b))


_TWO_SOURCES: dict[str, Scalar] = {
    "s_add_u32": Scalar((32, 32, 32), lambda scc, a, b: _carried(a + b)),
    "s_sub_u32": Scalar((32, 32, 32), lambda scc, a, b: _carried(a - b)),
    "s_addc_u32": Scalar((32, 32, 32), lambda scc, a, b: _carried(a + b + scc)),
    "s_subb_u32": Scalar((32, 32, 32), lambda scc, a, b: _carried(a - b - scc)),
    "s_add_i32": Scalar((32, 32, 32), lambda scc, a, b: _overflowing(signed(a) + signed(b))),
    "s_sub_i32": Scalar((32, 32, 32), lambda scc, a, b: _overflowing(signed(a) - signed(b))),
    "s_min_i32": _extremum(True, True),
    "s_min_u32": _extremum(False, True),
    "s_max_i32": _extremum(True, False),
    "s_max_u32": _extremum(False, False),
    "s_mul_i32": _move(lambda a, b: a * b, 32, 32, 32),
    "s_mul_hi_u32": _move(lambda a, b: a * b >> 32, 32, 32, 32),
    "s_mul_hi_i32": _move(lambda a, b: signed(a) * signed(b) >> 32, 32, 32, 32),
    "s_cselect_b32": Scalar((32, 32, 32), lambda scc, a, b: (a if scc else b, None)),
    "s_cselect_b64": Scalar((64, 64, 64), lambda scc, a, b: (a if scc else b, None)),
    "s_bfm_b32": _move(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), 32, 32, 32),
    "s_bfm_b64": _move(lambda a, b: ((1 << (a & 63)) - 1) << (b & 63), 64, 32, 32),
    "s_bfe_u32": _extract(32, False),
    "s_bfe_i32": _extract(32, True),
    "s_bfe_u64": _extract(64, False),
    "s_bfe_i64": _extract(64, True),
    "s_absdiff_i32": _logic(lambda a, b: abs(signed(a) - signed(b)), 32),
    "s_pack_ll_b32_b16": _move(lambda a, b: a & 0xFFFF | b << 16, 32, 32, 32),
    "s_pack_lh_b32_b16": _move(lambda a, b: a & 0xFFFF | b & 0xFFFF0000, 32, 32, 32),
    "s_pack_hh_b32_b16": _move(lambda a, b: a >> 16 | b & 0xFFFF0000, 32, 32, 32),
    **{f"s_lshl{n}_add_u32": _shifted_add(n) for n in (1, 2, 3, 4)},
}
_ONE_SOURCE: dict[str, Scalar] = {
    "s_abs_i32": _logic(lambda a: abs(signed(a)), 32, 1),
    "s_sext_i32_i8": _move(lambda a: signed(a & 0xFF, 8), 32, 32),
    "s_sext_i32_i16": _move(lambda a: signed(a & 0xFFFF, 16), 32, 32),
    "s_bitset0_b32": Scalar((32, 32, 32), lambda scc, n, old: (old & ~(1 << (n & 31)), None)),
    "s_bitset1_b32": Scalar((32, 32, 32), lambda scc, n, old: (old | 1 << (n & 31), None)),
    "s_bitset0_b64": Scalar((64, 32, 64), lambda scc, n, old: (old & ~(1 << (n & 63)), None)),
    "s_bitset1_b64": Scalar((64, 32, 64), lambda scc, n, old: (old | 1 << (n & 63), None)),
}


def _of_both_widths(bits: int) -> dict[str, Scalar]:
    """Return what exists for one and for two registers."""
    b, other = f"b{bits}", bits - 1
    low = {
        f"s_and_{b}": _logic(lambda a, c: a & c, bits),
        f"s_or_{b}": _logic(lambda a, c: a | c, bits),
        f"s_xor_{b}": _logic(lambda a, c: a ^ c, bits),
        f"s_andn2_{b}": _logic(lambda a, c: a & ~c, bits),
        f"s_orn2_{b}": _logic(lambda a, c: a | ~c, bits),
        f"s_nand_{b}": _logic(lambda a, c: ~(a & c), bits),
        f"s_nor_{b}": _logic(lambda a, c: ~(a | c), bits),
        f"s_xnor_{b}": _logic(lambda a, c: ~(a ^ c), bits),
        f"s_lshl_{b}": _shift(bits, "left"),
        f"s_lshr_{b}": _shift(bits, "right"),
        f"s_ashr_i{bits}": _shift(bits, "signed"),
        f"s_not_{b}": _logic(lambda a: ~a, bits, 1),
        f"s_wqm_{b}": _logic(_whole_quads, bits, 1),
        f"s_mov_{b}": _move(lambda a: a, bits, bits),
        f"s_brev_{b}": _move(_reverse(bits), bits, bits),
        f"s_ff1_i32_{b}": _move(_first_one, 32, bits),
        f"s_flbit_i32_{b}": _move(_leading(bits), 32, bits),
        f"s_flbit_i32{'' if bits == 32 else '_i64'}": _move(_leading_signed(bits), 32, bits),
        f"s_cmov_{b}": Scalar((bits, bits, bits), lambda scc, a, old: (a if scc else old, None)),
    }
    low[f"s_bcnt1_i32_{b}"] = Scalar((32, bits), lambda scc, a: (a.bit_count(), int(a != 0)))
    low[f"s_bcnt0_i32_{b}"] = Scalar(
        (32, bits), lambda scc, a: (other + 1 - a.bit_count(), int(a.bit_count() <= other))
    )
    return low


SCALARS: Mapping[str, Scalar] = {
    **_TWO_SOURCES, **_ONE_SOURCE, **_of_both_widths(32), **_of_both_widths(64),
}  # fmt: skip
MASKS: Mapping[str, Callable[[int, int], int]] = {
    "and": lambda s, e: s & e, "or": lambda s, e: s | e, "xor": lambda s, e: s ^ e,
    "andn2": lambda s, e: s & ~e, "orn2": lambda s, e: s | ~e, "nand": lambda s, e: ~(s & e),
    "nor": lambda s, e: ~(s | e), "xnor": lambda s, e: ~(s ^ e), "andn1": lambda s, e: ~s & e,
    "orn1": lambda s, e: ~s | e,
}  # fmt: skip
_RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
}  # fmt: skip


def getter(operand: Operand, bits: int = 32) -> Get:
    """Return a reader of a scalar source."""
    first = operand.first
    if operand.bank is Bank.SCALAR:
        return (lambda w: w.get64(first)) if bits == 64 else (lambda w: w.get32(first))
    if operand.bank is Bank.FLAG:
        return scalar_flag(operand.text)
    if operand.bank is Bank.CONSTANT:
        value = constant_bits(operand.text, bits)
        value = value if bits == 64 else value & M32
        return lambda w: value
    raise Undecodable(f"the scalar source {operand.text} is unknown")


def setter(operand: Operand, bits: int = 32) -> Callable[[Wave, int], None]:
    """Return a writer of a scalar register."""
    if operand.bank is not Bank.SCALAR:
        raise Undecodable(f"the scalar destination {operand.text} is unknown")
    first = operand.first
    if bits == 64:
        return lambda w, value: w.set64(first, value)
    return lambda w, value: w.set32(first, value)


def decode(line: Line, context: Context) -> Instruction | None:
    """Return a scalar instruction; None if the line is none."""
    name = line.mnemonic
    if name in SCALARS:
        return _plain(line, SCALARS[name], context)
    if name.startswith(("s_cmp_", "s_cmpk_")):
        return _comparison(line)
    if name.startswith("s_bitcmp"):
        return _bit_comparison(line)
    if name.endswith(("_saveexec_b64", "_wrexec_b64")):
        return _save_exec(line)
    if name in {"s_movk_i32", "s_addk_i32", "s_mulk_i32", "s_cmovk_i32"}:
        return _with_constant(line)
    if name == "s_getpc_b64":
        (target,) = operands_of(line, 1)
        return scalar_instruction(line, lambda w: w.set64(target.first, ORIGIN), (), ids([target]))
    return None


def _source(text: str, bits: int, context: Context) -> tuple[Operand | None, Get]:
    """Return a source, which may be an address relative to the code."""
    operand = parse_operand(text)
    if operand is not None:
        return operand, getter(operand, bits)
    symbol, _, part = text.partition("@")
    if symbol not in context.symbols or not part.startswith(("rel32@", "abs32@")):
        raise Undecodable(f"the operand {text} is unknown")
    base = ORIGIN if part.startswith("rel32") else 0
    half, _, addend = part.partition("@")[2].partition("+")
    extra = int(addend or 0) - {"rel32": {"lo": 4, "hi": 12}}.get(part[:5], {}).get(half, 0)
    distance = (context.symbols[symbol] + extra - base) & M64
    value = distance & M32 if half == "lo" else distance >> 32
    return None, lambda w: value


def _plain(line: Line, told: Scalar, context: Context) -> Instruction:
    texts = list(line.operands)
    if len(texts) == len(told.bits) - 1 and line.mnemonic.startswith(("s_cmov", "s_bitset")):
        texts.append(texts[0])
    if len(texts) != len(told.bits):
        raise Undecodable(f"it has {len(texts)} operands in place of {len(told.bits)}")
    target = parse_operand(texts[0])
    if target is None:
        raise Undecodable(f"the operand {texts[0]} is unknown")
    pairs = [_source(t, b, context) for t, b in zip(texts[1:], told.bits[1:], strict=True)]
    put, compute = setter(target, told.bits[0]), told.compute
    step = _step(compute, [get for _, get in pairs], put)
    return scalar_instruction(line, step, ids(o for o, _ in pairs if o), ids([target]))


def _step(compute: Any, gets: list[Get], put: Callable[[Wave, int], None]) -> Any:
    def one(w: Wave) -> None:
        value, scc = compute(w.scc, gets[0](w))
        put(w, value)
        if scc is not None:
            w.scc = scc

    def two(w: Wave) -> None:
        value, scc = compute(w.scc, first(w), second(w))
        put(w, value)
        if scc is not None:
            w.scc = scc

    if len(gets) == 1:
        return one
    first, second = gets
    return two


def _comparison(line: Line) -> Instruction:
    _, kind, relation, form = line.mnemonic.split("_")
    left, right = operands_of(line, 2)
    compare, bits = _RELATIONS[relation], 64 if form.endswith("64") else 32
    a, b = getter(left, bits), getter(right, bits)
    if kind == "cmpk":
        constant = int(right.text, 0) & 0xFFFF
        extended = signed(constant, 16) & M32 if form.startswith("i") else constant

        def b(w: Wave) -> int:
            return extended

    is_signed = form.startswith("i")

    def step(w: Wave) -> None:
        x, y = a(w), b(w)
        w.scc = int(compare(signed(x), signed(y)) if is_signed else compare(x, y))

    return scalar_instruction(line, step, ids([left, right]), ())


def _bit_comparison(line: Line) -> Instruction:
    left, right = operands_of(line, 2)
    bits, wanted = int(line.mnemonic[-2:]), int(line.mnemonic[len("s_bitcmp")])
    a, b = getter(left, bits), getter(right)

    def step(w: Wave) -> None:
        w.scc = int(a(w) >> (b(w) & bits - 1) & 1 == wanted)

    return scalar_instruction(line, step, ids([left, right]), ())


def _save_exec(line: Line) -> Instruction:
    """Write EXEC, and save what it was (``saveexec``) or what it is now (``wrexec``)."""
    target, source = operands_of(line, 2)
    operation, what, _ = line.mnemonic[2:].split("_")
    combine, get, put = MASKS[operation], getter(source, 64), setter(target, 64)
    saves = what == "saveexec"

    def step(w: Wave) -> None:
        old = w.exec_bits
        new = combine(get(w), old) & M64
        put(w, old if saves else new)
        w.set_exec(new)
        w.scc = int(new != 0)

    return scalar_instruction(line, step, ids([source]) | EXEC_IDS, ids([target]) | EXEC_IDS)


def _with_constant(line: Line) -> Instruction:
    target, constant = operands_of(line, 2)
    value = signed(int(constant.text, 0) & 0xFFFF, 16)
    number, name = target.first, line.mnemonic

    def step(w: Wave) -> None:
        old = w.get32(number)
        if name == "s_movk_i32":
            w.set32(number, value & M32)
        elif name == "s_addk_i32":
            found, w.scc = _overflowing(signed(old) + value)
            w.set32(number, found)
        elif name == "s_mulk_i32":
            w.set32(number, old * value & M32)
        elif w.scc:
            w.set32(number, value & M32)

    return scalar_instruction(line, step, ids([target]), ids([target]))
