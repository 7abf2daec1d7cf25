"""Rows of a backend's table of architectures, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeVar

from tile_core.errors import TargetError

Row = TypeVar("Row")


def row_called(arch: str, table: Mapping[str, Row], family: str, unknown: str) -> Row:
    """Return the row of `table` called `arch`.

    `family` is what targets of this table start with; `unknown` says that there is no such row,
    and a hint names the nearest ones.

    Raises
    ------
    TargetError
        If there is no such row.
    """
    if arch in table:
        return table[arch]
    near = difflib.get_close_matches(arch, table, cutoff=0.7)
    if near:
        names = " or ".join(f"'{family}:{name}'" for name in near)
        raise TargetError(unknown, hint=f"did you mean {names}?")
    raise TargetError(unknown, hint=f"use one of {', '.join(table)}")
