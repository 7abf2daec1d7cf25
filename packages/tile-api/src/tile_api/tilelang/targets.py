"""Targets that TileLang programs name, and what they mean without the machine they mean."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tile_core.environment import environment
from tile_core.target import Target, parse_target_spec

USUAL: Mapping[str, str] = MappingProxyType({"cuda": "sm_90a", "hip": "gfx942"})
"""The GPU of each kind that programs mean who name none."""


def forced_target() -> Target | None:
    """Return the target that `install` set for the whole process, or None."""
    text = environment().get("TILE_FORCE_TARGET", "")
    return parse_target_spec(text) if text else None


def stand_in() -> Target | None:
    """Return the target that kernels run on in place of a GPU, or None if there is no such.

    Kernels then work on tensors in host memory: on the CPU, in the interpreter, in an emulator.
    """
    target = forced_target()
    return target if target is not None and runs_on_host(target) else None


def runs_on_host(target: Target) -> bool:
    """Tell whether kernels for `target` work on tensors in host memory."""
    return target.executor != "" or target.kind not in USUAL


def source_target(spec: object) -> object:
    """Return for which machine to write source where a program asks for `spec`.

    A GPU without an architecture is the one that is emulated, if one is; else the one at hand;
    else the `USUAL` one.
    """
    if spec is None:
        return None
    target = parse_target_spec(spec)
    if target.kind not in USUAL or target.arch:
        return target
    forced = forced_target()
    if forced is not None and forced.kind == target.kind and forced.arch:
        return Target(target.kind, forced.arch)
    from tile_core.plugins.host import default_host

    if default_host().default_target().kind == target.kind:
        return target
    return Target(target.kind, USUAL[target.kind])
