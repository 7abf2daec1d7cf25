"""How long a kernel will take, told by a model of the machine before anything is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_api.compile_request import request
from tile_api.frontend.source import placed
from tile_api.settings import Settings
from tile_core.compilation import estimating
from tile_core.cost.estimate import Estimate, Part
from tile_core.crash import shallow
from tile_core.plugins.host import PluginHost, default_host

__all__ = ["Estimate", "Part", "estimate"]


def estimate(
    func: Any,
    target: object = None,
    *,
    machine: str = "",
    pass_configs: Mapping[Any, object] | None = None,
    host: PluginHost | None = None,
    **sizes: int,
) -> Estimate:
    """Return the time that a model of the machine expects of a kernel, and what it is made of.

    Nothing is compiled and nothing runs; the machine need not be here.

    Parameters
    ----------
    func
        A ``@T.prim_func``, a compiled kernel, or a `tile_core` kernel.
    target
        Any spelling of a target; None means that of `func` if it is compiled, else
        ``TILE_TARGET``, else ``"auto"``.
    machine
        Which machine of the target's architecture, such as ``"h200"``; the hint of the error
        for another name lists them.
    pass_configs
        As for `tile_api.compile`.
    sizes
        Values of symbols in the shapes of tensors, by name: ``m=1024``.

    Returns
    -------
    Estimate
        ``.milliseconds``, ``.parts``; printed, it is a table of what decides.

    Raises
    ------
    TileError
        If the kernel cannot be lowered for the target, a size is missing, or no such machine
        is known.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             B[i] = A[i] * 2
    >>> tile.estimate(twice, target="cuda:sm_90a", machine="h200").milliseconds < 1
    True
    """
    spec = getattr(func, "target", None) if target is None else target
    func = getattr(func, "prim_func", None) or func
    with placed():
        settings = Settings.from_environment()
        kernel, spec, options = request(func, None, None, spec, pass_configs, None, settings)
        with shallow(kernel):
            return estimating.estimate(
                kernel, spec, host or default_host(), options, sizes=sizes, machine=machine
            )
