"""Programs of users: kernels agree with NumPy in 64 bits, and are as few as they should be."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest

from support.array_programs import PROGRAMS, Program
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

EVERYWHERE = [p for p in PROGRAMS if p.name in (
    "softmax", "positions", "layer_norm", "rms_linear", "causal", "keys_and_values",
    "cross_entropy", "over_queries", "linear_of_bytes", "block_scaled", "two_in_a_byte",
    "running_sums", "recurrent", "selective", "linear_attention", "mamba_2", "gated_retention",
)]  # fmt: skip
GPUS = ("cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
# Loops without copies to shared memory, and row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def names(programs: list[Program]) -> list[str]:
    return [f"{p.name}-{'x'.join(map(str, next(iter(p.shapes.values()))))}" for p in programs]


def check(program: Program, function: Function, tolerance: float = 4e-6) -> None:
    arguments = program.arguments()
    found = function(**arguments)
    found = found if isinstance(found, tuple) else (found,)
    for got, wanted in zip(found, program.expected(arguments), strict=True):
        most = tolerance * (1.0 + float(np.abs(wanted).max()))
        np.testing.assert_allclose(got, wanted.astype("float64"), rtol=0, atol=most)
        assert got.shape == wanted.shape


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_on_the_cpu(program: Program) -> None:
    """With rows that stay, and with streamed ones where that makes other kernels."""
    seen = set()
    for resident in (16_384, 0):
        function = Function(program.function, target="cpu", blocks=Blocks(resident=resident))
        source = function.source(**program.arguments())
        assert source.count("@tile.jit") == program.kernels
        if source not in seen:
            check(program, function)
        seen.add(source)


@pytest.mark.in_turn(12)
@pytest.mark.parametrize(
    ("program", "target"), [*zip(EVERYWHERE, cycle(GPUS), strict=False)], ids=names(EVERYWHERE)
)
def test_on_gpus(program: Program, target: str) -> None:
    check(program, Function(program.function, target=target, blocks=Blocks(resident=0)))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=names(PROGRAMS))
def test_what_equations_mean(program: Program) -> None:
    arguments = program.arguments()
    found = Function(program.function).interpret(**arguments)
    found = found if isinstance(found, tuple) else (found,)
    for got, wanted in zip(found, program.expected(arguments), strict=True):
        np.testing.assert_allclose(
            got, wanted, rtol=2e-5, atol=2e-5 * (1.0 + float(np.abs(wanted).max()))
        )


def test_masks_bound_the_loop() -> None:
    (program,) = (p for p in PROGRAMS if p.name == "causal" and len(p.shapes["q"]) == 4
                  and p.shapes["q"] == p.shapes["k"])  # fmt: skip
    source = Function(program.function).source(**program.arguments())
    assert source.count("for ko in") == 2  # blocks without the mask, and those it cuts through
    assert source.count("T.infinity") == 1


def test_rules_stand_in_the_source() -> None:
    (program,) = (p for p in PROGRAMS if p.name == "moments")
    source = Function(program.function, blocks=Blocks(resident=0)).source(**program.arguments())
    assert "# mean: mean, independent" in source
    assert "# total: sum, shift of order 2" in source
