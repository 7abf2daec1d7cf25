"""``tile source`` as a user types it."""

from __future__ import annotations

import ast

import pytest

from tile_api.cli import main

FILE = """
import numpy as np
import tile_api as tile
import tile_api.language as T

@tile.function(target="interpret")
def scaled(x, weight, by=2, *, offset=0.0):
    return x * weight * by + offset

@T.prim_func
def double(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[i] * 2
"""
LIKE = ["--like", "x=4x64:float16", "--like", "weight=64"]


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(FILE)
    return str(path)


def told(capsys, *arguments: str) -> str:
    assert main(["source", *arguments]) == 0
    text = capsys.readouterr().out
    ast.parse(text)
    return text


def failure(capsys, *arguments: str) -> str:
    assert main(["source", *arguments]) == 1
    return capsys.readouterr().err


def test_a_function_of_arrays(place, capsys):
    text = told(capsys, f"{place}:scaled", *LIKE, "--args", '{"by": 3}')
    assert "    x: float16[4, 64]\n    weight: float32[64]\n" in text
    assert "return scaled(x=x, weight=weight, by=3, offset=0.0)" in text
    assert "@tile.jit(out_idx=[-1])" in text


def test_threads_of_a_gpu_that_is_not_here(place, capsys):
    words = [f"{place}:scaled", *LIKE, "--target", "hip:gfx942", "--tier", "expert"]
    assert 'TARGET = "hip:gfx942@sim"' in told(capsys, *words)
    assert "has no programs of threads, as GPUs have" in failure(
        capsys, f"{place}:scaled", *LIKE, "--target", "cpu", "--tier", "expert"
    )


def test_a_kernel_of_tiles(place, capsys):
    words = [f"{place}:double", "--tier", "expert", "--target", "cuda:sm_80"]
    assert '@T.threads(target="cuda:sm_80")' in told(capsys, *words)


def test_what_makes_no_sense(place, capsys):
    assert failure(capsys, f"{place}:scaled", "--like", "x=4by64") == (
        "[TL1002] --like x=4by64 is no name with a shape and a type\n"
        "hint: write --like q=4x1024x64:float16; without a type it is float32\n"
    )
    assert failure(capsys, f"{place}:scaled", "--like", "x=4:float31").startswith(
        "[TL1002] --like x=4:float31 names no type of elements: "
    )
    assert failure(capsys, f"{place}:double", "--like", "x=4") == (
        "[TL1002] --like is for functions of whole arrays\n"
        "hint: leave it out: kernels have shapes\n"
    )
    assert "missing a required argument: 'weight'" in failure(
        capsys, f"{place}:scaled", "--like", "x=4x64"
    )
    assert failure(capsys, place).endswith(f"hint: name one of scaled, double: {place}:NAME\n")
