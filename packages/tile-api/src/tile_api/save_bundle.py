"""Saving kernels: bundles that run where there is no compiler."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_api.disk_cache.entry_codec import Build, CachedBuild
from tile_api.variants import require_export, variant_of
from tile_core import driver
from tile_core.crash import guarded
from tile_core.errors import FrontendTypeError

if TYPE_CHECKING:
    from tile_launch.bundle import Variant


def save(built: Build, path: str | os.PathLike[str], targets: object) -> None:
    """Write a bundle with a variant of a kernel for each target: see `CompiledKernel.save`."""
    from tile_launch.bundle import write_bundle

    variants = [own_variant(built)] if targets is None else []
    for spec in [] if targets is None else _listed(targets):
        backend, target = built.host.resolve(spec)
        if backend is built.backend and target == built.target:
            variants.append(own_variant(built))
            continue
        lowered = driver.lower(built.kernel, target, built.host, built.options)
        require_export(lowered)
        flags = lowered.options.compile_flags
        with guarded(built.kernel, lowered.target, "compile", flags):
            artifact = lowered.backend.compile(lowered.module, lowered.target, lowered.options)
        variants.append(variant_of(lowered, artifact))
    write_bundle(path, variants)


def own_variant(built: Build) -> Variant:
    """Return a kernel for the machine it was compiled for; out of the cache it is as it was."""
    return built.variant if isinstance(built, CachedBuild) else variant_of(built, built.artifact)


def _listed(targets: object) -> list[object]:
    """Return the targets, of which there is at least one."""
    if isinstance(targets, Sequence) and not isinstance(targets, str) and len(targets):
        return list(targets)
    raise FrontendTypeError(
        f"targets are a list of at least one target, got {targets!r}",
        hint="write targets=['cpu', 'cuda:sm_80', 'hip:gfx942']",
    )
