"""Saving kernels: bundles that run where there is no compiler."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from tile_api.disk_cache.entry_codec import RevivedBuild
from tile_core import driver
from tile_core.crash import guarded
from tile_core.driver import Built, Lowered
from tile_core.errors import FrontendTypeError, UnsupportedOnTarget
from tile_core.plugins.host import PluginHost

if TYPE_CHECKING:
    from tile_launch.bundle import Variant


def save(
    built: Built | RevivedBuild,
    path: str | os.PathLike[str],
    targets: object,
    host: PluginHost,
) -> None:
    """Write a bundle with a variant of a kernel for each target.

    Parameters
    ----------
    built
        The kernel, with the options that it was compiled with.
    targets
        Spellings of machines that need not be here; None means the one it was compiled for.

    Raises
    ------
    UnsupportedOnTarget
        If kernels for a target cannot be saved: those of emulators and interpreters.
    ToolchainError
        If a compiler is missing or fails.
    """
    from tile_launch.bundle import write_bundle

    variants = [own_variant(built)] if targets is None else []
    for spec in [] if targets is None else _listed(targets):
        backend, target = host.resolve(spec)
        if backend is built.backend and target == built.target:
            variants.append(own_variant(built))
            continue
        lowered = driver.lower(built.kernel, target, host, built.options)
        _require_export(lowered)
        flags = lowered.options.compile_flags
        with guarded(built.kernel, lowered.target, "compile", flags):
            artifact = lowered.backend.compile(lowered.module, lowered.target, lowered.options)
        variants.append(variant_of(lowered, artifact))
    write_bundle(path, variants)


def own_variant(built: Built | RevivedBuild) -> Variant:
    """Return a kernel for the machine it was compiled for; out of the cache it is as it was."""
    return built.variant if isinstance(built, RevivedBuild) else variant_of(built, built.artifact)


def _listed(targets: object) -> list[object]:
    """Return the targets, of which there is at least one."""
    if isinstance(targets, Sequence) and not isinstance(targets, str) and len(targets):
        return list(targets)
    raise FrontendTypeError(
        f"targets are a list of at least one target, got {targets!r}",
        hint="write targets=['cpu', 'cuda:sm_80', 'hip:gfx942']",
    )


def _require_export(lowered: Lowered | RevivedBuild) -> Any:
    export = lowered.backend.export
    if export is None or lowered.target.executor:
        raise UnsupportedOnTarget(
            f"kernels for {lowered.target} cannot be saved: they are not machine code",
            hint="save kernels for machines: targets=['cpu', 'cuda:sm_80', 'hip:gfx942']",
        )
    return export


def variant_of(lowered: Lowered | RevivedBuild, artifact: Any) -> Variant:
    """Return a compiled kernel as bundles hold it.

    Raises
    ------
    UnsupportedOnTarget
        If kernels for the target cannot be saved.
    ToolchainError
        If a tool is missing.
    """
    from tile_launch.bundle import Variant
    from tile_launch.manifest_json import from_json

    export = _require_export(lowered)
    told, code = export(artifact, lowered.kernel, _provenance(lowered))
    return Variant(from_json(told), code)


def _provenance(lowered: Lowered | RevivedBuild) -> dict[str, str]:
    """Return where the code of a kernel comes from."""
    found = {"kernel_sha256": hashlib.sha256(lowered.text("tile").encode()).hexdigest()}
    for package in ("tile-api", "tile-core", f"tile-{lowered.backend.name}"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # not installed by pip: nothing to tell
            continue
    return found
