"""Keys of compilations, told without compiling anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tile_api.compile_request import request
from tile_api.disk_cache.lookup import cache_request
from tile_api.frontend.source import placed
from tile_api.keys import CompileKey
from tile_api.settings import Settings
from tile_core.plugins.host import default_host


def compile_key(
    func: Any,
    out_idx: int | Sequence[int] | None = None,
    target: object = None,
    pass_configs: Mapping[Any, object] | None = None,
    compile_flags: str | Sequence[str] | None = None,
) -> CompileKey:
    """Return what the compiled form of a function is a function of; nothing is compiled.

    Parameters
    ----------
    func, out_idx, target, pass_configs, compile_flags
        As for `tile_api.compile`.

    Raises
    ------
    TileError
        Whatever is wrong with the function, the options or the target.
    """
    settings = Settings.from_environment()
    with placed():
        asked = request(func, out_idx, None, target, pass_configs, compile_flags, settings)
        return cache_request(*asked, default_host()).key
