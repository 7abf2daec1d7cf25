"""Kernels printed as programs of the tier below."""

from __future__ import annotations

from typing import Any

from tile_core.errors import FrontendValueError


def source_of(built: Any, tier: str) -> str:
    """Return a compiled kernel as a program of a tier.

    Raises
    ------
    FrontendValueError
        If there is no such tier.
    """
    if tier == "developer":
        from tile_api.tiers.developer import developer_source

        return developer_source(built)
    if tier != "expert":
        raise FrontendValueError(
            f"kernels are not printed as programs of the tier {tier!r}",
            hint='use tier="developer" or tier="expert"',
        )
    from tile_api.tiers.expert import expert_source

    return expert_source(built)
