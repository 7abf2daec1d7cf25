"""The `T` namespace: everything a kernel is written with."""

from __future__ import annotations

from tile_api.language.allocate import *  # noqa: F403
from tile_api.language.function import *  # noqa: F403
from tile_api.language.launch import *  # noqa: F403
from tile_api.language.loops import *  # noqa: F403
from tile_api.language.persistent import *  # noqa: F403
from tile_api.language.symbols import *  # noqa: F403
from tile_api.language.tensor import *  # noqa: F403
