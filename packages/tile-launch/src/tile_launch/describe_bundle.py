"""What is inside a bundle, in words."""

from __future__ import annotations

import os
import sys

from tile_launch.bundle import Variant, read_bundle
from tile_launch.expressions import words_of
from tile_launch.loading import reason_against
from tile_launch.manifest import Launch, Manifest, Scalar


def inspect(path: str | os.PathLike[str]) -> None:
    """Print what a bundle holds.

    Raises
    ------
    InvalidBundle, NewerBundle
        If the file cannot be understood.
    """
    sys.stdout.write(describe(path))


def describe(path: str | os.PathLike[str]) -> str:
    """Return what a bundle holds as text: the kernel, and each variant with its launches."""
    bundle = read_bundle(path)
    lines = [signature(bundle.variants[0].manifest)]
    for variant in bundle.variants:
        lines += ["", *_variant(variant)]
    return "\n".join(lines) + "\n"


def signature(manifest: Manifest) -> str:
    """Return the parameters of a kernel as people write them.

    Examples
    --------
    ``gemm(A: float16[m, 512], B: float16[512, 256]) -> C: float32[m, 256]``
    """
    taken: list[str] = []
    returned: list[str] = []
    for position, param in enumerate(manifest.parameters):
        text = f"{param.name}: {param.dtype}"
        if not isinstance(param, Scalar):
            text += f"[{', '.join(map(words_of, param.shape))}]"
        (returned if position in manifest.outputs else taken).append(text)
    arrow = f" -> {', '.join(returned)}" if returned else ""
    return f"{manifest.kernel}({', '.join(taken)}){arrow}"


def _variant(variant: Variant) -> list[str]:
    manifest = variant.manifest
    reason = reason_against(variant)
    here = "runs here" if reason is None else f"does not run here: {reason}"
    lines = [f"{variant.target}: {len(variant.code)} bytes of machine code; {here}"]
    if manifest.machine.family != "cpu":
        lines += [f"  launch {_launch(launch)}" for launch in manifest.launches]
    for workspace in manifest.workspaces:
        shape = ", ".join(map(words_of, workspace.shape))
        lines.append(f"  workspace {workspace.name}: {workspace.dtype}[{shape}]")
    if manifest.machine.features:
        lines.append(f"  needs {', '.join(manifest.machine.features)}")
    lines += [f"  {key}: {value}" for key, value in sorted(manifest.provenance.items())]
    return lines


def _launch(launch: Launch) -> str:
    grid = " x ".join(map(words_of, launch.grid))
    block = " x ".join(map(str, launch.block))
    parts = [f"{launch.symbol}: grid {grid}, {block} threads"]
    if launch.cluster:
        parts.append(f"clusters of {' x '.join(map(str, launch.cluster))} blocks")
    if launch.shared_bytes:
        parts.append(f"{launch.shared_bytes} bytes of shared memory")
    if launch.maps:
        parts.append(f"{len(launch.maps)} tensor maps")
    return ", ".join(parts)
