"""The passes of the CUDA backend, as data: those of all GPUs, and its own among them."""

from __future__ import annotations

from tile_core.pass_manager.pipeline import Pass
from tile_core.simt.pipeline import GPU_PIPELINE

PACK_FACTORS = Pass(
    name="pack_int4_operands",
    run="tile_cuda.pack_int4_operands:pack_int4_operands_for",
    needs=("target",),
)
SCALED_GEMMS = Pass(
    name="choose_scaled_gemms",
    run="tile_cuda.scaled_gemms:choose_scaled_gemms_for",
    needs=("target",),
)
PLACE_SUMS = Pass(name="place_sums", run="tile_cuda.tensor_memory:place_sums", needs=("machine",))
PIPELINE = (
    GPU_PIPELINE.inserted(SCALED_GEMMS, before="lower_scaled_gemms")
    .inserted(PACK_FACTORS, before="hoist_accumulator_init")
    .inserted(PLACE_SUMS, before="flatten_sequences")
)
"""What becomes of a kernel for an NVIDIA GPU."""
