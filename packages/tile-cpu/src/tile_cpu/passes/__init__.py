"""Passes on tile IR that only the CPU needs; each is inserted at a named point."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.ir.stmt import Kernel
from tile_core.ops.random_loops import deal_random_loops
from tile_core.passes.count_signals import open_signals, take_turns
from tile_core.passes.draw_random import draw_random
from tile_core.passes.drop_gpu_hints import drop_gpu_hints
from tile_core.passes.eliminate_dead_code import eliminate_dead_code
from tile_core.passes.insertion import Insertion, in_order, on_every_target
from tile_core.passes.refuse_gpu_only import refuse_gpu_only
from tile_core.passes.serialise_threads import serialise_threads
from tile_core.passes.split_grid_barriers import split_grid_barriers
from tile_core.passes.split_vectors import split_vectors
from tile_core.target import Target
from tile_cpu.passes.absorb_fills import absorb_fills
from tile_cpu.passes.drop_unused_tiles import drop_unused_tiles
from tile_cpu.passes.forward_tile_copies import forward_tile_copies
from tile_cpu.passes.fuse_gemm_loops import fuse_gemm_loops
from tile_cpu.passes.fuse_rows import fuse_rows
from tile_cpu.passes.merge_gemm_blocks import merge_gemm_blocks
from tile_cpu.passes.stream_gemm_operands import stream_gemm_operands
from tile_cpu.passes.widen_gemm_factors import widen_gemm_factors

_IN_ORDER: tuple[tuple[str, Callable[[Kernel, Target], Kernel]], ...] = (
    ("drop_gpu_hints", on_every_target(drop_gpu_hints)),
    ("eliminate_dead_code", on_every_target(eliminate_dead_code)),
    ("open_signals", on_every_target(open_signals)),
    ("refuse_gpu_only", refuse_gpu_only),
    ("split_grid_barriers", on_every_target(split_grid_barriers)),
    ("split_vectors", on_every_target(split_vectors)),
    ("deal_random_loops", on_every_target(deal_random_loops)),
    ("draw_random", on_every_target(draw_random)),
    ("serialise_threads", on_every_target(serialise_threads)),
    ("take_turns", on_every_target(take_turns)),
    ("widen_gemm_factors", widen_gemm_factors),
    ("fuse_gemm_loops", fuse_gemm_loops),
    ("stream_gemm_operands", stream_gemm_operands),
    ("forward_tile_copies", forward_tile_copies),
    ("absorb_fills", absorb_fills),
    ("fuse_rows", fuse_rows),
    ("drop_unused_tiles", drop_unused_tiles),
    ("merge_gemm_blocks", merge_gemm_blocks),
)


def cpu_passes() -> tuple[Insertion, ...]:
    """Return the passes in their order; passes at one point run in the order of their names."""
    return in_order("cpu", _IN_ORDER)
