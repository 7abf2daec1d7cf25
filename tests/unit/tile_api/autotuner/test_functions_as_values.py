"""Functions of one name are different configurations, arguments and kernels."""

from __future__ import annotations

from tile_api.autotuner.configs import listed_configs
from tile_api.autotuner.identity import identity_of
from tile_api.autotuner.plain import canonical

PAIR = [lambda x: x + 1, lambda x: x * 2, lambda x: x * 3]


def scaled(factor):
    def function(x):
        return x * factor

    return function


def applied(function):
    def kernel(n):
        return function(n)

    return kernel


def test_lambdas_of_one_line_are_several_configurations():
    found = listed_configs([{"f": f} for f in (*PAIR, PAIR[0])], {}, ["f"])
    assert [c.values["f"] for c in found] == PAIR


def test_functions_of_one_scope_differ_by_what_they_close_over():
    assert canonical(scaled(2)) == canonical(scaled(2))
    assert canonical(scaled(2)) != canonical(scaled(3))


def test_kernels_differ_by_the_lambdas_that_they_call():
    names = {identity_of(applied(f), {}, set()) for f in PAIR}
    assert len(names) == 3
    assert identity_of(applied(PAIR[0]), {}, set()) in names


def test_functions_of_modules_are_told_by_their_names():
    assert canonical(scaled) == f'"{__name__}.scaled"'
