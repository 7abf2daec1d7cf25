"""Insertions: passes that a plugin adds at a named point of the one pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tile_core.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """One extra pass, and where in the pipeline it runs.

    Parameters
    ----------
    name
        What traces and errors call the pass, such as ``"cpu.prefetch"``; unique.
    point
        The named point of the pipeline at which it runs. Passes at one point run in the
        order of their names, so that the order in which plugins load cannot matter.
    run
        ``run(program, target) -> program``: pure, and of the kind of program that reaches
        the point: tile IR, or thread-level TIR.
    """

    name: str
    point: str
    run: Callable[[Any, Target], Any]
