"""``tile lower`` as a user types it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tile_api.cli import main

FILE = """
import tile_api as tile
import tile_api.language as T

@T.prim_func
def double(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[i] * 2

@tile.jit
def filled(n):
    @T.prim_func
    def fill(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            T.fill(A, 3)
    return fill

if __name__ == "__main__":
    raise SystemExit("it must not run as a script")
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(FILE)
    return path


def test_a_subprocess_prints_source_for_a_machine_that_is_not_here(file):
    command = ["-m", "tile_api.cli", "lower", f"{file}:double", "--target", "hip:gfx942"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('#include "tile.h"\n')
    assert "double_kernel for gfx942" in done.stdout
    assert f"{file.name}:9" in done.stdout  # the user's line


def test_stages(file, capsys):
    assert main(["lower", f"{file}:double", "--target", "cuda:sm_80", "--stage", "tile"]) == 0
    assert "parallel" in capsys.readouterr().out


def test_the_program_of_one_thread_is_a_file_that_can_be_lowered(file, capsys, tmp_path):
    target = ["--target", "hip:gfx942"]
    assert main(["lower", f"{file}:double", *target]) == 0
    source = capsys.readouterr().out
    assert main(["lower", f"{file}:double", *target, "--stage", "expert"]) == 0
    printed = tmp_path / "printed.py"
    printed.write_text(capsys.readouterr().out)
    assert main(["lower", str(printed), *target]) == 0
    assert capsys.readouterr().out == source


def test_functions_that_make_kernels_get_their_arguments(file, capsys):
    place = [f"{file}:filled", "--target", "cuda:sm_80", "--stage", "tile"]
    assert main(["lower", *place, "--args", '{"n": 96}']) == 0
    assert "96" in capsys.readouterr().out


def test_what_users_get_wrong(file, tmp_path, capsys):
    empty = tmp_path / "empty.py"
    empty.write_text("")
    wrong = {
        f"{tmp_path}/none.py": f"there is no file '{tmp_path}/none.py'\n"
        "hint: write FILE.py or FILE.py:NAME",
        str(empty): f"{empty} has no kernel at its top level\n"
        "hint: decorate a function with @T.prim_func or @tile.jit",
        str(file): f"{file} has 2 kernels\nhint: name one of double, filled: {file}:NAME",
        f"{file}:triple": f"{file} has no kernel called 'triple'\n"
        f"hint: name one of double, filled: {file}:NAME",
    }
    for place, message in wrong.items():
        assert main(["lower", place]) == 1
        assert capsys.readouterr().err == f"[TL1002] {message}\n", place
    for text in ("{", "[1]"):
        assert main(["lower", f"{file}:filled", "--args", text]) == 1
        assert "write --args '{" in capsys.readouterr().err


def test_passes_by_name(file, capsys):
    place = [f"{file}:double", "--target", "cuda:sm_80"]
    assert main(["lower", *place, "--print-pipeline"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("tile:\n  choose_scaled_gemms\n  lower_scaled_gemms\n  select_ranges\n")
    assert "\nlaunch:\n  refuse_divergent_races       if orders_threads\n" in told
    assert main(["lower", *place, "--stop-after", "insert_barriers"]) == 0
    assert capsys.readouterr().out.startswith("launch bx: int32 in (1)")
    assert main(["lower", *place, "--skip", "simplify_indices", "--skip", "merge_branches"]) == 0
    assert "double" in capsys.readouterr().out
    assert main(["lower", *place, "--stop-after", "insert_barrier"]) == 1
    assert "did you mean 'insert_barriers'?" in capsys.readouterr().err
    assert main(["lower", *place, "--skip", "merge_branches", "--stage", "ptx"]) == 1
    assert "--skip goes with the stages tile, " in capsys.readouterr().err
