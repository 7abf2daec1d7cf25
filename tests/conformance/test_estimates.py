"""Every kernel of the kit has a cost on every machine, told without running it.

Each kernel is estimated for the CPU, and for one generation of GPUs in turn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np
import pytest

from tile_core.arith.evaluate import solve
from tile_core.compilation.estimating import estimate
from tile_core.ir.expr import Var
from tile_core.plugins.host import PluginHost
from tile_core.testing.conformance.case import Case
from tile_core.testing.conformance.catalogue import all_cases

GPUS = ("cuda:sm_70", "cuda:sm_75", "cuda:sm_80", "cuda:sm_89", "cuda:sm_90a",
        "hip:gfx90a", "hip:gfx942", "hip:gfx950")  # fmt: skip
STRIDE = 5
"""Every how many kernels one goes to a GPU: neighbours differ in an element type."""


def sizes_of(case: Case) -> Mapping[str, int]:
    """The values of the kernel's symbols for the inputs of the case."""
    kernel, known = case.build(), {}
    pairs = []
    for param, given in zip(kernel.params, case.inputs(np.random.default_rng(0)), strict=True):
        if isinstance(param, Var):
            known |= {param: int(given)} if param.dtype.is_int else {}
        elif given is not None:
            pairs += zip(param.shape, given.shape, strict=True)
    solve(pairs, known)
    return {symbol.name: int(value) for symbol, value in known.items()}


def check(case: Case, target: str, host: PluginHost) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimate(case.build(), target, host, sizes=sizes_of(case))
    assert math.isfinite(found.milliseconds), case.name
    assert found.milliseconds > 0, case.name
    assert all(math.isfinite(p.milliseconds) for p in found.parts), case.name
    assert found.bound in str(found), case.name


def test_on_the_cpu(host: PluginHost) -> None:
    for case in all_cases():
        check(case, "cpu:znver4", host)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("number", range(len(GPUS)))
def test_on_gpus(number: int, host: PluginHost) -> None:
    for case in [*all_cases()][number :: len(GPUS) * STRIDE]:
        check(case, GPUS[number], host)
