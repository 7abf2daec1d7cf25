"""Compiled kernels as bundles and the cache hold them: a manifest and machine code."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from tile_core.compilation.results import Lowered
from tile_core.errors import UnsupportedOnTarget

if TYPE_CHECKING:
    from tile_launch.bundle import Variant


def require_export(lowered: Lowered) -> Any:
    """Return what makes a variant of a kernel of this backend."""
    export = lowered.backend.export
    if export is None or lowered.target.executor:
        raise UnsupportedOnTarget(
            f"kernels for {lowered.target} cannot be saved: they are not machine code",
            hint="save kernels for machines: targets=['cpu', 'cuda:sm_80', 'hip:gfx942']",
        )
    return export


def variant_of(lowered: Lowered, artifact: Any) -> Variant:
    """Return a compiled kernel as bundles hold it."""
    from tile_launch.bundle import Variant
    from tile_launch.manifest_json import from_json

    export = require_export(lowered)
    told, code = export(artifact, lowered.kernel, _provenance(lowered))
    return Variant(from_json(told), code)


def _provenance(lowered: Lowered) -> dict[str, str]:
    """Return where the code of a kernel comes from."""
    found = {"kernel_sha256": hashlib.sha256(lowered.text("tile").encode()).hexdigest()}
    for package in ("tile-api", "tile-core", f"tile-{lowered.backend.name}"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # not installed by pip: nothing to tell
            continue
    return found
