"""Contracts on dimensions: checked at every launch, part of keys, and worth their while."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
import tile_launch
from tile_core.driver import lower
from tile_core.errors import ContractViolation
from tile_core.plugins.host import installed_plugins


def scaling(**contract: int):
    m, n = T.dynamic("m, n", **contract)

    @T.prim_func
    def scale(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 32), threads=128) as (bx, by):
            tile = T.alloc_shared((32, 64), "float32")
            T.copy(A[by * 32, bx * 64], tile)
            for i, j in T.Parallel(32, 64):
                B[by * 32 + i, bx * 64 + j] = tile[i, j] * 2.0

    return scale


def source(func, target: str) -> str:
    return lower(func.kernel, target, installed_plugins()).text("source")


@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80@sim"])
def test_every_machine_checks_before_it_runs(target):
    kernel = tile.compile(scaling(min=64, multiple_of=64), target=target)
    a, b = np.arange(64 * 128, dtype=np.float32).reshape(64, 128), np.full((64, 128), np.nan, "f4")
    kernel(a, b)
    assert np.array_equal(a * 2, b)
    b[:] = np.nan
    with pytest.raises(ContractViolation, match="scale: m is 40, which is less than 64"):
        kernel(a[:40], b[:40])
    with pytest.raises(ContractViolation, match="n is 65, which is not a multiple of 64"):
        kernel(np.zeros((64, 65), np.float32), np.zeros((64, 65), np.float32))
    assert np.isnan(b).all()


def test_bundles_check_too(tmp_path):
    kernel = tile.compile(scaling(max=128, multiple_of=64), target="cpu")
    kernel.save(str(tmp_path / "scale.tile"))
    loaded = tile_launch.load(str(tmp_path / "scale.tile"))
    a, b = np.ones((64, 128), np.float32), np.zeros((64, 128), np.float32)
    loaded(a, b)
    assert (b == 2).all()
    with pytest.raises(tile_launch.errors.ContractViolation) as caught:
        loaded(np.ones((64, 192), np.float32), np.ones((64, 192), np.float32))
    assert str(caught.value) == (
        "[TL6010] scale: n is 192 because of A.shape[1]; its contract is n <= 128, n % 64 == 0\n"
        "hint: pass an argument of such a size"
    )


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_gpus_drop_guards_and_move_16_bytes(target):
    plain, promised = source(scaling(), target), source(scaling(multiple_of=64), target)
    assert re.search(r"< [mn]\b", plain)
    assert not re.search(r"< [mn]\b", promised)
    wide = r"load<4>\(.*, A \+|cp_async<16>\(.*, A \+|lds_load<16>|store<4>\(.*|bulk"
    assert not re.search(r"load<4>\([^,]*, A |cp_async<16>|lds_load<16>", plain)
    assert re.search(wide, promised)


def test_rows_that_are_multiples_of_16_bytes_apart_are_copied_so_although_guarded():
    def copying(**contract: int):
        m, n = T.dynamic("m, n", **contract)

        @T.prim_func
        def copy(A: T.Tensor((m, n), "float16"), B: T.Tensor((m, n), "float16")):
            with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 32), threads=128) as (bx, by):
                tile = T.alloc_shared((32, 64), "float16")
                T.copy(A[by * 32, bx * 64], tile)
                T.copy(tile, B[by * 32, bx * 64])

        return copy

    for multiple_of, width in ((1, None), (2, 4), (4, 8), (8, 16)):
        text = source(copying(multiple_of=multiple_of), "cuda:sm_80")
        found = {int(w) for w in re.findall(r"cp_async<(\d+)>", text)}
        found |= {2 * int(w) for w in re.findall(r"load<(\d+)>\([^,]*, A ", text)}
        assert found == ({width} if width else set())
        assert re.search(r"< [mn]\b", text)


def test_processors_drop_the_code_of_edges():
    plain, promised = source(scaling(), "cpu"), source(scaling(multiple_of=64), "cpu")
    assert promised.count("\n") < plain.count("\n")


def test_contracts_are_in_the_key():
    keys = [
        str(tile.compile_key(scaling(**contract), target="cpu"))
        for contract in ({}, {"multiple_of": 64}, {"min": 1}, {"max": 64}, {"multiple_of": 1})
    ]
    assert len(set(keys)) == 4
    assert keys[0] == keys[4]
    assert "m: int32 multiple_of 64" in keys[1]


def test_solved_symbols_are_checked():
    m = T.dynamic("m", multiple_of=4)

    @T.prim_func
    def first(A: T.Tensor((m * 2 + 1,), "float32")):
        with T.Kernel(1):
            A[0] = 1.0

    kernel = tile.compile(first, target="interpret")
    kernel(np.zeros(9, np.float32))
    with pytest.raises(ContractViolation, match="m is 5, which") as caught:
        kernel(np.zeros(11, np.float32))
    assert caught.value.notes[0].text == "m is 5 because of A.shape[0]"


def test_eager_constants_have_contracts_as_well():
    @tile.jit(target="interpret")
    def double(A):
        M = T.const("M", min=2, max=8)
        A: T.Tensor((M,), "float32")
        C = T.empty((M,), "float32")
        with T.Kernel(1):
            for i in T.Parallel(M):
                C[i] = A[i] * 2.0
        return C

    assert double(np.ones(4, np.float32)).tolist() == [2.0] * 4
    with pytest.raises(ContractViolation, match="M is 9, which is more than 8"):
        double(np.ones(9, np.float32))
