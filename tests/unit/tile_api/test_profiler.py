"""The profiler: generated inputs, comparison with a reference, timing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_api.timing.compare import assert_close, assert_same_bits
from tile_api.timing.profiler import TensorSupplyType, do_bench
from tile_api.timing.supply import make_tensor
from tile_core.dtypes import FORMATS, dtype_of
from tile_core.errors import FrontendValueError, LaunchError

m = T.dynamic("m")


@pytest.fixture(scope="module")
def double():
    @T.prim_func
    def double(A: T.Tensor((m, 4), "float32"), B: T.Tensor((m, 4), "float32")):
        with T.Kernel(m) as bx:
            for i in T.Parallel(4):
                B[bx, i] = A[bx, i] * 2.0

    return tile.compile(double, out_idx=[1], target="interpret")


@pytest.fixture(scope="module")
def shift():
    @T.prim_func
    def shift(A: T.Tensor((8,), "float16"), B: T.Tensor((8,), "float16")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = A[i] + 1.0

    return tile.compile(shift, out_idx=[1], target="interpret")


@pytest.mark.parametrize("name", FORMATS)
def test_inputs_of_every_type_fit_its_parameter(name):
    @T.prim_func
    def look(A: T.Tensor((3, 4), name)):
        with T.Kernel(1):
            T.fill(A, 0)

    kernel = tile.compile(look, target="interpret")
    for kind in TensorSupplyType:
        (tensor,) = kernel.get_profiler(kind).inputs()
        kernel.raw(tensor)  # checks, and does not run
        assert torch.equal(tensor.view(torch.uint8), _again(kernel, kind).view(torch.uint8))


def _again(kernel, kind):
    return kernel.get_profiler(kind).inputs()[0]


@pytest.mark.parametrize(
    ("dtype", "kind", "low", "high"),
    [
        ("uint8", "Auto", 0, 2),
        ("int32", "Auto", -2, 2),
        ("bool", "Auto", 0, 1),
        ("float8_e4m3fn", "Auto", -2, 2),
        ("float32", "Integer", -2, 2),
        ("float32", "Zero", 0, 0),
        ("float16", "One", 1, 1),
    ],
)
def test_whole_numbers(dtype, kind, low, high):
    values = make_tensor((64, 64), dtype_of(dtype), kind, seed=0).double().numpy()
    assert set(np.unique(values)) == set(range(low, high + 1))


def test_fractions():
    uniform = make_tensor((64, 64), dtype_of("float32"), "Auto", seed=0)
    assert -1 <= uniform.min() < -0.9
    assert 0.9 < uniform.max() <= 1
    normal = make_tensor((64, 64), dtype_of("float32"), "Randn", seed=0)
    assert normal.max() > 2
    assert not torch.equal(uniform, make_tensor((64, 64), dtype_of("float32"), "Auto", seed=1))


def test_packed_ones_are_ones():
    packed = make_tensor((2, 4), dtype_of("int4"), "One", seed=0)
    assert packed.tolist() == [[0x11, 0x11]] * 2
    assert make_tensor((4,), dtype_of("float4_e2m1fn"), "One", seed=0).view(
        torch.uint8
    ).tolist() == [0x22, 0x22]


def test_symbols_need_values(double):
    profiler = double.get_profiler()
    with pytest.raises(LaunchError) as caught:
        profiler.do_bench()
    assert str(caught.value) == (
        "[TL6001] no value for the symbolic dimension 'm'\n"
        "hint: pass dynamic_symbolic_constraints={'m': 1024}"
    )
    (a,) = profiler.inputs({"m": 3})
    assert a.shape == (3, 4)
    assert profiler.do_bench(dynamic_symbolic_constraints={"m": 3}, n_warmup=1, n_repeat=2) > 0


def test_agreement_and_disagreement(shift):
    profiler = shift.get_profiler(TensorSupplyType.Integer)
    profiler.assert_allclose(lambda a: a + 1)
    profiler.assert_allclose(lambda a: [None])
    profiler.assert_consistent(repeat=3)
    with pytest.raises(AssertionError, match="output 0: 8 of 8 elements differ; first at"):
        profiler.assert_allclose(lambda a: a + 2)
    with pytest.raises(AssertionError, match="the kernel returns 1 outputs, the reference 2"):
        profiler.assert_allclose(lambda a: (a, a))
    seen = []
    profiler.manual_assert_close(lambda a: a - 1, None, lambda ours, ref: seen.append((ours, ref)))
    assert torch.equal(seen[0][0], seen[0][1] + 2)


def test_what_returns_nothing_has_no_outputs(shift):
    profiler = shift.get_profiler()
    with pytest.raises(AssertionError, match="the kernel returns 1 outputs, the reference 0"):
        profiler.assert_allclose(lambda a: None)

    @T.prim_func
    def fill(A: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            T.fill(A, 3)

    profiler = tile.compile(fill, target="interpret").get_profiler()
    profiler.assert_allclose(lambda a: None)
    with pytest.raises(AssertionError, match="the kernel returns 0 outputs, the reference 1"):
        profiler.assert_allclose(lambda a: a)


def test_one_of_a_hundred_elements_may_differ():
    @T.prim_func
    def same(A: T.Tensor((200,), "float32"), B: T.Tensor((200,), "float32")):
        with T.Kernel(1):
            T.copy(A, B)

    profiler = tile.compile(same, out_idx=[1], target="interpret").get_profiler()

    def wrong(count):
        def reference(a):
            b = a.clone()
            b[:count] += 1.0
            return b

        return reference

    profiler.assert_allclose(wrong(2))
    with pytest.raises(AssertionError, match="output 0: 3 of 200 elements differ"):
        profiler.assert_allclose(wrong(3))
    profiler.assert_allclose(wrong(3), max_mismatched_ratio=0.02)
    profiler.assert_allclose(lambda a: a + 0.0099)
    with pytest.raises(AssertionError, match="differ"):
        profiler.assert_allclose(lambda a: a + 0.0099, atol=1e-3, rtol=1e-3)


def test_narrow_floats_are_compared_as_wide_ones():
    @T.prim_func
    def narrow(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float8_e4m3fn")):
        with T.Kernel(1):
            for i in T.Parallel(64):
                B[i] = A[i]

    profiler = tile.compile(narrow, out_idx=[1], target="interpret").get_profiler(
        TensorSupplyType.Integer
    )
    profiler.assert_allclose(lambda a: a)
    profiler.assert_allclose(lambda a: a.to(torch.float8_e4m3fn))
    with pytest.raises(AssertionError, match="64 of 64 elements differ"):
        profiler.assert_allclose(lambda a: (a + 0.5).to(torch.float8_e4m3fn))


def test_given_inputs_are_used(shift):
    a = torch.full((8,), 5.0, dtype=torch.float16)
    profiler = shift.get_profiler()
    profiler.assert_allclose(lambda a: torch.full((8,), 6.0), [a], atol=0, rtol=0)
    assert profiler(a).tolist() == [6.0] * 8
    assert profiler.func is shift
    assert profiler.run_once(lambda a: a.shape) == (8,)


def test_the_share_of_mismatches():
    a, b = np.zeros(100), np.zeros(100)
    b[7] = 1
    assert_close(a, b, 0.1, 0.0, max_mismatched_ratio=0.01)
    with pytest.raises(AssertionError) as caught:
        assert_close(a, b, 0.1, 0.0, max_mismatched_ratio=0.009)
    assert str(caught.value) == "tensor: 1 of 100 elements differ; first at [7]: 0.0 against 1.0"


def test_infinities_and_nans():
    special = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert_close(special, special.copy(), 0, 0)
    for wrong in (
        [0, np.inf, -np.inf, 1],
        [np.nan, 1e30, -np.inf, 1],
        [np.nan, -np.inf, -np.inf, 1],
    ):
        with pytest.raises(AssertionError, match="1 of 4"):
            assert_close(np.array(wrong, float), special, 1.0, 1.0)
    with pytest.raises(AssertionError, match=r"shape \(4,\) against \(2, 2\)"):
        assert_close(special, special.reshape(2, 2), 1, 1)


def test_types_numpy_lacks():
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        tensor = torch.tensor([1.0, -2.0]).to(getattr(torch, name))
        assert_close(tensor, np.array([1.0, -2.0]), 0, 0)


def test_timing_counts_calls():
    calls = []
    times = do_bench(lambda: calls.append(1), _n_warmup=3, _n_repeat=5, return_mode="all")
    assert len(times) == 5
    assert len(calls) == 1 + 3 + 5  # the first compiles
    low, high = do_bench(lambda: None, _n_warmup=1, _n_repeat=9, quantiles=[0.0, 1.0])
    assert 0 <= low <= high
    assert do_bench(lambda: None, _n_warmup=1, _n_repeat=3, quantiles=[0.5]) >= 0
    for mode in ("mean", "median", "min", "max"):
        assert do_bench(lambda: None, _n_warmup=1, _n_repeat=3, return_mode=mode) >= 0


def test_unknown_ways_of_summing_up_are_refused_before_anything_runs():
    def fail():
        raise RuntimeError

    with pytest.raises(FrontendValueError) as caught:
        do_bench(fail, return_mode="mode")
    assert str(caught.value) == (
        "[TL1002] return_mode 'mode' is not known\n"
        "hint: use one of mean, median, min, max, all, timing"
    )


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [
        (torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0]), "1 of 8 bytes"),
        (torch.tensor(1 << 60), torch.tensor((1 << 60) + 1), "1 of 8 bytes"),
        (np.array([1 << 60]), np.array([(1 << 60) + 3]), "1 of 8 bytes"),
        (torch.ones(2, dtype=torch.bfloat16), torch.full((2,), 1.0078125).bfloat16(), "2 of 4"),
    ],
    ids=["signs of zero", "low bits of int64", "of NumPy", "bfloat16"],
)
def test_bits_that_no_tolerance_tells_apart(one: Any, other: Any, wrong: str) -> None:
    nan = torch.tensor([float("nan")])
    assert_same_bits([one, nan], [one, nan.clone()])
    with pytest.raises(AssertionError, match=f"output 1: {wrong}"):
        assert_same_bits((nan, one), (nan, other))


def test_runs_that_differ_in_a_bit_are_not_consistent(shift: Any) -> None:
    profiler = shift.get_profiler(TensorSupplyType.Integer)
    answers = [torch.zeros(8), torch.zeros(8), -torch.zeros(8)]
    profiler.inputs = lambda: ()
    profiler.kernel = lambda: answers.pop(0)
    with pytest.raises(AssertionError, match="output 0: 8 of 32 bytes differ"):
        profiler.assert_consistent(repeat=2)
