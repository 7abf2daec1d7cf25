"""Functions of random arrays on pieces: what the rules say is what the whole gives."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.random_array_programs import composed, programs
from support.sharded import check_rules
from tile_api.arrays.function import Function


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(programs(["int32", "int64", "float64"]), st.sampled_from([2, 3, 4]))
def test_pieces_give_what_the_whole_gives(drawn, machines):
    arrays, steps = drawn
    check_rules(Function(composed(steps)), arrays, machines)
