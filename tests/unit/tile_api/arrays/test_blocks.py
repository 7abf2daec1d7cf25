"""Sizes of blocks: what fits, what is expected to be fast, what gives way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.array_programs import attention, causal, rms_norm
from tile_api.arrays import deriving as module
from tile_api.arrays import pricing
from tile_api.arrays.deriving import derive, whole_plans
from tile_api.arrays.function import Function
from tile_api.arrays.planning.blocks import HOPELESS, MOST_RANKED, candidates, chosen
from tile_api.arrays.planning.plan import Blocks, Plan, resized
from tile_api.arrays.planning.row_reduction_blocks import blocks_of_row_reduction
from tile_api.arrays.planning.traffic import Machine, machine_of, traffic_of
from tile_core.dtypes import DType
from tile_core.errors import OutOfScratch

A100 = "cuda:sm_80"
FLOAT = DType("float32")


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, "float32")


def product(x, y):
    return x @ y


def row_sums(x):
    return x.sum(axis=-1)


def planned(func, *shapes: tuple[int, ...]) -> Plan:
    (plan,) = whole_plans(Function(func).equations(*(zeros(*s) for s in shapes)), Blocks())
    return plan


def machine(target: str = A100) -> Machine:
    found = machine_of(target)
    assert found is not None
    return found


def test_a_machine_is_told_by_its_target() -> None:
    assert machine("cuda:sm_80@sim") == machine()
    assert machine().peaks.units == 108
    assert machine("cpu").rows == 1
    assert machine_of("interpret") is None


def test_what_a_product_moves() -> None:
    plan = planned(product, (256, 512), (512, 1024))
    found = traffic_of(plan, {"x": FLOAT, "y": FLOAT}, machine())
    tensors = 4 * (256 * 512 + 512 * 1024 + 256 * 1024)
    assert (found.blocks, found.steps, found.memory) == (4 * 16, 8, tensors)
    # Each of 16 columns of blocks reads all of x, each of 4 rows of blocks all of y.
    assert found.cache == 4 * (16 * 256 * 512 + 4 * 512 * 1024 + 256 * 1024)
    assert found.products == 2 * 256 * 512 * 1024


def test_short_runs_move_whole_lines() -> None:
    def columns(x):
        return x.sum(axis=0)

    plan = planned(columns, (4096, 2048))
    assert plan.axes[plan.row or ""].size == 4  # of 16 bytes each, in lines of 64
    found = traffic_of(plan, {"x": FLOAT}, machine("cpu"))
    assert found.cache == 4 * 4 * 4096 * 2048 + 4 * 2048


def test_the_last_tile_of_a_stream_is_computed_in_full() -> None:
    def halves(x):
        return (x / 2).sum(axis=-1)

    plan, cpu = planned(halves, (64, 320)), machine("cpu")
    tiles = (resized(plan, Blocks(64, n, resident=1)) for n in (64, 128))
    even, beyond = (traffic_of(p, {"x": FLOAT}, cpu) for p in tiles)
    assert beyond.operations * 320 == even.operations * 384 > 0
    assert beyond.memory == even.memory


def test_candidates_suit_the_roles() -> None:
    one = planned(product, (256, 512), (512, 1024))
    assert {b.parts for b in candidates(planned(row_sums, (1000, 9000)), machine())} == {1}
    assert {b.parts for b in candidates(planned(row_sums, (2, 90_000)), machine())} > {1}
    assert all(b.rows % 16 == b.columns % 16 == 0 for b in candidates(one, machine()))


def test_the_model_decides_among_the_best() -> None:
    plan = planned(product, (2048, 2048), (2048, 2048))
    asked: list[Blocks] = []

    def price(plans):
        asked.append(plans[0].blocks)
        if plans[0].blocks.columns == 256:
            raise OutOfScratch("a block needs more than there is")
        return 1.0 if plans[0].blocks == Blocks() else 1 / plans[0].blocks.columns

    choice = chosen(plan, {"x": FLOAT, "y": FLOAT}, machine(), price, MOST_RANKED)
    assert asked[0] == Blocks()
    assert len(asked) <= MOST_RANKED + 1
    assert choice.plan.blocks.columns == 128
    assert choice.is_ranked
    assert choice.note == "a block needs more than there is"


def test_small_kernels_come_as_they_are() -> None:
    plan = planned(product, (16, 16), (16, 16))
    choice = chosen(plan, {"x": FLOAT, "y": FLOAT}, machine(), lambda _: 1 / 0, MOST_RANKED)
    assert choice.plan is plan
    assert not choice.is_ranked


def test_few_rows_pass_whole_rows_of_the_other_factor() -> None:
    processor, types = machine("cpu:x86-64-v3"), {"x": FLOAT, "y": FLOAT}
    assert processor.peaks.units == 2
    for rows, columns in ((1, 2048), (8, 2048), (16, 1024)):
        plan = planned(product, (rows, 4096), (4096, 4096))
        choice = chosen(plan, types, processor, lambda _: 1 / 0, MOST_RANKED)
        assert choice.plan.blocks.columns == columns


def test_few_rows_share_a_long_stream() -> None:
    x = zeros(2, 1 << 20)
    told = Function(row_sums, target=A100).explain(x)
    first, second = told.kernels
    assert "by the model" in first.expected
    assert second.expected == ""
    assert first.reasons
    assert not second.reasons


def test_decoding_is_two_kernels() -> None:
    one, many = zeros(1, 8, 1, 64), zeros(1, 8, 8192, 64)
    assert len(Function(attention, target=A100).explain(one, many, many).kernels) == 2


def test_blocks_that_do_not_compile_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = zeros(64, 300), np.ones(300, "float32")
    equations = Function(rms_norm, target="cpu").equations(x, weight)
    good, wide = derive(equations, Blocks()), frozenset({Blocks(rows=256)})
    asked = []

    def refuse(derived, target):
        if derived.chosen == wide:
            raise OutOfScratch("too much")
        return derived

    def again(equations, blocks, target, refused):
        asked.append(refused)
        return replace(good, chosen=frozenset({Blocks()}))

    monkeypatch.setattr(module, "Compiled", refuse)
    monkeypatch.setattr(module, "derive", again)
    picked = module.Derived(equations, "", (), good.explanation, wide)
    assert module.compiled_first(picked, "cpu").source == good.source
    assert asked == [wide]


def test_accumulators_leave_threads_of_a_gpu_registers() -> None:
    plan = planned(attention, *3 * [(4096, 128)])
    asked: list[Blocks] = []

    def price(plans):
        asked.append(plans[0].blocks)
        return 1.0

    chosen(plan, dict.fromkeys("qkv", FLOAT), machine(), price, MOST_RANKED)
    registers = [b.rows * (b.stream + 128) / b.threads for b in asked]
    assert max(registers) == 128
    assert Blocks(128, 128, threads=256, resident=0) in asked


def test_rows_stay_in_registers_where_they_fit() -> None:
    plan = planned(rms_norm, (8192, 8192), (8192,))
    asked: list[Plan] = []

    def price(plans):
        asked.append(plans[0])
        return 1.0

    chosen(plan, {"x": FLOAT, "weight": FLOAT}, machine(), price, 3)
    assert all(p.is_resident for p in asked)
    assert all(p.axes[p.row or ""].size <= 2 for p in asked)


def test_a_gpu_goes_through_keys_in_one_loop() -> None:
    arrays = [np.zeros((2, 256, 64), "float16")] * 3
    apart = Function(causal, target="cpu").source(*arrays)
    together = Function(causal, target="cuda:sm_90a").source(*arrays)
    assert apart.count(" in T.Pipelined(") == 2
    assert together.count(" in T.Pipelined(") == 1
    assert together.count("if ko >= rest:") == 1


@pytest.mark.in_turn(2)
@pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")  # rows in local memory
@pytest.mark.parametrize("target", ["cuda:sm_90a@sim", "hip:gfx942@sim"])
def test_blocks_with_most_keys_come_first(target: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 192, 32), "float32") for _ in range(3)]
    function = Function(causal, target=target, blocks=Blocks(resident=0, masks_apart=False))
    assert "bx = T.ceildiv(192, BM) - 1 - place" in function.source(*arrays)
    wide = [x.astype("float64") for x in arrays]
    np.testing.assert_allclose(function(*arrays), causal(*wide), rtol=2e-5, atol=2e-6)


def test_products_on_gpus_have_as_many_stages_as_fit() -> None:
    plan = planned(product, (4096, 4096), (4096, 4096))
    asked: list[Blocks] = []

    def price(plans):
        asked.append(plans[0].blocks)
        if plans[0].blocks.stages > 3:
            raise OutOfScratch("too much")
        return 1.0 / plans[0].blocks.stages

    best = chosen(plan, {"x": FLOAT, "y": FLOAT}, machine(), price, MOST_RANKED)
    assert best.plan.blocks.stages == 3
    assert asked[0] == replace(asked[1], stages=4)
    assert max(b.stream for b in asked) == 64


def test_the_model_is_asked_about_no_kernel_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def counted(*args, real=pricing.estimate, **sizes):
        nonlocal count
        count += 1
        return real(*args, **sizes)

    monkeypatch.setattr(pricing, "estimate", counted)
    x, asked = zeros(67, 8191), []
    for _ in range(2):
        Function(lambda x, y: np.exp(x + y).sum(axis=-1), target="cpu").explain(x, x)
        asked.append(count)
    assert asked[0] == asked[1] > 1


def test_candidates_that_move_much_more_than_others_are_not_asked_about() -> None:
    plan = planned(product, (2048, 2048), (2048, 2048))
    asked: list[Blocks] = []

    def price(plans):
        asked.append(plans[0].blocks)
        return 1.0

    types = {"x": FLOAT, "y": FLOAT}
    choice = chosen(plan, types, machine(), price, 1000)
    tried = [traffic_of(resized(plan, b), types, machine()).milliseconds(machine()) for b in asked]
    assert max(tried) <= HOPELESS * min(tried)
    assert len(tried) < len([*candidates(plan, machine())])
    assert choice.candidates


LONG = {
    "rows": (row_sums, ((512, 8192),), Blocks(4, 512, resident=0)),
    "matrix and vector": (
        lambda x, w: x @ w.T, ((1, 4096), (4096, 4096)), Blocks(4, 512, resident=0)
    ),
    "two rows": (row_sums, ((2, 1 << 22),), Blocks(1, 65_536, resident=0)),
    "one row": (row_sums, ((1 << 20,),), Blocks(1, 65_536, resident=0, parts=2)),
    "shorter rows": (row_sums, ((4096, 1024),), Blocks(64, resident=65_536)),
}  # fmt: skip


@pytest.mark.parametrize("case", LONG)
def test_long_rows_that_are_added_up_are_read_several_at_once(case: str) -> None:
    func, shapes, wanted = LONG[case]
    cpu = machine("cpu")
    cpu = replace(cpu, peaks=replace(cpu.peaks, units=2))
    plan = planned(func, *shapes)
    found = chosen(plan, dict.fromkeys("xw", FLOAT), cpu, lambda plans: 1.0, 8)
    assert found.plan.blocks == wanted


def test_rows_that_are_more_than_added_up_have_blocks_by_the_model() -> None:
    def powers(x):
        return np.exp(x).sum(axis=-1)

    def columns(x):
        return x.sum(axis=0)

    cpu = machine("cpu")
    for func in (powers, columns, rms_norm):
        shapes = ((512, 8192), (8192,))[: 1 + (func is rms_norm)]
        assert blocks_of_row_reduction(planned(func, *shapes), {"x": FLOAT}, cpu) is None
    assert blocks_of_row_reduction(planned(row_sums, (512, 8192)), {"x": FLOAT}, machine()) is None
