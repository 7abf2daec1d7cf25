"""What instructions compute lane by lane, and how they read operands: by type, from any bank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.operands import Bank, Operand, constant_bits
from tile_sim.gfx9.wave import Wave

Read = Callable[[Wave], Any]
"""Returns 64 lanes, or one number that is the same in all of them."""

Form = str
"""The type of an operand: ``u32 i32 f32 u16 i16 f16 u64 i64 f64 u24 i24``."""

DTYPES: dict[Form, Any] = {
    "u32": np.uint32, "i32": np.int32, "f32": np.float32, "u64": np.uint64, "i64": np.int64,
    "f64": np.float64, "u16": np.uint16, "i16": np.int16, "f16": np.float16,
}  # fmt: skip


def width_of(form: Form) -> int:
    """Return how many bits of registers an operand takes that is not narrower than a word."""
    return 64 if form.endswith("64") else 32


def raw32(operand: Operand, bits: int = 32, *, is_float: bool = False) -> Read:
    """Return a reader of a word; a constant has its bits in a type of `bits`."""
    first = operand.first
    if operand.bank is Bank.VECTOR:
        return lambda w: w.rows[first]
    if operand.bank is Bank.SCALAR:
        return lambda w: np.uint32(w.get32(first))
    if operand.bank is Bank.FLAG:
        flag = scalar_flag(operand.text)
        return lambda w: np.uint32(flag(w))
    value = np.uint32(constant_bits(operand.text, bits, is_float=is_float) & 0xFFFFFFFF)
    return lambda w: value


def scalar_flag(name: str) -> Callable[[Wave], int]:
    """Return a reader of SCC, VCCZ or EXECZ."""
    if name == "scc":
        return lambda w: w.scc
    if name == "vccz":
        return lambda w: int(w.vcc == 0)
    return lambda w: int(w.exec_bits == 0)


def raw64(operand: Operand, form: Form = "u64") -> Read:
    """Return a reader of a pair of words."""
    first = operand.first
    if operand.bank is Bank.VECTOR:

        def pair(w: Wave) -> Array:
            low, high = w.rows[first], w.rows[first + 1]
            return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)

        return pair
    if operand.bank is Bank.SCALAR:
        return lambda w: np.uint64(w.get64(first))
    signed = form == "i64"
    bits = constant_bits(operand.text, 64, is_float=form == "f64", signed=signed)
    value = np.uint64(bits)
    return lambda w: value


def reader(
    form: Form, operand: Operand, *, half: int = 0, raw: Read | None = None, select: str = ""
) -> Read:
    """Return a reader of a source.

    A 16-bit source lies in one `half` of a word; `raw` reads the word in place of the register, of
    lanes that were moved; `select` is ``src0_sel`` of SDWA, such as ``BYTE_1``.
    """
    if width_of(form) == 64:
        return _reader64(form, operand)
    is_float, bits = form.startswith("f"), 16 if form.endswith("16") else 32
    read = raw or raw32(operand, bits, is_float=is_float)
    if select and select != "DWORD":
        read = _selected(read, select, operand.extended)
    if form.endswith("24"):
        return _reader24(form, read)
    if form.endswith("16"):
        return _reader16(form, read, operand, half)
    read = _signed(read, operand, 0x80000000) if is_float else read
    dtype = DTYPES[form]
    if form == "u32":
        return read
    return lambda w: read(w).view(dtype)


def _reader16(form: Form, read: Read, operand: Operand, half: int) -> Read:
    """Read half of a word."""
    dtype, is_float = DTYPES[form], form == "f16"
    shift = np.uint32(16 * half)

    def narrow(w: Wave) -> Any:
        word = read(w)
        return (word >> shift if half else word).astype(np.uint16)

    signed = _signed(narrow, operand, 0x8000) if is_float else narrow
    return lambda w: signed(w).view(dtype)


def _reader24(form: Form, read: Read) -> Read:
    if form == "u24":
        return lambda w: read(w) & np.uint32(0xFFFFFF)
    return lambda w: (read(w) << np.uint32(8)).view(np.int32) >> np.int32(8)


def _reader64(form: Form, operand: Operand) -> Read:
    read, dtype = raw64(operand, form), DTYPES[form]
    if form == "f64":
        read = _signed(read, operand, 1 << 63)
    if form == "u64":
        return read
    return lambda w: read(w).view(dtype)


def _signed(read: Read, operand: Operand, sign: int) -> Read:
    """Apply ``|x|`` and ``-x`` to the bits of a float."""
    if not operand.absolute and not operand.negative:
        return read
    keep, flip = sign - 1, sign if operand.negative else 0
    if operand.absolute:
        return lambda w: _like(read(w), keep, flip)
    return lambda w: _like(read(w), keep | sign, flip)


def _like(word: Any, keep: int, flip: int) -> Any:
    return (word & word.dtype.type(keep)) ^ word.dtype.type(flip)


def _selected(read: Read, select: str, is_signed: bool) -> Read:
    """Read a byte or half of a word, as SDWA does."""
    kind, _, index = select.partition("_")
    size = 8 if kind == "BYTE" else 16
    left, right = np.uint32(32 - size * (int(index) + 1)), np.uint32(32 - size)
    if is_signed:
        signed_right = np.int32(32 - size)
        return lambda w: ((read(w) << left).view(np.int32) >> signed_right).view(np.uint32)
    return lambda w: (read(w) << left) >> right


@dataclass(frozen=True, slots=True)
class Operation:
    """What an instruction computes, lane by lane, or of numbers that all lanes share.

    If it accumulates, the destination is the last source, too. A 16-bit result may leave the other
    half of its register alone. Slow ones, the transcendental functions, have a pipeline of their
    own.
    """

    result: Form
    sources: tuple[Form, ...]
    compute: Callable[..., Any]
    accumulates: bool = False
    keeps_half: bool = False
    is_slow: bool = False


def operation(signature: str, compute: Callable[..., Any], **flags: bool) -> Operation:
    """Return an operation from its types in one word.

    Examples
    --------
    >>> operation("u32 u32 -> u32", lambda a, b: a + b).sources
    ('u32', 'u32')
    """
    sources, _, result = signature.partition(" -> ")
    return Operation(result, tuple(sources.split()), compute, **flags)
