"""Names in C++: the user's own, unless they mean something there."""

import pytest

from support.device_programs import flat, scalar
from tile_core.codegen.names import CppNames, identifier, symbol


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("A_shared", "A_shared"),
        ("_private", "_private"),
        ("__half", "_half"),
        ("_Upper", "x_Upper"),
        ("2nd", "x_2nd"),
        ("naïve", "na_ve"),
        ("a.b", "a_b"),
        ("αβ", "x"),
        ("TILE_N", "x_TILE_N"),
    ],
)
def test_identifiers_are_legal(wish, name):
    assert identifier(wish) == name


def test_names_are_unique_and_no_words_of_cpp():
    names = CppNames(frozenset({"scale"}))
    wishes = ["float", "float", "tile", "threadIdx", "scale", "x", "x", "x_1"]
    given = [names.of(scalar(wish)) for wish in wishes]
    assert given == ["float_1", "float_2", "tile_1", "threadIdx_1", "scale_1", "x", "x_1", "x_1_1"]


def test_a_thing_keeps_its_name():
    names = CppNames()
    buffer = flat("A", 4, "float32")
    assert names.of(buffer) == names.of(buffer) == "A"
    assert names.fresh("A") == "A_1"


def test_kernels_are_not_called_like_c_functions():
    taken: set[str] = set()
    assert [symbol(w, taken) for w in ("exp", "gemm", "gemm", "main", "half")] == [
        "exp_kernel", "gemm", "gemm_2", "main_kernel", "half_kernel",
    ]  # fmt: skip
