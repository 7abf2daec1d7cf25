"""Every case of the contract."""

from __future__ import annotations

from collections import Counter

from tile_core.errors import InternalError
from tile_core.plugins.host import installed_plugins
from tile_core.testing.conformance import (
    conditional_loads,
    control,
    copies,
    elementwise,
    gemm_tails,
    gemms,
    operators,
    reducers,
    reductions,
    scaled_gemms,
    sparse_gemms,
)
from tile_core.testing.conformance.case import Case

FAMILIES = (
    copies,
    gemms,
    sparse_gemms,
    scaled_gemms,
    gemm_tails,
    elementwise,
    conditional_loads,
    reductions,
    reducers,
    control,
)


def all_cases() -> list[Case]:
    """Return every case, in a stable order, with unique names."""
    found = [case for family in FAMILIES for case in family.cases()]
    found += operators.cases(installed_plugins().operators())
    twice = [name for name, count in Counter(c.name for c in found).items() if count > 1]
    if twice:
        raise InternalError(f"conformance cases of one name: {twice}")
    return found
