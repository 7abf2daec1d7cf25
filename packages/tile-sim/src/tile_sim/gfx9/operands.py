"""Operands: registers, constants and modifiers, parsed once from their text."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

SCALARS = 128
"""Scalar registers by their number in the encoding: 106 VCC, 124 M0, 126 EXEC."""

VCC, M0, EXEC = 106, 124, 126
FIRST_ACCUMULATOR = 256
"""Accumulation registers lie behind the 256 vector registers of a lane."""

FIRST_SCALAR_ID = 512
"""In sets of registers, scalar registers are counted from here."""

SHARED_APERTURE = 0x0001_0000_0000_0000
PRIVATE_APERTURE = 0x0002_0000_0000_0000

_RANGE = re.compile(r"^(v|s|a|ttmp)(?:(\d+)|\[(\d+)(?::(\d+))?\])$")
_NAMED = {
    "vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1), "flat_scratch": (102, 2), "flat_scratch_lo": (102, 1),
    "flat_scratch_hi": (103, 1), "xnack_mask": (104, 2),
}  # fmt: skip
_APERTURES = {
    "src_shared_base": SHARED_APERTURE, "src_private_base": PRIVATE_APERTURE,
    "src_shared_limit": SHARED_APERTURE + 0xFFFFFFFF,
    "src_private_limit": PRIVATE_APERTURE + 0xFFFFFFFF,
}  # fmt: skip
_INVERSE_TWO_PI = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}


class Bank(Enum):
    """Where an operand lies."""

    VECTOR = "v"
    SCALAR = "s"
    CONSTANT = "constant"
    OFF = "off"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: registers of a bank, or a constant, whose bits depend on the instruction.

    Accumulation registers begin at `FIRST_ACCUMULATOR`. Modifiers of a source are ``-v1``, ``|v1|``
    and ``sext(v1)``.
    """

    bank: Bank
    first: int = 0
    count: int = 1
    text: str = ""
    negative: bool = False
    absolute: bool = False
    extended: bool = False

    @property
    def registers(self) -> tuple[int, ...]:
        """Return the registers as numbers that are unique over both banks."""
        if self.bank is Bank.VECTOR:
            return tuple(range(self.first, self.first + self.count))
        if self.bank is Bank.SCALAR:
            return tuple(range(self.first + FIRST_SCALAR_ID, self.first + 512 + self.count))
        return ()

    @property
    def is_aligned(self) -> bool:
        """Say whether several registers begin where they may: at multiples of 2, or of 4."""
        if self.bank is Bank.VECTOR:
            return self.count == 1 or self.first % 2 == 0
        return (
            self.bank is not Bank.SCALAR or self.first % (4 if self.count > 2 else self.count) == 0
        )


@lru_cache(maxsize=4096)
def parse_operand(text: str) -> Operand | None:
    """Return what a piece of text names; None if it is neither register nor constant.

    Examples
    --------
    >>> parse_operand("v[2:3]").registers, parse_operand("-|a1|").registers
    ((2, 3), (257,))
    """
    if text.startswith("-") and (text[1:2] in "|vsa(" or text[1:4] in {"abs", "vcc"}):
        inner = parse_operand(text[1:])
        return None if inner is None else replace(inner, negative=not inner.negative)
    if text.startswith("|") and text.endswith("|"):
        return _with(text[1:-1], absolute=True)
    for name in ("neg", "abs", "sext"):
        if text.startswith(f"{name}(") and text.endswith(")"):
            key = {"neg": "negative", "abs": "absolute", "sext": "extended"}[name]
            return _with(text[len(name) + 1 : -1], **{key: True})
    return _plain(text)


def _with(text: str, **changes: bool) -> Operand | None:
    inner = parse_operand(text)
    return None if inner is None else replace(inner, **changes)  # type: ignore[arg-type]


def _plain(text: str) -> Operand | None:
    found = _RANGE.match(text)
    if found:
        first = int(found[2] or found[3])
        count = int(found[4]) - first + 1 if found[4] else 1
        if found[1] == "s":
            return Operand(Bank.SCALAR, first, count, text)
        if found[1] == "ttmp":
            return Operand(Bank.SCALAR, 108 + first, count, text)
        return Operand(Bank.VECTOR, first + 256 * (found[1] == "a"), count, text)
    if text in _NAMED:
        return Operand(Bank.SCALAR, *_NAMED[text], text)
    if text in {"scc", "vccz", "execz", "src_scc", "src_vccz", "src_execz"}:
        return Operand(Bank.FLAG, text=text.removeprefix("src_"))
    if text in {"off", "null"}:
        return Operand(Bank.OFF, text=text)
    if is_constant(text):
        return Operand(Bank.CONSTANT, text=text)
    return None


def is_constant(text: str) -> bool:
    """Say whether `text` is a number that an instruction may hold."""
    return (
        bool(re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+(\.\d+)?(e-?\d+)?)", text)) or text in _APERTURES
    )


def constant_bits(
    text: str, bits: int = 32, *, is_float: bool = False, signed: bool = False
) -> int:
    """Return the bits that an operand of a given width takes from a constant.

    Small whole numbers and a few fractions are inline: they have their value in the type of
    the operand. Others are 32-bit literals: the upper half of a double, zero- or sign-extended
    in 64-bit integers.

    Examples
    --------
    >>> hex(constant_bits("1.0", 16, is_float=True)), hex(constant_bits("-1", 32))
    ('0x3c00', '0xffffffff')
    """
    if text in _APERTURES:
        return _APERTURES[text]
    if "." in text or ("e" in text and not text.startswith("0x")):
        return _fraction(float(text), bits)
    value = int(text, 0)
    if -16 <= value <= 64:
        return value % (1 << bits)
    literal = value % (1 << 32)
    if bits == 64 and is_float:
        return literal << 32
    if bits == 64 and (signed or value < 0) and literal >> 31:
        return literal | 0xFFFFFFFF_00000000
    return literal


def _fraction(value: float, bits: int) -> int:
    if abs(value - 0.15915494) < 1e-7:
        return _INVERSE_TWO_PI[bits]
    form, whole = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[bits]
    return int(struct.unpack(whole, struct.pack(form, value))[0])
