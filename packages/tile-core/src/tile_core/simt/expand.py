"""Element-wise tile operators as parallel loops; see `tile_core.ops.parallel_form`."""

from tile_core.ops.parallel_form import as_parallel, is_element_wise

__all__ = ["as_parallel", "is_element_wise"]
