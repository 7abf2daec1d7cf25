"""Emulator of GPU kernels: the emitted source runs on the CPU, one fiber per thread, checked."""

from tile_sim.settings import SimSettings, checking

__all__ = ["SimSettings", "checking"]
