"""`tile.jit` around functions that return a kernel."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.frozen_values import frozen
from tile_core.errors import ArgumentCountError, FrontendTypeError, OutputError
from tile_core.ir.stmt import Kernel


def filling():
    """Return a decorated factory, and the list of the arguments it ran with."""
    runs = []

    @tile.jit(out_idx=[0], target="interpret")
    def fill(n, value=1, *, extra=()):
        runs.append((n, value, extra))

        @T.prim_func
        def main(A: T.Tensor((n,), "int32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(n):
                    A[i] = value

        return main

    return fill, runs


def test_calls_return_kernels_made_once_per_arguments():
    fill, runs = filling()
    assert fill.mode == "auto"
    kernel = fill(3)
    assert fill.mode == "lazy"
    assert kernel().tolist() == [1, 1, 1]
    assert fill(n=3) is kernel
    assert fill(3, 1, extra=()) is kernel
    assert fill.compile(3, value=1) is kernel
    assert fill(3, 2)().tolist() == [2, 2, 2]
    assert runs == [(3, 1, ()), (3, 2, ())]


def test_values_of_different_types_are_different_arguments():
    fill, runs = filling()
    fill(2, 1)
    fill(2, True)
    fill(2, 1.0)
    fill(2, np.int64(1))
    assert len(runs) == 4


def test_lists_and_dicts_and_sets_are_arguments():
    fill, runs = filling()
    kernel = fill(2, extra=[1, {"a": {2}}])
    assert fill(2, extra=[1, {"a": {2}}]) is kernel
    assert fill(2, extra=[1, {"a": {3}}]) is not kernel
    with pytest.raises(FrontendTypeError, match="of type ndarray cannot be part") as caught:
        fill(2, extra=np.zeros(1))
    assert isinstance(caught.value, TypeError)
    assert len(runs) == 2


def test_stand_ins_tell_containers_apart():
    values = [1, 1.0, True, "1", None, (1,), [1], {1}, {1: 1}, {"a": [1]}, {"a": (1,)}]
    assert len({frozen(v) for v in values}) == len(values)
    assert frozen({"x": [1, (2, {3})]}) == frozen({"x": [1, (2, {3})]})


def test_the_environment_is_part_of_the_arguments(monkeypatch):
    @tile.jit(out_idx=[0])
    def one():
        @T.prim_func
        def main(A: T.Tensor((1,), "int32")):
            with T.Kernel(1, threads=32):
                A[0] = 1

        return main

    monkeypatch.setenv("TILE_TARGET", "toy")
    assert one().target == "toy"
    monkeypatch.setenv("TILE_INTERPRET", "1")
    assert one().target == "interpret"
    monkeypatch.delenv("TILE_INTERPRET")
    assert one().target == "toy"


def test_used_bare_and_on_methods():
    class Maker:
        @tile.jit
        def make(self, n):
            @T.prim_func
            def main(A: T.Tensor((n,), "int32")):
                with T.Kernel(1, threads=32):
                    A[0] = n

            return main

    def make(n):
        return Maker.make.func(None, n)

    assert tile.jit(make).get_tir(4).params[0].shape == (4,)
    assert Maker().make.func is Maker.make
    assert Maker.make.get_tir(None, 5).params[0].shape == (5,)


def test_looking_without_running():
    fill, runs = filling()
    traced = fill.get_tir(2, 5)
    assert isinstance(traced.kernel, Kernel)
    assert fill.get_kernel_source(2, 5) == fill(2, 5).kernel_source
    assert fill.func.__name__ == fill.__name__ == "fill"
    assert list(fill.signature.parameters) == ["n", "value", "extra"]
    assert repr(fill) == "<tile.jit fill, lazy>"


def test_many_at_once():
    fill, _ = filling()
    kernels = fill.par_compile([(2, 7), {"n": 3, "value": 8}], num_workers=2)
    assert [k().tolist() for k in kernels] == [[7, 7], [8, 8, 8]]


def test_what_was_compiled_at_once_is_found_by_calls():
    @tile.jit(target="interpret")
    def filled(n):
        @T.prim_func
        def fill(A: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                T.fill(A, n)

        return fill

    three, four = filled.par_compile([(3,), {"n": 4}])
    assert filled(3) is three
    assert filled(n=4) is four
    assert filled.compile_keys() == [three.compile_key(), four.compile_key()]


def test_arguments_must_fit_the_signature():
    fill, _ = filling()
    with pytest.raises(ArgumentCountError) as caught:
        fill()
    assert caught.value.message == (
        "fill(n, value=1, *, extra=()): missing a required argument: 'n'"
    )
    with pytest.raises(ArgumentCountError, match="unexpected keyword argument 'm'"):
        fill.get_tir(2, m=3)


def test_a_factory_must_return_a_kernel():
    @tile.jit
    def nothing(n):
        return n

    for ask in (nothing, nothing.get_tir):
        with pytest.raises(FrontendTypeError) as caught:
            ask(3)
        assert caught.value.message == "nothing returned int, not a @T.prim_func"


def test_outputs_cannot_be_stated_twice():
    @tile.jit(out_idx=[0])
    def twice():
        @T.prim_func
        def main(A: T.Tensor((1,), "int32")):
            B = T.empty((1,), "int32")
            with T.Kernel(1, threads=32):
                B[0] = A[0]
            return B

        return main

    with pytest.raises(OutputError):
        twice()


def test_options_are_keywords():
    with pytest.raises(FrontendTypeError, match=r"decorates functions, got list"):
        tile.jit([-1])


def test_threads_may_call_at_once():
    fill, _ = filling()
    kernels = []
    threads = [threading.Thread(target=lambda: kernels.append(fill(2, 3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [k().tolist() for k in kernels] == [[3, 3]] * 4
