"""How many registers the compiler of a launch may give to each thread, said in blocks."""

from __future__ import annotations

import math

from tile_core.ir.stmt import Launch
from tile_core.machine import SimtMachine
from tile_core.passes.register_estimate import blocks_together, registers_wanted

SPARE = 32
"""Registers that a thread may need beyond what is known of it before it has any."""


def blocks_to_hold(launch: Launch, machine: SimtMachine) -> int:
    """Return how many blocks of a launch shall find registers on one multiprocessor.

    One, as long as all registers are alike. Where arithmetic reaches only some of them, the
    others hold sums of matrix products, which are moved for all else that is done with them. A
    thread that is content with the plain ones gets no others: then as many blocks as have these
    shall fit.

    Parameters
    ----------
    launch
        With its tiles, before it is a program of one thread.
    """
    wished = blocks_together(launch)
    if wished is not None:
        return wished
    plain, limits = machine.plain_registers, machine.multiprocessor
    if plain >= machine.registers or limits is None:
        return 1
    threads = math.prod(launch.threads)
    if registers_wanted(launch, threads) > plain - SPARE:
        return 1
    return max(1, limits.registers // (plain * threads))
