"""The list of programs by which functions of whole arrays are accepted."""

from __future__ import annotations

import numpy as np
import pytest

from support.array_acceptance import ACCEPTANCE, MORE, SPLIT
from support.array_programs import PROGRAMS, Program
from tile_api.arrays.function import Function
from tile_cpu.openmp_threads import set_num_threads

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def test_no_number_is_missing() -> None:
    assert [*ACCEPTANCE] == [*range(1, 45)]


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("number", ACCEPTANCE)
def test_kernels(number: int) -> None:
    row = ACCEPTANCE[number]
    for program in row.programs():
        source = Function(program.function, blocks=row.blocks).source(**program.arguments())
        assert source.count("@tile.jit") == program.kernels <= row.most, program.name


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("program", MORE, ids=[p.name for p in MORE])
def test_on_the_cpu(program: Program) -> None:
    arguments = program.arguments()
    blocks = SPLIT if program.kernels > 1 else None
    found = Function(program.function, target="cpu", blocks=blocks)(**arguments)
    (wanted,) = program.expected(arguments)
    assert np.abs(found - wanted).max() <= 4e-6 * (1 + np.abs(wanted).max())


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_the_number_of_threads_changes_no_bit(program: Program) -> None:
    arguments = program.arguments()
    function = Function(program.function, target="cpu")
    found = set()
    for threads in (1, 2, 3, 7):
        set_num_threads(threads)
        try:
            results = function(**arguments)
        finally:
            set_num_threads(None)
        several = results if isinstance(results, tuple) else (results,)
        found.add(b"".join(np.asarray(x).tobytes() for x in several))
    assert len(found) == 1
