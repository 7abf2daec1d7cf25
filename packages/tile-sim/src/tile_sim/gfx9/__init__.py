"""An interpreter of the machine code of AMD's GPUs of the gfx9 family, from its assembly.

It runs what the compiler made of a kernel, on any machine, and knows when data arrives at the
latest: whoever touches a register or shared memory before the wait that covers it is told.
"""

from __future__ import annotations

from tile_sim.gfx9.code import Code
from tile_sim.gfx9.launch import WaveReport, run

__all__ = ["Code", "WaveReport", "run"]
