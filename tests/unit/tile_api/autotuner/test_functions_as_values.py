"""Functions of one name are different configurations, arguments and kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tile_api.autotuner.configs import listed_configs
from tile_api.autotuner.identity import canonical, identity_of

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


def power(x, exponent=1):
    return x**exponent


@dataclass(frozen=True)
class Line:
    slope: int

    def at(self, x):
        return self.slope * x


def test_functions_with_some_arguments_given_are_told_by_these():
    assert canonical(partial(power, exponent=2)) == canonical(partial(power, exponent=2))
    several = [partial(power, exponent=2), partial(power, exponent=3), partial(power, 2), power]
    assert len({canonical(f) for f in several}) == 4
    assert "0x" not in canonical(several)


def test_methods_are_told_by_their_objects():
    assert canonical(Line(2).at) == canonical(Line(2).at)
    assert canonical(Line(2).at) != canonical(Line(3).at)
