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

from typing import Any

from tile_core.pass_manager.manager import TILE
from tile_core.pass_manager.pipeline import Pass, Pipeline
from tile_core.records import replace

CHECK, PLAN, LAYOUT, SPLIT, LAUNCH, THREAD = "check", "plan", "layout", "split", "launch", "thread"

_MACHINE = ("machine",)
_ASYNC = ("is_asynchronous",)
_TARGET = ("target", "rules")


def _pass(module: str, name: str = "", *, function: str = "", **facts: Any) -> Pass:
    """Return a pass: of the module's own name and a function of the pass's, if not told."""
    name = name or module.rpartition(".")[2]
    return Pass(name=name, run=f"tile_core.{module}:{function or name}", **facts)


_TILE = (
    _pass("passes.lower_scaled_gemms"),
    _pass("ops.select_ranges"),
    _pass("passes.cooperative_grids", "lower_grid_barriers"),
    _pass("passes.split_vectors"),
    _pass("passes.lower_random"),
    _pass("passes.hoist_accumulator_init", is_optional=True),
)

_CHECK = (_pass("simt.resource_limits", "check_fragments", needs=_MACHINE, kind="check"),)

_PLAN = (
    _pass("simt.buffer_addresses", "check_views", kind="check"),
    _pass("passes.legalise_gemms", needs=("features",)),
    _pass("passes.materialise_partial_results"),
    _pass("passes.privatise_reductions", is_optional=True),
    _pass("passes.eliminate_dead_code"),
    _pass("passes.swizzle_threadblocks"),
    _pass("passes.mask_gemms", needs=_ASYNC, is_optional=True),
    _pass(
        "passes.specialise_warps",
        needs=("machine", "is_asynchronous"),
        when=("specialises",),
        is_optional=True,
    ),
    _pass(
        "passes.overlap_gemms",
        needs=("is_asynchronous", "registers", "shared_bytes"),
        when=("is_specialised",),
        is_optional=True,
    ),
    _pass("passes.plan_pipelines", needs=_MACHINE, options=(("folded", "folds_pipelines"),)),
    _pass("passes.convert_operand_layouts", needs=(*_TARGET, "machine")),
    _pass("passes.stage_epilogues", needs=_MACHINE, when=("stages_stores",), is_optional=True),
    _pass("passes.lower_bulk_loads", needs=_MACHINE, when=("has_engines",)),
    _pass("passes.lower_bulk_stores", needs=_MACHINE, when=("specialises",), is_optional=True),
    _pass("passes.lower_bulk_reductions", needs=_MACHINE, when=("specialises",), is_optional=True),
    _pass("passes.fence_async_reads", needs=_ASYNC),
    _pass("passes.fence_async_writes", needs=_ASYNC),
    _pass("passes.flatten_sequences"),
)
"""Fences for the async proxy come last: when all that reads and writes tiles is there."""

_LAYOUT = (
    _pass(
        "passes.infer_layouts",
        needs=_TARGET,
        options=(("simt", "machine"), ("exchanges", "is_split")),
        kind="analysis",
    ),
)

_SPLIT = (
    _pass("passes.separate_loops", needs=(*_TARGET, "machine")),
    _pass("passes.flatten_sequences", "flatten_separated", function="flatten_sequences"),
)

_LAUNCH = (
    _pass(
        "passes.divergent_races",
        "refuse_divergent_races",
        needs=("warp_size",),
        when=("orders_threads",),
    ),
    _pass(
        "passes.insert_barriers",
        needs=("places", "shared"),
        options=(("between_threads", "orders_threads"), ("warp_size", "warp_size")),
    ),
)

_THREAD = (
    _pass("simt.lower_statements", "lower_stmt", function="lower_body", needs=("lowering",)),
    _pass(
        "simt.uncounted_loads", needs=("thread_variables",), when=("counts_copies",), kind="check"
    ),
    _pass("simt.wait_counts", "insert_wait_counts", needs=("env",), when=("counts_copies",)),
    _pass(
        "simt.warp_uniform_branches",
        "name_uniform_wave_ids",
        needs=("fresh_name", "box_variables"),
        when=("counts_copies",),
        is_optional=True,
    ),
    _pass(
        "simt.index_set_splitting",
        "split_index_sets",
        needs=("env", "thread_variables"),
        is_optional=True,
    ),
    _pass("simt.simplify", "simplify_indices", needs=("env",), is_optional=True),
    _pass(
        "simt.division_strength_reduction",
        "reduce_division_strength",
        needs=_MACHINE,
        is_optional=True,
    ),
    _pass("simt.merge_branches", needs=("thread_variables", "warp_size"), is_optional=True),
    _pass(
        "simt.warp_uniform_branches",
        "make_branches_warp_uniform",
        needs=("thread", "warp_name", "machine"),
        is_optional=True,
    ),
    _pass("simt.warp_uniform_branches", "hoist_warp_shuffles", is_optional=True),
    _pass("simt.pin_accumulators", is_optional=True),
    _pass("simt.cluster_scopes", "set_cluster_scopes", needs=("launch",)),
    _pass(  # who schedules by hand fetches by hand
        "simt.prefetch_tensor_maps",
        needs=("thread", "machine"),
        when=("has_tile_operators",),
        is_optional=True,
    ),
    _pass("simt.elect_issuer", "elect_issuers", needs=("thread", "machine"), is_optional=True),
    _pass("simt.software_barriers", "lower_software_barriers", needs=("lowering",)),
    _pass("simt.remaining_bounds_checks", "record_bounds_checks", function="settled", kind="check"),
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
