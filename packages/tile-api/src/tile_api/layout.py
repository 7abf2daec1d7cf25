# ruff: noqa: F403 - the module says with __all__ what belongs into the namespace
"""Layouts and fragments, and those that have a name; also part of `tile_api.language`.

>>> from tile_api import layout
>>> layout.Layout((2, 4), lambda i, j: j * 2 + i).address(1, 3)
7
"""

from tile_api.language import layouts as _layouts
from tile_api.language.layouts import *
from tile_core.layout import Swizzle as SwizzleMode

__all__ = ["SwizzleMode"]
__all__ += _layouts.__all__
