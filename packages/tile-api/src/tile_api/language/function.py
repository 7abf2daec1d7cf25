"""Functions of the language: kernels and macros."""

from __future__ import annotations

from tile_api.frontend.function import PrimFunc, prim_func
from tile_api.frontend.macro import Macro, Ref, inline, macro, meta_class

__all__ = ["Macro", "PrimFunc", "Ref", "inline", "macro", "meta_class", "prim_func"]
