"""The passes that bring a kernel to programs of single threads, in their order, as data.

tile    the whole kernel as it was traced; backends add their own
check   what no machine of this kind can do
plan    copies, products and stores get their threads and their place in pipelines
layout  how tiles are stored, and which thread runs which iteration
split   where layouts conflict: loops get copies of the tiles in the way, and `layout` runs again
launch  each launch for itself, its operators still whole
thread  the body of each launch as one thread runs it
"""

from __future__ import annotations

from tile_core.pass_manager.manager import TILE
from tile_core.pass_manager.pipeline import Pass, Pipeline
from tile_core.records import replace

CHECK, PLAN, LAYOUT, SPLIT, LAUNCH, THREAD = (
    "check",
    "plan",
    "layout",
    "split",
    "launch",
    "thread",
)

_MACHINE = ("machine",)
_BESIDE = ("runs_beside",)

_TILE = (
    Pass(name="select_ranges", run="tile_core.ops.select_ranges:select_ranges"),
    Pass(name="lower_grid_barriers", run="tile_core.passes.cooperative_grids:lower_grid_barriers"),
    Pass(name="split_vectors", run="tile_core.passes.split_vectors:split_vectors"),
    Pass(name="lower_random", run="tile_core.passes.lower_random:lower_random"),
    Pass(
        name="hoist_accumulator_init",
        run="tile_core.passes.hoist_accumulator_init:hoist_accumulator_init",
        is_optional=True,
    ),
)

_CHECK = (
    Pass(
        name="check_fragments",
        run="tile_core.simt.resource_limits:check_fragments",
        needs=_MACHINE,
        kind="check",
    ),
)

_PLAN = (
    Pass(name="check_views", run="tile_core.simt.buffer_addresses:check_views", kind="check"),
    Pass(
        name="legalise_gemms",
        run="tile_core.passes.legalise_gemms:legalise_gemms",
        needs=("features",),
    ),
    Pass(
        name="materialise_partial_results",
        run="tile_core.passes.materialise_partial_results:materialise_partial_results",
    ),
    Pass(
        name="eliminate_dead_code", run="tile_core.passes.eliminate_dead_code:eliminate_dead_code"
    ),
    Pass(
        name="swizzle_threadblocks",
        run="tile_core.passes.swizzle_threadblocks:swizzle_threadblocks",
    ),
    Pass(
        name="mask_gemms",
        run="tile_core.passes.mask_gemms:mask_gemms",
        needs=_BESIDE,
        is_optional=True,
    ),
    Pass(
        name="specialise_warps",
        run="tile_core.passes.specialise_warps:specialise_warps",
        needs=("machine", "runs_beside"),
        when=("specialises",),
        is_optional=True,
    ),
    Pass(
        name="overlap_gemms",
        run="tile_core.passes.overlap_gemms:overlap_gemms",
        needs=("runs_beside", "registers", "shared_bytes"),
        when=("is_specialised",),
        is_optional=True,
    ),
    Pass(
        name="plan_pipelines",
        run="tile_core.passes.plan_pipelines:plan_pipelines",
        needs=_MACHINE,
        options=(("folded", "folds_pipelines"),),
    ),
    Pass(
        name="convert_operand_layouts",
        run="tile_core.passes.convert_operand_layouts:convert_operand_layouts",
        needs=("target", "rules", "machine"),
    ),
    Pass(
        name="stage_epilogues",
        run="tile_core.passes.stage_epilogues:stage_epilogues",
        needs=_MACHINE,
        when=("stages_stores",),
        is_optional=True,
    ),
    Pass(
        name="lower_bulk_loads",
        run="tile_core.passes.lower_bulk_loads:lower_bulk_loads",
        needs=_MACHINE,
        when=("has_engines",),
    ),
    Pass(
        name="lower_bulk_stores",
        run="tile_core.passes.lower_bulk_stores:lower_bulk_stores",
        needs=_MACHINE,
        when=("specialises",),
        is_optional=True,
    ),
    Pass(
        name="lower_bulk_reductions",
        run="tile_core.passes.lower_bulk_reductions:lower_bulk_reductions",
        needs=_MACHINE,
        when=("specialises",),
        is_optional=True,
    ),
    Pass(
        name="fence_async_reads",
        run="tile_core.passes.fence_async_reads:fence_async_reads",
        needs=_BESIDE,
    ),
    Pass(
        name="fence_async_writes",
        run="tile_core.passes.fence_async_writes:fence_async_writes",
        needs=_BESIDE,
    ),
    Pass(name="flatten_sequences", run="tile_core.passes.flatten_sequences:flatten_sequences"),
)
"""Fences for the async proxy come last: when all that reads and writes tiles is there."""

