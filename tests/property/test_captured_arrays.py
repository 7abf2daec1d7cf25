"""Random compositions of NumPy's functions: captured and evaluated they are what NumPy gives."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from support.captured_arrays import assert_agrees
from support.random_array_programs import composed, programs


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_a_composition_is_what_numpy_gives(drawn):
    arrays, steps = drawn
    assert_agrees(composed(steps), *arrays, exact=True)
