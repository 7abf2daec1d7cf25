"""``tile check`` and ``tile bundle`` as a shell starts them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tile_api as tile
from tile_api.autotuner.probe import add_one
from tile_api.cli import main

PROGRAM = """
import sys

import numpy as np

import tile_api as tile
import tile_api.language as T

N = 32

@T.prim_func
def shift(A: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=N):
        t = T.get_thread_binding()
        other = T.alloc_var("float32")
        other = A[N - 1 - t]
        {between}
        A[t] = other

kernel = tile.compile(shift, target="cpu")
kernel(np.ones(N, "float32"))
print(kernel.target, *sys.argv[1:])
if __name__ != "__main__":
    raise SystemExit("it must run as a script")
"""


@pytest.fixture
def racy(tmp_path):
    path = tmp_path / "racy.py"
    path.write_text(PROGRAM.format(between="pass"))
    return path


@pytest.fixture
def mended(tmp_path):
    path = tmp_path / "mended.py"
    path.write_text(PROGRAM.format(between="T.sync_threads()"))
    return path


def tile_(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tile_api.cli", *map(str, arguments)],
        capture_output=True, text=True, check=False, env=os.environ | {"TILE_VERIFY": "0"},
    )  # fmt: skip


def test_a_mistake_is_found_whatever_target_the_program_names(racy):
    done = tile_("check", racy, "one", "--two")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("[TL6503] ")
    assert f"{racy.name}:16" in done.stderr


def test_no_mistake_is_found(mended, racy, capfd):
    done = tile_("check", mended, "one", "--two")
    assert (done.returncode, done.stdout) == (0, "interpret one --two\n")
    assert done.stderr == f"{mended}: no mistake was found on interpret\n"


def test_a_program_that_calls_no_kernel_was_not_checked(mended, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    idle = tmp_path / "idle.py"
    idle.write_text(mended.read_text().replace('kernel(np.ones(N, "float32"))', ""))
    assert main(["check", str(idle)]) == 1
    told = capsys.readouterr().err
    assert told == f"{idle}: nothing was checked: the program called no kernel\n"


def test_what_is_looked_for_can_be_chosen(racy, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["check", "--checks", "oob,uninit", str(racy)]) == 0
    assert main(["check", "--target", "cuda:sm_80@sim", str(racy)]) == 1
    told = capfd.readouterr()
    assert told.out == "interpret\n"
    assert "[TL6503] " in told.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "error: name a script"),
        (["none.py"], 2, "error: there is no file 'none.py'"),
        (["--checks", "races", "{racy}"], 1, "[TL1002] the setting checks is 'races'"),
        (
            ["--target", "cpu", "{racy}"],
            1,
            "[TL4001] kernels that run on cpu are not checked\n"
            "hint: leave --target out, or name an emulator: --target cuda:sm_80@sim",
        ),
        (["--target", "hip:gfx942", "{racy}"], 1, "--target hip:gfx942@sim"),
        (["--target", "tpu@@", "{racy}"], 1, "[TL4003] 'tpu@@' is not a target"),
    ],
)
def test_wrong_use(arguments, status, message, racy, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    written = ["check", *(word.format(racy=racy) for word in arguments)]
    if status == 2:
        with pytest.raises(SystemExit) as left:
            main(written)
        assert left.value.code == 2
    else:
        assert main(written) == 1
    assert message in capsys.readouterr().err


def test_what_is_in_a_bundle(tmp_path, capsys):
    path = tmp_path / "add.tile"
    tile.compile(add_one, target="cuda:sm_80").save(path, targets=["cuda:sm_80", "hip:gfx942"])
    assert main(["bundle", "inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("add_one(A: float32[256], B: float32[256])\n\ncuda:sm_80: ")
    assert "\nhip:gfx942: " in out
    assert main(["bundle", "inspect", str(path), str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\n{out}\n{path}\n{out}"


def test_what_is_no_bundle(tmp_path, capsys):
    path = tmp_path / "broken.tile"
    path.write_text("no bundle")
    assert main(["bundle", "inspect", str(path)]) == 1
    assert capsys.readouterr().err.startswith("[TL8001] ")
    assert main(["bundle", "inspect", str(tmp_path / "none.tile")]) == 1
    assert "No such file or directory" in capsys.readouterr().err


TILELANG_PROGRAM = """
import tilelang
import tilelang.language as T
import torch

@tilelang.jit(out_idx=[-1], target="cuda")
def shifted(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=n):
            row = T.alloc_fragment((n,), "float32")
            {first}
            for i in T.Parallel(n):
                B[i] = row[i]
    return main

a = torch.ones(32, device="cuda")
print(shifted(32)(a).sum().item(), torch.cuda.get_device_capability(), a.device)
"""


def test_a_tilelang_program_is_checked_as_it_is(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(TILELANG_PROGRAM.format(first="T.copy(A, row)"))
    done = tile_("check", "--as-tilelang", "--gpu", "sm_80", path)
    assert (done.returncode, done.stdout) == (0, "32.0 (8, 0) cuda:0\n")
    assert "no mistake was found on interpret" in done.stderr
    path.write_text(TILELANG_PROGRAM.format(first="pass"))
    done = tile_("check", "--as-tilelang", path)
    assert done.returncode == 1
    assert done.stderr.startswith("[TL6502] ")
    done = tile_("check", path)
    assert done.returncode == 1
    assert "No module named 'tilelang'" in done.stderr


ARRAYS = """
import numpy as np

import tile_api as tile

@tile.function
def rows(table, tokens):
    return np.take(table, tokens, axis=0)

rows(np.zeros((5, 7), "float32"), np.array([0, {last}]))
"""


def test_functions_of_arrays_are_checked(tmp_path):
    path = tmp_path / "arrays.py"
    path.write_text(ARRAYS.format(last=4))
    done = tile_("check", path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{path}: no mistake was found on interpret\n"
    path.write_text(ARRAYS.format(last=5))
    done = tile_("check", path)
    assert done.returncode == 1
    assert "an index of dimension 0 of table is outside of its 5 elements" in done.stderr
    # The line of the kernel, then that of the function.
    assert f"note: in the kernels of rows\n --> {path}:7:1\n" in done.stderr
    assert "7 | def rows(table, tokens):" in done.stderr
