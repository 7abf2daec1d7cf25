"""`tilelang.jit.exceptions`: what programs expect to be raised, as what is raised here."""

from __future__ import annotations

from tile_core.errors import FrontendError as EagerJITBuildError
from tile_core.errors import ScopeError as JITNoBuilderError

__all__ = ["EagerJITBuildError", "JITNoBuilderError"]
