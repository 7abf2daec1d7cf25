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
CHOOSE_PAIRS = Pass(
    name="choose_pairs",
    run="tile_cuda.block_pairs:choose_pairs",
    needs=("machine",),
    is_optional=True,
)
PAIR_BLOCKS = Pass(name="pair_blocks", run="tile_cuda.block_pairs:pair_blocks")
PIPELINE = (
    GPU_PIPELINE.inserted(SCALED_GEMMS, before="lower_scaled_gemms")
    .inserted(PACK_FACTORS, before="hoist_accumulator_init")
    .inserted(CHOOSE_PAIRS, before="specialise_warps")
    .inserted(PLACE_SUMS, before="flatten_sequences")
    .inserted(PAIR_BLOCKS, before="flatten_sequences")
)
"""What becomes of a kernel for an NVIDIA GPU."""
