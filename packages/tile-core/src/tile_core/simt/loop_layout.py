"""Which thread runs which iteration of a loop; see `tile_core.layout.loop`."""

from tile_core.layout.loop import LoopLayout, planned

__all__ = ["LoopLayout", "planned"]
