"""What gradients of functions of arrays compute, as equations, and some of their kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from support.array_programs import PROGRAMS
from support.gradient_programs import CASES
from support.gradients import equations_of
from tile_api.arrays.equations.equations import Equations
from tile_api.arrays.equations.listing import definitions
from tile_api.arrays.function import derive
from tile_api.arrays.gradients.residuals import Passes, passes
from tile_api.arrays.planning.plan import Blocks

Golden = Callable[..., None]

OTHERS = (
    "running_sums", "running_log_sum", "linear_attention", "gated_retention", "mamba_2",
    "recurrent", "selective", "sums_of_products", "convolution", "causal_filter", "pools", "best",
    "router", "with_sink", "windowed", "documents", "norm_of_planes", "rms_linear",
)  # fmt: skip
PRINTED = ("layer_norm", "embedding", "causal", "linear_gelu", "linear_attention", "pools")


def made() -> dict[str, tuple[Callable[..., object], list[np.ndarray]]]:
    """Return functions with their arguments, by name."""
    found = {case.name: (case.function, case.arguments()) for case in CASES}
    programs = {p.name: p for p in reversed(PROGRAMS)}
    others = {n: (programs[n].function, [*programs[n].arguments().values()]) for n in OTHERS}
    return found | others


def both(function: Callable[..., object], arguments: list[np.ndarray]) -> Passes:
    equations = equations_of(function, *arguments)
    return passes(equations, [p.name for p in equations.parameters if p.dtype.is_float])


def text(equations: Equations) -> Iterator[str]:
    """Yield a line for each result, and for each part that is read twice."""
    for d in definitions(equations):
        yield f"  {d.name}[{', '.join(map(str, d.indices))}] = {d.value}"


def test_equations(golden: Golden) -> None:
    lines = []
    for name, program in made().items():
        found = both(*program)
        lines += [f"{name}, forward", *text(found.forward)]
        lines += [f"{name}, backward", *text(found.backward)]
    golden("\n".join(lines))


@pytest.mark.parametrize("name", PRINTED)
def test_kernels(name: str, golden: Golden) -> None:
    source = derive(both(*made()[name]).backward, Blocks()).source
    golden(source[source.index("@tile.jit") :])
