"""Making failing kernels small, so that what is left of one shows what is wrong."""

from __future__ import annotations

from tile_api.reducing.search import ReductionStep, reduce_kernel, reductions

__all__ = ["ReductionStep", "reduce_kernel", "reductions"]
