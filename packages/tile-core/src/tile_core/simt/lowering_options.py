"""What users may forbid the lowering of kernels for threads."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.ir.gpu_intrinsics import DISABLE_COPY_ENGINE
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Choices:
    """What lowering may do where it is of use; results are the same.

    Parameters
    ----------
    guards
        Accesses of tensors are checked against their box where nothing proves them inside.
    stages_stores
        Results of products may take the way through shared memory to tensors.
    folds_pipelines
        The last iterations of pipelines may be iterations of their steady state.
    specialises
        Copies of pipelined loops may get threads of their own.
    orders_threads
        Accesses of shared memory that an explicit program of threads makes get the barriers
        that they need.
    reuses_shared
        Shared tiles that are never alive together may have the same bytes.
    batches_exchanges
        What threads exchange passes shared memory in batches where not all of it fits.
    """

    guards: bool = True
    stages_stores: bool = True
    folds_pipelines: bool = True
    specialises: bool = True
    orders_threads: bool = True
    reuses_shared: bool = True
    batches_exchanges: bool = False


BY_DEFAULT = Choices()
"""Everything is allowed."""

_FORBIDDEN_BY = {
    "tl.disable_safe_memory_legalize": "guards",
    "tl.disable_store_staging": "stages_stores",
    "tl.disable_pipeline_folding": "folds_pipelines",
    "tl.disable_warp_specialized": "specialises",
    DISABLE_COPY_ENGINE: "specialises",
    "tl.disable_thread_storage_sync": "orders_threads",
    "tl.disable_shared_memory_reuse": "reuses_shared",
}


def choices_of(config: Callable[[str, object], object]) -> Choices:
    """Return what pass configurations leave allowed.

    `config` returns the value of a configuration by its name, or the second argument.
    """
    forbidden = {field for name, field in _FORBIDDEN_BY.items() if config(name, False)}
    return Choices(**dict.fromkeys(forbidden, False))