_LAYOUT = (
    Pass(
        name="infer_layouts",
        run="tile_core.passes.infer_layouts:infer_layouts",
        needs=("target", "rules"),
        options=(("simt", "machine"), ("exchanges", "is_split")),
        kind="analysis",
    ),
)

_SPLIT = (
    Pass(
        name="separate_loops",
        run="tile_core.passes.separate_loops:separate_loops",
        needs=("target", "rules", "machine"),
    ),
    Pass(name="flatten_separated", run="tile_core.passes.flatten_sequences:flatten_sequences"),
)

_LAUNCH = (
    Pass(
        name="refuse_divergent_races",
        run="tile_core.passes.divergent_races:refuse_divergent_races",
        needs=("warp_size",),
        when=("orders_threads",),
    ),
    Pass(
        name="insert_barriers",
        run="tile_core.passes.insert_barriers:insert_barriers",
        needs=("places", "shared"),
        options=(("between_threads", "orders_threads"), ("warp_size", "warp_size")),
    ),
)

_THREAD = (
    Pass(name="lower_stmt", run="tile_core.simt.lower_statements:lower_body", needs=("lowering",)),
    Pass(
        name="uncounted_loads",
        run="tile_core.simt.uncounted_loads:uncounted_loads",
        needs=("thread_variables",),
        when=("counts_copies",),
        kind="check",
    ),
    Pass(
        name="insert_wait_counts",
        run="tile_core.simt.wait_counts:insert_wait_counts",
        needs=("env",),
        when=("counts_copies",),
    ),
    Pass(
        name="name_uniform_wave_ids",
        run="tile_core.simt.uniform_wave_id:name_uniform_wave_ids",
        needs=("fresh_name", "box_variables"),
        when=("counts_copies",),
        is_optional=True,
    ),
    Pass(
        name="split_index_sets",
        run="tile_core.simt.index_set_splitting:split_index_sets",
        needs=("env", "thread_variables"),
        is_optional=True,
    ),
    Pass(
        name="simplify_indices",
        run="tile_core.simt.simplify:simplify_indices",
        needs=("env",),
        is_optional=True,
    ),
    Pass(
        name="reduce_division_strength",
        run="tile_core.simt.division_strength_reduction:reduce_division_strength",
        needs=_MACHINE,
        is_optional=True,
    ),
    Pass(
        name="merge_branches",
        run="tile_core.simt.merge_branches:merge_branches",
        needs=("thread_variables", "warp_size"),
        is_optional=True,
    ),
    Pass(
        name="make_branches_warp_uniform",
        run="tile_core.simt.warp_uniform_branches:make_branches_warp_uniform",
        needs=("thread", "warp_name", "machine"),
        is_optional=True,
    ),
    Pass(
        name="hoist_warp_shuffles",
        run="tile_core.simt.hoist_warp_shuffles:hoist_warp_shuffles",
        is_optional=True,
    ),
    Pass(
        name="pin_accumulators",
        run="tile_core.simt.pin_accumulators:pin_accumulators",
        is_optional=True,
    ),
    Pass(
        name="set_cluster_scopes",
        run="tile_core.simt.cluster_scopes:set_cluster_scopes",
        needs=("launch",),
    ),
    Pass(  # who schedules by hand fetches by hand
        name="prefetch_tensor_maps",
        run="tile_core.simt.prefetch_tensor_maps:prefetch_tensor_maps",
        needs=("thread", "machine"),
        when=("has_tile_operators",),
        is_optional=True,
    ),
    Pass(
        name="elect_issuers",
        run="tile_core.simt.elect_issuer:elect_issuers",
        needs=("thread", "machine"),
        is_optional=True,
    ),
    Pass(
        name="lower_software_barriers",
        run="tile_core.simt.software_barriers:lower_software_barriers",
        needs=("lowering",),
    ),
    Pass(
        name="record_bounds_checks",
        run="tile_core.simt.remaining_bounds_checks:settled",
        kind="check",
    ),
)


def _of(phase: str, passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
    return tuple(replace(entry, phase=phase) for entry in passes)


GPU_PIPELINE = Pipeline(
    (
        *_of(TILE, _TILE),
        *_of(CHECK, _CHECK),
        *_of(PLAN, _PLAN),
        *_of(LAYOUT, _LAYOUT),
        *_of(SPLIT, _SPLIT),
        *_of(LAUNCH, _LAUNCH),
        *_of(THREAD, _THREAD),
    )
)
"""What machines of many threads have in common."""
