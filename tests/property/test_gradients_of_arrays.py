"""Random compositions of NumPy's functions: their gradients are slopes of what they compute."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings

from support.gradients import Backward
from support.random_array_programs import composed, programs


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(programs(["float64"]))
def test_a_gradient_is_a_slope(drawn):
    arrays, steps = drawn
    random = np.random.default_rng(3)
    smooth = [x + random.uniform(0.1, 0.4, x.shape) for x in arrays]
    backward = Backward(composed(steps), *smooth)
    assume(backward.is_float and backward.is_smooth)
    backward.check()
