"""The passes that bring a kernel to what the CPU lowers, in their order, as data."""

from __future__ import annotations

from tile_core.pass_manager.manager import TILE
from tile_core.pass_manager.pipeline import Pass, Pipeline
from tile_core.passes.default_pipeline import DEFAULT_PIPELINE


def _shared(name: str, module: str, *needs: str) -> Pass:
    """Return a pass that other machines have, too."""
    return Pass(name=name, phase=TILE, run=f"{module}:{name}", needs=needs)


def _own(name: str, *, is_optional: bool = True) -> Pass:
    """Return a pass of the CPU alone: a function of the kernel and the target."""
    return Pass(
        name=name,
        phase=TILE,
        run=f"tile_cpu.passes.{name}:{name}",
        needs=("target",),
        is_optional=is_optional,
    )


PIPELINE = Pipeline(
    (
        *DEFAULT_PIPELINE.passes,
        _shared("drop_gpu_hints", "tile_core.passes.drop_gpu_hints"),
        _shared("eliminate_dead_code", "tile_core.passes.eliminate_dead_code"),
        _shared("lower_signals", "tile_core.passes.count_signals"),
        _shared("refuse_gpu_only", "tile_core.passes.refuse_gpu_only", "target"),
        _shared("split_grid_barriers", "tile_core.passes.split_grid_barriers"),
        _shared("split_vectors", "tile_core.passes.split_vectors"),
        _shared("distribute_random_loops", "tile_core.ops.random_loops"),
        _shared("lower_random", "tile_core.passes.lower_random"),
        _shared("serialise_threads", "tile_core.passes.serialise_threads"),
        _shared("schedule_coroutines", "tile_core.passes.count_signals"),
        _own("fold_single_blocks"),
        _own("fuse_gemm_loops"),
        _own("stream_gemm_operands"),
        _own("widen_gemm_operands", is_optional=False),
        _own("forward_tile_copies"),
        _own("fold_fills"),
        _own("bound_exponents"),
        _own("fuse_columns"),
        _own("fuse_rows"),
        _own("eliminate_dead_tiles"),
        _own("merge_gemm_blocks"),
    )
)
"""What becomes of a kernel for the CPU."""
