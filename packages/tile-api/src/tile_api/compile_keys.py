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

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             B[i] = A[i] * 2
    >>> key = tile.compile_key(twice, target="cpu")
    >>> key == tile.compile_key(twice, target="cpu"), key == tile.compile_key(twice, [-1], "cpu")
    (True, False)
    """
    settings = Settings.from_environment()
    with placed():
        asked = request(func, out_idx, None, target, pass_configs, compile_flags, settings)
        return cache_request(*asked, default_host()).key
