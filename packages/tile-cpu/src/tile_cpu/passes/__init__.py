"""Passes on tile IR that only the CPU needs; `tile_cpu.pipeline` says when they run."""
