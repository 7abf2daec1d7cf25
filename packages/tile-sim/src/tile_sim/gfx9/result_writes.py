"""How instructions write their results: by type, with clamps, selections and masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tile_sim.gfx9.arrays import LANES, Array
from tile_sim.gfx9.operand_sources import DTYPES, Form
from tile_sim.gfx9.operands import Operand
from tile_sim.gfx9.wave import Wave

Write = Callable[[Wave, Any], None]
Mask = Callable[[Wave], Array]

_FACTORS = {("mul", "2"): 2.0, ("mul", "4"): 4.0, ("div", "2"): 0.5}


def writer(
    form: Form,
    operand: Operand,
    modifiers: Mapping[str, str],
    *,
    mask: Mask | None = None,
    half: int | None = None,
) -> Write:
    """Return a writer of a vector register.

    The mask is of lanes that are written, in place of those that are on: DPP leaves out more. A
    16-bit result goes to one `half` of the word, the other one being kept; without it, the other
    one is cleared.
    """
    number = operand.first
    finish = _finisher(form, modifiers)
    if form.endswith("64"):
        return _writer64(number, finish, mask)
    place = _placer(number, modifiers, half, is_narrow=form.endswith("16"))

    def write(w: Wave, value: Any) -> None:
        word = finish(value)
        if place is not None:
            word = place(w, word)
        if mask is None:
            w.put(number, word)
        else:
            np.copyto(w.rows[number], word, where=mask(w))

    return write


def _writer64(number: int, finish: Callable[[Any], Any], mask: Mask | None) -> Write:
    def write(w: Wave, value: Any) -> None:
        words = finish(value)
        low, high = words.astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
        if mask is None:
            w.put(number, low)
            w.put(number + 1, high)
        else:
            lanes = mask(w)
            np.copyto(w.rows[number], low, where=lanes)
            np.copyto(w.rows[number + 1], high, where=lanes)

    return write


def _finisher(form: Form, modifiers: Mapping[str, str]) -> Callable[[Any], Any]:
    """Return what turns a result into unsigned bits, with the output modifiers of floats."""
    dtype = np.dtype(DTYPES[form])
    bits = np.dtype(f"u{dtype.itemsize}")
    factor = next((f for (k, v), f in _FACTORS.items() if modifiers.get(k) == v), None)
    clamp = "clamp" in modifiers and dtype.kind == "f"

    def finish(value: Any) -> Any:
        if value.dtype != dtype:
            value = value.astype(dtype)
        if factor is not None:
            value = value * dtype.type(factor)
        if clamp:
            value = np.where(np.isnan(value), dtype.type(0), np.clip(value, 0, 1)).astype(dtype)
        return value.view(bits)

    return finish


def _placer(
    number: int, modifiers: Mapping[str, str], half: int | None, *, is_narrow: bool
) -> Callable[[Wave, Any], Any] | None:
    """Return what puts a byte or half of a word among the bits that stay; None for words."""
    select = modifiers.get("dst_sel", "DWORD")
    if half is not None:
        select, unused = f"WORD_{half}", "UNUSED_PRESERVE"
    else:
        unused = modifiers.get("dst_unused", "UNUSED_PAD")
    if select == "DWORD":
        return (lambda w, word: word.astype(np.uint32)) if is_narrow else None
    kind, _, index = select.partition("_")
    size = 8 if kind == "BYTE" else 16
    ones, shift = np.uint32((1 << size) - 1), np.uint32(size * int(index))
    keep = np.uint32(~(int(ones) << int(shift)) & 0xFFFFFFFF)

    def place(w: Wave, word: Any) -> Any:
        moved = (word.astype(np.uint32) & ones) << shift
        if unused == "UNUSED_PRESERVE":
            return moved | w.rows[number] & keep
        if unused == "UNUSED_SEXT":
            up = np.int32(32 - size - int(shift))
            signed = (moved << up.astype(np.uint32)).view(np.int32) >> up
            return signed.view(np.uint32) & ~np.uint32((1 << int(shift)) - 1)
        return moved

    return place


def wide(value: Any) -> Array:
    """Return 64 lanes of a value that may be the same in all of them."""
    return np.broadcast_to(value, (LANES,))
