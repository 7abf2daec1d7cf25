"""The toy backend: kernels become plain Python. Its target is spelt ``toy``."""

from __future__ import annotations

from tile_core.errors import TargetError
from tile_core.target import Target, parse_target_spec


def parse_target(spec: str) -> Target | None:
    """Claim ``toy`` and nothing else; there is only one toy machine."""
    target = parse_target_spec(spec)
    if target.kind != "toy" or target.executor:
        return None
    if target.arch:
        raise TargetError(f"the toy machine has no architecture {target.arch!r}", hint="use 'toy'")
    return target
