"""``@tile.autotune`` above ``@tile.jit``: what a user of it sees."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import (
    ArgumentCountError,
    MeasuringImpossible,
    NoConfigWorks,
    TuningError,
)

QUICK = {"warmup": 0, "rep": 0.1}
CONFIGS = [{"block": 16}, {"block": 32}]


def make_scale(configs=CONFIGS, target="cpu", calls=None, **options):
    @tile.autotune(configs=configs, **{**QUICK, **options})
    @tile.jit(out_idx=[-1], target=target)
    def scale(n, factor=2.0, block=64):
        if calls is not None:
            calls.append(block)

        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=16) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * factor

        return main

    return scale


NUMBERS = np.arange(64, dtype=np.float32)


def test_the_result_is_the_best_kernel(in_process):
    scale = make_scale()
    kernel = scale(64, factor=3.0)
    np.testing.assert_array_equal(kernel(NUMBERS), NUMBERS * 3)
    assert kernel.config in CONFIGS
    assert kernel.latency > 0
    assert kernel.ref_latency is None
    assert scale(64, factor=3.0) is kernel
    assert len(in_process) == 1
    assert (scale.__name__, scale.mode) == ("scale", "lazy")


def test_configurations_that_become_one_program_are_tried_once(in_process):
    tile.lower(make_scale().factory.get_tir(64), target="cpu").ir("lowered")

    @tile.autotune(configs=[{"threads": t} for t in (16, 32, 64)], **QUICK)
    @tile.jit(out_idx=[-1], target="cpu")
    def double(n, threads=16):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 16), threads=threads) as bx:
                for i in T.Parallel(16):
                    B[bx * 16 + i] = A[bx * 16 + i] * 2

        return main

    tuned = double.tune(64)
    asked = [what for what, _ in in_process[0].asked]
    assert asked.count("compile") == 1
    assert "expect" not in asked  # this process has the compiler loaded
    assert [c.score for c in tuned.candidates] == [tuned.latency] * 3
    assert len(tuned.table.records) == 3


def test_each_bucket_is_tuned_once(in_process):
    scale = make_scale(key={"n": tile.next_power_of_2})
    assert len({id(scale(n)) for n in (64, 64, 48)}) == 2
    assert len(in_process) == 1  # 48 finds the result of 64 in the table
    scale(128)
    assert len(in_process) == 2


def test_known_results_are_found_while_another_thread_tunes(in_process):
    begun, may_end = threading.Event(), threading.Event()

    def configs(n):
        if n == 128:
            begun.set()
            assert may_end.wait(60)
        return CONFIGS

    scale = make_scale(configs)
    kernel = scale(64)
    other = threading.Thread(target=scale, args=(128,))
    other.start()
    found = []
    try:
        assert begun.wait(60)
        asking = threading.Thread(target=lambda: found.append(scale(64)))
        asking.start()
        asking.join(10)
        assert found == [kernel]
    finally:
        may_end.set()
        other.join()
        asking.join()
    assert len(in_process) == 2


def test_later_processes_take_the_table(in_process):
    first = make_scale().tune(64)
    again = make_scale().tune(64)
    assert (first.source, again.source) == ("search", "table")
    assert again.config == first.config
    assert again.latency == pytest.approx(first.latency, abs=1e-6)
    assert len(in_process) == 1


def test_a_changed_function_is_another_one(in_process):
    make_scale().tune(64)
    assert make_scale(configs=[{"block": 16}, {"block": 8}]).tune(64).source == "table"
    assert make_scale(configs=[{"block": 8}]).tune(64).source == "search"  # none of it is known
    assert make_scale().tune(64, 4.0).source == "search"


def test_tuning_again(in_process, monkeypatch):
    make_scale().tune(64)
    monkeypatch.setenv("TILE_TUNE_AGAIN", "1")
    assert make_scale().tune(64).source == "search"


def test_nothing_is_kept_if_so_asked(in_process, monkeypatch, tuning):
    monkeypatch.setenv("TILELANG_AUTO_TUNING_DISABLE_CACHE", "1")
    assert [make_scale().tune(64).source for _ in range(2)] == ["search", "search"]
    assert not tuning.exists()


def test_explicit_values_skip_tuning(in_process):
    scale = make_scale()
    kernel = scale(64, block=8)
    np.testing.assert_array_equal(kernel(NUMBERS), NUMBERS * 2)
    assert (kernel.config, kernel.latency) == (None, None)
    assert scale(64, 2.0, 8) is kernel
    assert in_process == []
    with pytest.raises(TuningError, match="leaves nothing to tune"):
        scale.tune(64, block=8)


def test_part_of_the_values_may_be_given(in_process):
    pairs = [{"block": b, "factor": f} for b in (16, 32) for f in (2.0, 3.0)]

    @tile.autotune(configs=pairs, **QUICK)
    @tile.jit(out_idx=[-1], target="cpu")
    def scale(n, factor, block):
        return make_scale().factory.func(n, factor, block)

    tuned = scale.tune(64, factor=3.0)
    assert {c.config.values["factor"] for c in tuned.candidates} == {3.0}
    assert len(tuned.candidates) == 2


def test_the_model_runs_nothing(in_process):
    calls = []
    scale = make_scale(budget="model", calls=calls)
    tuned = scale.tune(64)
    assert tuned.source == "model"
    assert in_process == []
    estimates = [c.estimate for c in tuned.candidates]
    assert estimates == sorted(estimates)
    assert tuned.latency == estimates[0]
    np.testing.assert_array_equal(tuned.kernel(NUMBERS), NUMBERS * 2)


def test_the_environment_gives_the_budget_of_kernels_without_one(in_process, monkeypatch):
    monkeypatch.setenv("TILE_TUNE_BUDGET", "model")
    assert make_scale().tune(64).source == "model"
    assert make_scale(budget="full").tune(64).source == "search"


def test_other_machines_are_modelled_and_emulated_and_not_measured(in_process):
    tuned = make_scale(target="cuda:sm_80", budget="model").tune(64)
    assert tuned.kernel.target == "cuda:sm_80"
    assert make_scale(target="interpret").tune(64).source == "model"
    with pytest.raises(MeasuringImpossible, match="times of cuda:sm_80@sim say nothing"):
        make_scale(target="cuda:sm_80@sim", budget="10s").tune(64)


def test_functions_are_traced_without_tuning(in_process):
    scale = make_scale()
    assert scale.get_tir(64).name == "main"
    assert in_process == []
    chosen = scale.tune(64).func
    assert scale.get_tir(64).script() == chosen.script()


def test_pass_configs_of_a_configuration_reach_the_compiler(in_process):
    key = tile.PassConfigKey.TL_ENABLE_FAST_MATH
    configs = [{"block": 16, "pass_configs": {key: True}}]
    kernel = make_scale(configs)(64)
    assert kernel.config == configs[0]
    assert '"tl.enable_fast_math", true' in kernel.compile_key().options
    assert make_scale(configs)(64).config == configs[0]  # out of the table


def test_inputs_may_be_supplied(in_process):
    seen = []

    def supply(params):
        seen.append([(p.name, p.dtype, p.shape) for p in params])
        return [np.full(params[0].shape, 7, np.float32)]

    def reference(A):
        assert float(A[0]) == 7
        return A * 2

    make_scale(supply_prog=supply, ref_prog=reference, cache_input_tensors=True).tune(64)
    assert seen == [[("A", "float32", (64,))]]
    make_scale(supply_prog=supply, ref_prog=reference).tune(128)
    assert len(seen) == 3  # once for each candidate
    with tile.autotuner.set_autotune_inputs(np.full(32, 7, np.float32)):
        assert len(tile.autotuner.get_autotune_inputs()) == 1
        tuned = make_scale(ref_prog=reference).tune(32)
    assert tile.autotuner.get_autotune_inputs() is None
    assert tuned.ref_latency > 0


def test_too_many_inputs(in_process):
    with (
        tile.autotuner.set_autotune_inputs([NUMBERS, NUMBERS]),
        pytest.raises(TuningError, match="2 inputs were supplied for 1 parameters: A"),
    ):
        make_scale().tune(64)


def test_users_may_check_results_themselves(in_process):
    checked = []

    def check(got, expected):
        checked.append((tuple(got.shape), tuple(expected.shape)))
        assert float(got[1]) != 2.0, "I do not like it"

    with pytest.raises(NoConfigWorks, match="wrong results: I do not like it"):
        make_scale(ref_prog=lambda A: A * 2, manual_check_prog=check, supply_prog=_ones).tune(64)
    assert checked == [((64,), (64,))] * 2


def _ones(params):
    return [np.ones(p.shape, p.dtype) for p in params]


def test_kernels_that_write_into_arguments(in_process):
    def make(reference):
        @tile.autotune(configs=[{"block": 16}], ref_prog=reference, **QUICK)
        @tile.jit(target="cpu")
        def double(n, block=16):
            @T.prim_func
            def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
                with T.Kernel(T.ceildiv(n, block)) as bx:
                    for i in T.Parallel(block):
                        B[bx * block + i] = A[bx * block + i] * 2

            return main

        return double

    def in_place(A, B):
        B[:] = A * 2

    def wrong(A, B):
        B[:] = A * 3

    assert make(lambda A, B: A * 2).tune(32).source == "search"
    assert make(in_place).tune(48).source == "search"
    for reference in (wrong, lambda A, B: A * 3, lambda A, B: (A * 2, A)):
        with pytest.raises(NoConfigWorks, match="wrong results"):
            make(reference).tune(64)


def test_eager_style(in_process):
    @tile.autotune(configs=[{"block": 16}, {"block": 32}], **QUICK)
    @tile.jit(target="cpu")
    def double(A, block=8):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
        return B

    np.testing.assert_array_equal(double(NUMBERS), NUMBERS * 2)
    np.testing.assert_array_equal(double(NUMBERS + 1), NUMBERS * 2 + 2)
    assert len(in_process) == 1
    kernel = double.compile(NUMBERS)
    assert kernel.config["block"] in (16, 32)
    np.testing.assert_array_equal(double(NUMBERS, block=8), NUMBERS * 2)
    double(NUMBERS[:32].copy())
    assert len(in_process) == 2


@pytest.mark.parametrize("works", [32, None])
def test_the_first_configuration_of_a_function_in_eager_style_may_be_refused(in_process, works):
    @tile.autotune(configs=[{"block": 24}, {"block": 32}], **QUICK)
    @tile.jit(target="cpu")
    def double(A, block=8):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        if block != works:
            raise ValueError(f"no blocks of {block}")
        with T.Kernel(T.ceildiv(N, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
        return B

    if works:
        assert double.compile(NUMBERS).config == {"block": 32}
        return
    with pytest.raises(NoConfigWorks) as caught:
        double(NUMBERS)
    assert [note.text for note in caught.value.notes] == [
        "block=24: [ValueError] no blocks of 24", "block=32: [ValueError] no blocks of 32",
    ]  # fmt: skip


def test_sizes_of_one_bucket_share_a_result(in_process):
    @tile.autotune(configs=[{"block": 16}, {"block": 32}], **QUICK)
    @tile.jit(target="cpu")
    def double(A, block=8):
        n = T.dynamic("n")
        A: T.Tensor((n,), "float32")
        B = T.empty((n,), "float32")
        with T.Kernel(T.ceildiv(n, block)) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
        return B

    for size in (64, 63, 33, 64):
        np.testing.assert_array_equal(double(NUMBERS[:size].copy()), NUMBERS[:size] * 2)
    assert len(in_process) == 1
    double(NUMBERS[:32].copy())
    assert len(in_process) == 2


def test_failures_are_tried_again_later(in_process):
    calls = []
    with pytest.raises(NoConfigWorks):
        make_scale(ref_prog=lambda A: A, calls=calls).tune(64)
    assert make_scale(ref_prog=lambda A: A * 2).tune(64).source == "search"


def test_methods(in_process):
    class Model:
        @tile.autotune(configs=[{"block": 16}], budget="model")
        @tile.jit(out_idx=[-1], target="cpu")
        def scale(self, n, block=16):
            return make_scale().factory.func(n, 2.0, block)

    np.testing.assert_array_equal(Model().scale(64)(NUMBERS), NUMBERS * 2)


def test_plain_functions_are_decorated_too(in_process):
    tuned = tile.autotune(make_scale().func, configs=CONFIGS, budget="model")
    assert tuned.options.budget == "model"


def test_wrong_use():
    with pytest.raises(TuningError, match=r"tile\.autotune needs configs"):
        tile.autotune(lambda n: n)
    with pytest.raises(TuningError, match=r"tile\.autotune decorates functions, got int"):
        tile.autotune(3, configs=CONFIGS)
    with pytest.raises(TuningError, match=r"tile\.autotune has no option 'config'"):
        tile.autotune(config=CONFIGS)
    with pytest.raises(TuningError, match="warmup is a number that is not negative, got 'a'"):
        tile.autotune(configs=CONFIGS, warmup="a")
    with pytest.raises(TuningError, match="ref_prog is a function, got int"):
        tile.autotune(configs=CONFIGS, ref_prog=3)
    with pytest.raises(TuningError, match="'soon' is not a time budget"):
        make_scale(budget="soon").tune(64)
    with pytest.raises(ArgumentCountError, match="missing 'n', which no configuration sets"):
        make_scale()()
    with pytest.raises(ArgumentCountError, match="unexpected keyword argument 'm'"):
        make_scale()(m=3)


def test_tilelangs_class(in_process):
    func = make_scale().func
    tuner = tile.AutoTuner.from_kernel(lambda block=8: func(64, 2.0, block), CONFIGS)
    tuner.set_compile_args(out_idx=[-1], target="cpu", execution_backend="tvm_ffi")
    tuner.set_profile_args(ref_prog=lambda A: A * 2, skip_check=False, backend="event")
    found = tuner.run(warmup=0, rep=0.1)
    assert found.config in CONFIGS
    assert (found.latency > 0, found.ref_latency > 0) == (True, True)
    assert found.libcode == found.kernel.get_kernel_source()
    assert found.func.name == "main"
    np.testing.assert_array_equal(found.kernel(NUMBERS), NUMBERS * 2)
    with pytest.raises(TuningError, match=r"AutoTuner\.set_profile_args has no option 'atoll'"):
        tuner.set_profile_args(atoll=1)


def test_tables_are_written_for_people_too(in_process, tuning):
    make_scale(ref_prog=lambda A: A * 2).tune(64)
    (path,) = tuning.glob("tables/*.json")
    rows = json.loads(path.read_text())["records"]
    assert {json.dumps(row["config"]) for row in rows} == {'{"block": 16}', '{"block": 32}'}
    assert {(row["name"], row["target"], row["status"]) for row in rows} == {("scale", "cpu", "ok")}
    assert rows[0]["bucket"] == {"factor": 2.0, "n": 64}


@pytest.mark.parametrize("way", ["set_autotune_inputs", "supply_prog", "one tensor"])
def test_inputs_of_the_user_settle_symbolic_dimensions(in_process, way):
    m = T.dynamic("m")
    rows, seen = np.ones((5, 64), np.float32), []

    def supplied(params):
        seen.append([(p.name, p.dtype) for p in params])
        return rows if way == "one tensor" else [rows]

    options = {} if way == "set_autotune_inputs" else {"supply_prog": supplied}

    @tile.autotune(configs=CONFIGS, **QUICK, **options)
    @tile.jit(out_idx=[-1], target="cpu")
    def add(n, block=64):
        @T.prim_func
        def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
            with T.Kernel(m, T.ceildiv(n, block), threads=16) as (row, c):
                for i in T.Parallel(block):
                    B[row, c * block + i] = A[row, c * block + i] + 1

        return main

    if way == "set_autotune_inputs":
        with tile.autotuner.set_autotune_inputs(rows):
            kernel = add(64)
    else:
        kernel = add(64)
        assert seen[0] == [("A", "float32")]
    np.testing.assert_array_equal(kernel(np.zeros((3, 64), np.float32)), np.ones((3, 64)))


def test_inputs_of_the_user_settle_them_in_eager_style_too(in_process):
    @tile.autotune(configs=CONFIGS, **QUICK)
    @tile.jit(target="cpu")
    def add(A, block=64):
        m = T.dynamic("m")
        n = T.const("n")
        A: T.Tensor((m, n), "float32")
        B = T.empty((m, n), "float32")
        with T.Kernel(m, T.ceildiv(n, block), threads=16) as (row, c):
            for i in T.Parallel(block):
                B[row, c * block + i] = A[row, c * block + i] + 1
        return B

    with tile.autotuner.set_autotune_inputs(np.ones((5, 64), np.float32)):
        kernel = add.compile(n=64)
    np.testing.assert_array_equal(kernel(np.zeros((3, 64), np.float32)), np.ones((3, 64)))
