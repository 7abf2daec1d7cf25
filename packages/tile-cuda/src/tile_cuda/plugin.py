"""The CUDA backend. Its targets are spelt ``cuda[:sm_XX]``; ``@sim`` runs them anywhere."""

from __future__ import annotations

from tile_core.plugins.backend import Backend
from tile_core.plugins.gpu_backend import GpuBackend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.target import Target

BACKEND = GpuBackend("cuda", "tile_cuda", "sm_80")


@hookimpl
def tile_backends() -> list[Backend]:
    """Provide the CUDA backend."""
    return [BACKEND.record()]


@hookimpl
def tile_default_target() -> Target | None:
    """Answer ``"auto"`` with the first GPU of this machine, if there is one."""
    return BACKEND.default_target()
