"""Where kernels end by cost: what is computed again, and what is written for others."""

from __future__ import annotations

import numpy as np
import pytest

from support.array_programs import Program, keys_and_values, softmax, two_layers
from tile_api.arrays import deriving
from tile_api.arrays.equations.expressions import walk
from tile_api.arrays.function import Function
from tile_api.arrays.planning.fusion_cost import Way, told_of
from tile_api.arrays.planning.partition import BY_RULES, Cuts
from tile_api.arrays.planning.plan import Blocks
from tile_api.arrays.planning.traffic import machine_of

H100, CPU = "cuda:sm_90a", "cpu:x86-64-v3"


def likely(x, w):
    return softmax(x @ w)


def ways(func, target: str, *shapes: tuple[int, ...]) -> list[Way]:
    equations = Function(func).equations(*(np.zeros(s, "float16") for s in shapes))
    machine = machine_of(target)
    assert machine is not None
    return deriving._ways(equations, machine)


def test_short_products_are_computed_again_where_arithmetic_is_cheap() -> None:
    shapes = (4096, 64), (64, 4096)
    assert ways(likely, H100, *shapes)[0].cuts == Cuts(is_read_again=True)
    assert ways(likely, CPU, *shapes)[0].cuts == BY_RULES


def test_long_products_are_written_for_two_loops() -> None:
    (best, *_) = ways(likely, CPU, (512, 512), (512, 512))
    (product,) = best.cuts.apart
    assert product.value == ("sum", "x1", 512)


def test_narrow_layers_are_computed_again_for_each_block_of_columns() -> None:
    thin = (4096, 64), (64, 2048), (2048, 512)
    assert ways(two_layers, H100, *thin)[0].cuts.widest == np.inf
    thick = (4096, 4096), (4096, 2048), (2048, 512)
    assert ways(two_layers, H100, *thick)[0].cuts == BY_RULES


def test_small_ones_are_left_to_the_rules() -> None:
    assert ways(likely, CPU, (16, 16), (16, 16)) == []


def test_what_is_told() -> None:
    rules = Way(BY_RULES, "as the rules have them", 0.25)
    other = Way(Cuts(is_read_again=True), "in one loop", 1.5).asked(2)
    assert told_of([rules, other]) == (
        "kernels: as the rules have them: 250 us by traffic\n  not in one loop: 2 ms by the model",
    )
    assert told_of([]) == ()


LIKELY = Program(likely, {"x": (37, 48), "w": (48, 90)})
WIDE = Program(two_layers, {"x": (37, 16), "one": (16, 70), "other": (70, 300)})
BACKWARD = Program(keys_and_values, {"q": (1, 1, 40, 16), "k": (1, 1, 70, 16), "v": (1, 1, 70, 24),
                                     "given": (1, 1, 40, 24), "log_sum": (1, 1, 40),
                                     "delta": (1, 1, 40)})  # fmt: skip


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim"])
@pytest.mark.parametrize(
    ("program", "cuts", "kernels"),
    [(LIKELY, Cuts(is_read_again=True), 1), (WIDE, Cuts(widest=np.inf), 1),
     (BACKWARD, None, 2), (LIKELY, None, 2)],
)  # fmt: skip
def test_every_way_is_right(program, cuts, kernels, target, monkeypatch) -> None:
    def plans(equations, blocks, _, *rest):
        if cuts is not None:
            return real(equations, blocks, cuts, *rest)
        reductions = (n for o in equations.outputs for n in walk(o.element))
        inner = min((n for n in reductions if n.op == "reduce"), key=lambda n: n.serial)
        return real(equations, blocks, Cuts(frozenset([inner])), *rest)

    real = deriving.whole_plans
    monkeypatch.setattr(deriving, "whole_plans", plans)
    function = Function(program.function, target=target, blocks=Blocks(resident=0))
    arguments = program.arguments()
    assert len(function.explain(**arguments).kernels) == kernels
    found = function(**arguments)
    results = found if isinstance(found, tuple) else (found,)
    for got, wanted in zip(results, program.expected(arguments), strict=True):
        assert np.abs(got - wanted).max() <= 1e-5 * (1 + np.abs(wanted).max())
