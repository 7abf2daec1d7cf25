"""Data-parallel primitives: sources that lanes take from their neighbours."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tile_sim.gfx9.arrays import LANES, Array
from tile_sim.gfx9.instruction import Undecodable, bits
from tile_sim.gfx9.operand_sources import Read
from tile_sim.gfx9.wave import Wave

_LANE = np.arange(LANES)
CONTROLS = (
    "quad_perm", "row_shl", "row_shr", "row_ror", "wave_shl", "wave_rol", "wave_shr", "wave_ror",
    "row_mirror", "row_half_mirror", "row_bcast", "row_newbcast", "row_share",
)  # fmt: skip
MODIFIERS = (*CONTROLS, "row_mask", "bank_mask", "bound_ctrl", "fi")


def source_lanes(modifiers: Mapping[str, str]) -> Array:
    """Return the lane that each lane reads; -1 where it lies outside.

    Examples
    --------
    >>> source_lanes({"row_shr": "1"})[[0, 1, 16, 17]].tolist()
    [-1, 0, -1, 16]
    """
    control = next((name for name in CONTROLS if name in modifiers), None)
    if control is None:
        raise Undecodable("it moves lanes in a way that is unknown")
    if control == "quad_perm":
        return (_LANE & ~3) + np.array(bits(modifiers[control]))[_LANE & 3]
    if control == "row_mirror":
        return _LANE ^ 15
    if control == "row_half_mirror":
        return _LANE ^ 7
    return _shifted(control, int(modifiers[control], 0))


def _shifted(control: str, count: int) -> Array:
    row, column = _LANE & ~15, _LANE & 15
    match control:
        case "row_shl":
            return np.where(column + count < 16, _LANE + count, -1)
        case "row_shr":
            return np.where(column >= count, _LANE - count, -1)
        case "row_ror":
            return row + (column - count) % 16
        case "row_newbcast" | "row_share":
            return row + count
        case "row_bcast":
            return np.where(count < _LANE, (_LANE // (count + 1)) * (count + 1) - 1, -1)
        case "wave_shl":
            return np.where(_LANE < 63, _LANE + 1, -1)
        case "wave_shr":
            return _LANE - 1
        case "wave_rol":
            return (_LANE + 1) % LANES
        case _:
            return (_LANE - 1) % LANES


class Moved:
    """A source that other lanes provide, and the lanes that are written then."""

    def __init__(self, modifiers: Mapping[str, str]) -> None:
        source = source_lanes(modifiers)
        self._inside: Array = source >= 0
        self._from: Array = np.where(self._inside, source, 0)
        rows = int(modifiers.get("row_mask", "0xf"), 0)
        banks = int(modifiers.get("bank_mask", "0xf"), 0)
        self._enabled: Array = ((rows >> _LANE // 16) & (banks >> _LANE % 16 // 4) & 1) == 1
        self._fills = "bound_ctrl" in modifiers

    def read(self, raw: Read) -> Read:
        """Return a reader of the moved lanes; zero where there is none, or it is off."""
        source, inside = self._from, self._inside

        def moved(w: Wave) -> Array:
            valid = inside if w.is_full else inside & w.lanes[source]
            return np.where(valid, raw(w)[source], np.uint32(0))

        return moved

    def mask(self, w: Wave) -> Array:
        """Return the lanes that are written."""
        lanes = w.lanes & self._enabled
        if self._fills:
            return lanes
        return lanes & self._inside & w.lanes[self._from]
