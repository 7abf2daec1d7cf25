"""The page on conformance knows every operator, every example and every target that is tested."""

from __future__ import annotations

from collections import Counter

from conformance.conftest import targets
from examples.test_examples_on_gpus import TARGETS
from support.conformance_table import (
    CONTRACT,
    EXAMPLES,
    PAGE,
    PASSED,
    REFUSED,
    TYPES,
    case_of,
    example_of,
    is_derived,
    operator_of,
    ordered,
    render,
    tables_of,
    type_of,
)
from support.example_files import NAMES
from tile_core.testing.conformance.catalogue import all_cases


def total(cell: str) -> int:
    """Return how many cases a cell counts: ``7 of 9`` are nine."""
    return int(cell.split(" of ")[-1])


def test_operators_and_types() -> None:
    found = tables_of(PAGE.read_text())
    wanted = {target.removesuffix("@sim") for target in targets()} - {"toy"}
    for heading, key in ((CONTRACT, operator_of), (TYPES, type_of)):
        numbers = Counter(key(case.name) for case in all_cases() if not is_derived(case.name))
        assert set(found[heading]) == set(numbers)
        for name, cells in found[heading].items():
            assert set(cells) == wanted
            assert {total(cell) for cell in cells.values()} == {numbers[name]}, name


def test_examples() -> None:
    found = tables_of(PAGE.read_text())[EXAMPLES]
    assert set(found) == set(NAMES)
    for cells in found.values():
        assert set(cells) == {"cpu", "interpret", *TARGETS}
        assert set(cells.values()) <= {"yes", "refused"}


def test_what_is_written_is_what_is_read() -> None:
    cases = {
        ("copy/shared/float32/3x4", "cpu"): PASSED,
        ("copy/shared/float16/3x4", "cpu"): REFUSED,
        ("copy/shared/float32/3x4", "hip:gfx942"): PASSED,
        ("copy/shared/float16/3x4", "hip:gfx942"): PASSED,
    }
    examples = {("gemm/gemm", "cpu"): PASSED, ("gemm/gemm", "hip:gfx942"): REFUSED}
    found = tables_of(render(cases, examples))
    assert found[CONTRACT] == {"copy/shared": {"cpu": "1 of 2", "hip:gfx942": "2"}}
    assert found[TYPES]["float16"] == {"cpu": "0 of 1", "hip:gfx942": "1"}
    assert found[EXAMPLES] == {"gemm/gemm": {"cpu": "yes", "hip:gfx942": "refused"}}


def test_columns_stand_by_generation() -> None:
    shuffled = ["hip:gfx942", "cuda:sm_100a", "cuda:sm_90a", "cpu", "cuda:sm_120a", "interpret"]
    stand = ["interpret", "cpu", "cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120a", "hip:gfx942"]
    assert ordered(shuffled) == stand
    for cells in tables_of(PAGE.read_text())[CONTRACT].values():
        assert [*cells] == ordered(cells)


def test_what_tests_are_about() -> None:
    assert case_of(
        "tests/conformance/test_conformance.py::test_contract[hip:gfx90a@sim-gemm/NT/int8-int32/3x4]"
    ) == ("gemm/NT/int8-int32/3x4", "hip:gfx90a")
    assert case_of("x::test_contract[cpu-copy/dynamic/float32/3x4]")[1] == "cpu"
    assert case_of("x::test_every_marker_means_some_case") is None
    emulated = "x::test_in_the_emulator[norms/softmax-hip:gfx942]"
    assert example_of(emulated) == ("norms/softmax", "hip:gfx942")
    assert example_of("x::test_on_the_cpu[gemm/split_k]") == ("gemm/split_k", "cpu")
    assert example_of("x::test_in_the_interpreter[gemm/split_k]")[1] == "interpret"
    assert example_of("x::test_in_the_interpreter[hopper/attention]") is None
    assert example_of("x::test_on_every_generation_in_any_order[gemm/gemm-sm_70]") is None
