"""Configurations in every form, pruning, and the arguments of calls."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import tile_api as tile
from tile_api.autotuner.arguments import agreeing, bucket_of, described
from tile_api.autotuner.configs import Config, listed_configs, pruned
from tile_core.errors import TuningError

PARAMETERS = ("M", "N", "block_M", "num_stages")


def values(configs):
    return [dict(c.values) for c in configs]


def test_a_list_keeps_its_order_and_each_once():
    given = [{"block_M": 64}, {"block_M": 32}, {"block_M": 64}]
    assert values(listed_configs(given, {}, PARAMETERS)) == [{"block_M": 64}, {"block_M": 32}]


def test_pass_configs_are_for_the_compiler():
    key = tile.PassConfigKey.TL_ENABLE_FAST_MATH
    (config,) = listed_configs([{"block_M": 64, "pass_configs": {key: True}}], {}, PARAMETERS)
    assert config.values == {"block_M": 64}
    assert config.pass_configs == {key: True}
    assert config.key == '{"block_M":64,"pass_configs":{"tl.enable_fast_math":true}}'
    assert config.key != Config({"block_M": 64}).key


def test_a_configuration_is_shown_as_it_was_written():
    assert str(Config({"block_M": 64, "num_stages": 2})) == "block_M=64, num_stages=2"
    assert str(Config({})) == "(as it is)"


def test_tritons_objects():
    item = SimpleNamespace(kwargs={"block_M": 16}, num_warps=4, num_stages=3)
    assert values(listed_configs([item], {}, PARAMETERS)) == [{"block_M": 16, "num_stages": 3}]


@pytest.mark.parametrize(
    "function",
    [
        lambda M, N: [{"block_M": M // N}],
        lambda N, M: [{"block_M": M // N}],
        lambda M: [{"block_M": M // 4}],
        lambda **arguments: [{"block_M": arguments["M"] // 4}],
        lambda m, n: [{"block_M": m // n}],
        lambda arguments: [{"block_M": arguments["M"] // 4}],
        lambda *args: [{"block_M": args[0] // args[1]}],
    ],
)
def test_functions_of_the_arguments(function):
    assert values(listed_configs(function, {"M": 64, "N": 4}, PARAMETERS)) == [{"block_M": 16}]


@pytest.mark.parametrize("positional", [0, 1, 2])
def test_functions_of_any_arguments_get_them_as_the_call_gives_them(positional):
    seen = []

    def modern(*args, **kwargs):
        return historical(args, kwargs)

    def historical(args, kwargs):
        seen.append((args, kwargs))
        return [{"block_M": 16}]

    for function in (modern, historical):
        listed_configs(function, {"M": 64, "N": 4}, PARAMETERS, positional)
    by_name = dict([("M", 64), ("N", 4)][positional:])
    assert seen == [((64, 4)[:positional], by_name)] * 2


def test_functions_without_arguments():
    assert values(listed_configs(lambda: [{"block_M": 1}], {"M": 2}, PARAMETERS)) == [
        {"block_M": 1}
    ]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([], "there is no configuration"),
        ({"block_M": 64}, "configs are a list of dictionaries, got dict"),
        ("abc", "configs are a list of dictionaries, got str"),
        ([64], "a configuration is a dictionary, got int: 64"),
        ([{"block_Q": 1}], "a configuration sets 'block_Q', which is no parameter"),
        ([{"pass_configs": 3}], "pass_configs of a configuration are a dictionary"),
        (lambda a, b: [], "the function of configurations wants 'a'"),
        (lambda M, b: [], "the function of configurations wants 'b'"),
    ],
)
def test_what_is_none(configs, message):
    with pytest.raises(TuningError, match=message):
        listed_configs(configs, {"M": 1}, PARAMETERS)


SIXTEENS = listed_configs([{"block_M": m} for m in (16, 32, 64, 128)], {}, PARAMETERS)


def prune(prune=None, by=None):
    return [c.values["block_M"] for c in pruned(SIXTEENS, prune, by, {"M": 64}, PARAMETERS)]


def test_pruning():
    assert prune() == [16, 32, 64, 128]
    assert prune(lambda configs, arguments: [c for c in configs if c["block_M"] <= arguments["M"]])
    assert prune(lambda config, arguments: config["block_M"] <= arguments["M"]) == [16, 32, 64]
    early = {"early_config_prune": lambda configs, arguments: configs[1:]}
    assert prune(by=early) == [32, 64, 128]
    model = {"perf_model": lambda M, block_M: abs(M - block_M)}
    assert prune(by={**early, **model, "top_k": 2}) == [32, 64]
    assert prune(by={**model, "top_k": 0.25}) == [64]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prune": 3}, "pruning takes a function, got int"),
        ({"prune": lambda configs, arguments: []}, "pruning left no configuration"),
        ({"by": {"perf": None}}, "prune_configs_by is not understood"),
        ({"by": {"perf_model": lambda **k: 1, "top_k": 0}}, "top_k is a number or a share"),
    ],
)
def test_pruning_that_makes_no_sense(arguments, message):
    with pytest.raises(TuningError, match=message):
        prune(**arguments)


def test_configurations_agree_with_what_is_given():
    pairs = listed_configs(
        [{"block_M": m, "num_stages": s} for m in (16, 32) for s in (1, 2)], {}, PARAMETERS
    )
    assert values(agreeing(pairs, {"M": 7, "block_M": 32})) == [
        {"block_M": 32, "num_stages": 1},
        {"block_M": 32, "num_stages": 2},
    ]
    with pytest.raises(TuningError, match="no configuration has block_M=64"):
        agreeing(pairs, {"block_M": 64})


def test_buckets():
    given, defaults = {"M": 100, "dtype": "float16"}, {"N": 7}
    assert bucket_of(given, defaults, None, ()) == {"N": 7, "M": 100, "dtype": "float16"}
    assert bucket_of(given, defaults, None, ("M",)) == {"N": 7, "dtype": "float16"}
    assert bucket_of(given, defaults, ["M"], ()) == {"M": 100}
    assert bucket_of(given, defaults, "M", ()) == {"M": 100}
    assert bucket_of(given, defaults, {"M": tile.next_power_of_2}, ()) == {"M": 128}
    assert bucket_of(given, defaults, lambda a: a["M"] // 10, ()) == {"key": 10}
    with pytest.raises(TuningError, match="key names 'Q', which is no argument"):
        bucket_of(given, defaults, ["Q"], ())
    with pytest.raises(TuningError, match="key is a list of names, got 3"):
        bucket_of(given, defaults, 3, ())


def test_tensors_in_buckets():
    import numpy as np

    assert described(np.zeros((2, 3), np.int8)) == "int8[2,3]"
