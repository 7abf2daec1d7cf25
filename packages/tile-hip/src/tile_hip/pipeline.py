"""The passes of the HIP backend, as data: those of all GPUs."""

from __future__ import annotations

from tile_core.simt.pipeline import GPU_PIPELINE

PIPELINE = GPU_PIPELINE
"""What becomes of a kernel for an AMD GPU."""
