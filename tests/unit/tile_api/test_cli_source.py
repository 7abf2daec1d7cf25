"""``tile source`` as a user types it."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tile_api.cli import main

FILE = """
import numpy as np
import tile_api as tile
import tile_api.language as T

@tile.function(target="interpret")
def scaled(x, weight, by=2, *, offset=0.0):
    return x * weight * by + offset

@tile.function(target="interpret")
def ones():
    return np.ones((3, 4), "float32")

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


HINT = (
    "hint: write --like {0}=4x1024:float16 for an array, "
    "--args '{{\"{0}\": 2}}' for anything else\n"
)


@pytest.mark.parametrize("verb", ["source", "bench"])
def test_arguments_that_are_left_out_or_are_none(place, capsys, verb):
    takes = "[TL1002] scaled takes x, weight, by, offset: "
    assert main([verb, f"{place}:scaled", "--like", "x=4x64"]) == 1
    assert capsys.readouterr().err == f"{takes}weight is not given\n{HINT.format('weight')}"
    assert main([verb, f"{place}:scaled", *LIKE, "--args", '{"h": 1}']) == 1
    assert capsys.readouterr().err == f"{takes}there is no h\nhint: leave h out\n"
    assert main([verb, f"{place}:ones", "--like", "x=4"]) == 1
    told = "[TL1002] ones takes nothing: there is no x\nhint: leave x out\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("verb", ["lower", "report", "tune"])
def test_verbs_that_take_kernels_alone(place, capsys, verb):
    assert main([verb, f"{place}:scaled"]) == 1
    assert capsys.readouterr().err == (
        "[TL1002] scaled is a function of whole arrays, and this verb takes kernels\n"
        f"hint: print these to a file: tile source {place}:scaled --like ARRAY > kernels.py\n"
    )


def test_errors_name_no_line_of_the_command_line_itself(place, tmp_path):
    command = tmp_path / "tile"  # as installers write it
    command.write_text("import sys\nfrom tile_api.cli import main\n\nsys.exit(main())\n")
    asked = [sys.executable, str(command), "source", f"{place}:scaled", *LIKE]
    done = subprocess.run(
        [*asked, "--args", '{"by": [1]}'], capture_output=True, text=True, check=False
    )
    assert done.stderr == (
        "[TL1003] scaled: argument 'by' is a list\n"
        "hint: pass arrays, np.asarray makes them; and numbers, texts, None, or tuples of such\n"
    )
