"""The programs of a seed: number by number, so that a run can go on where another one ended."""

from __future__ import annotations

from random import Random

from fuzz import threads, tiles
from fuzz.program import Program


def generate(seed: int, number: int) -> Program:
    """Return program `number` of `seed`: most are small, for what is compiled takes long."""
    rng = Random(f"{seed}:{number}")
    return (threads if rng.random() < 0.25 else tiles).program(rng, small=rng.random() < 0.85)
