"""Comparisons of lanes: their results are masks in scalar registers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tile_sim.gfx9.arrays import ALL, bits_of
from tile_sim.gfx9.assembly_text import Line
from tile_sim.gfx9.instruction import (
    EXEC_IDS,
    Context,
    Instruction,
    Undecodable,
    ids,
    operands_of,
    refuse_modifiers,
    vector_instruction,
)
from tile_sim.gfx9.result_writes import wide
from tile_sim.gfx9.vector import SDWA_MODIFIERS, base_name, source_readers
from tile_sim.gfx9.wave import Wave

Compare = Callable[[Any, Any], Any]
_NAME = re.compile(r"v_cmp(x?)_(\w+)_([fiu](?:16|32|64))$")


def _ordered(a: Any, b: Any) -> Any:
    return ~(np.isnan(a) | np.isnan(b))


def _constant(value: bool) -> Compare:
    return lambda a, b: np.bool_(value)


_FLOATS: Mapping[str, Compare] = {
    "f": _constant(False), "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater,
    "lg": lambda a, b: (a < b) | (a > b), "ge": np.greater_equal, "o": _ordered,
    "u": lambda a, b: np.isnan(a) | np.isnan(b), "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)), "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b), "neq": np.not_equal, "nlt": lambda a, b: ~(a < b),
    "tru": _constant(True),
}  # fmt: skip
_INTEGERS: Mapping[str, Compare] = {
    "f": _constant(False), "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater,
    "ne": np.not_equal, "ge": np.greater_equal, "t": _constant(True),
}  # fmt: skip


def _class_of(a: Any, b: Any) -> Any:
    """Say whether a float is of one of the ten classes that a mask names."""
    negative, info = np.signbit(a), np.finfo(a.dtype)
    is_small = (np.abs(a) < info.smallest_normal) & (a != 0)
    is_normal = np.isfinite(a) & (a != 0) & ~is_small
    nan, inf, zero = np.isnan(a), np.isinf(a), a == 0
    classes = (
        np.zeros_like(nan), nan, negative & inf, negative & is_normal, negative & is_small,
        negative & zero, ~negative & zero, ~negative & is_small, ~negative & is_normal,
        ~negative & inf,
    )  # fmt: skip
    found = np.zeros_like(nan)
    for position, belongs in enumerate(classes):
        found = found | belongs & ((b >> np.uint32(position) & np.uint32(1)) == 1)
    return found


def decode(line: Line, context: Context) -> Instruction | None:
    """Return a comparison; None if the line is none."""
    found = _NAME.match(base_name(line.mnemonic))
    if found is None:
        return None
    refuse_modifiers(line, ("op_sel", *SDWA_MODIFIERS))
    also_exec, relation, form = bool(found[1]), found[2], found[3]
    target, *sources = operands_of(line, 3)
    if relation == "class":
        compare: Compare = _class_of
        forms = (form, "u32")
    else:
        table = _FLOATS if form.startswith("f") else _INTEGERS
        if relation not in table:
            raise Undecodable(f"the comparison {relation} is unknown")
        compare, forms = table[relation], (form, form)
    left, right = source_readers(line, forms, sources)
    number = target.first

    def step(w: Wave) -> None:
        answer = bits_of(wide(compare(left(w), right(w))))
        if w.exec_bits != ALL:
            answer &= w.exec_bits
        w.set64(number, answer)
        if also_exec:
            w.set_exec(answer)

    writes = ids([target]) | (EXEC_IDS if also_exec else frozenset())
    return vector_instruction(line, step, ids(sources), writes)
