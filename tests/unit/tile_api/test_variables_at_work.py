"""What environment variables change, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tile_api.settings.variables import ACCEPTED, variables

PROGRAM = """
import sys

import tile_api as tile
from tile_api.autotuner.probe import add_one

kernel = tile.compile(add_one, target=sys.argv[1] if len(sys.argv) > 1 else None)
print(kernel.target)
"""


@pytest.fixture
def run(tmp_path):
    """Compile a kernel in a process that has only the given ones of our variables."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    known = {name for row in variables() for name in (row.name, *row.aliases)} | {*ACCEPTED}
    clean = {name: value for name, value in os.environ.items() if name not in known}

    def started(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(program), *arguments],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**clean, "TILE_CACHE_DIR": str(tmp_path / "cache"), **environment},
        )  # fmt: skip

    return started


def last_lines(done: subprocess.CompletedProcess[str]) -> str:
    """Return the error at the end of a traceback."""
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    return re.split(r"^tile_core\.errors\.\w+: ", done.stderr, flags=re.MULTILINE)[-1]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("environment", "arguments", "target"),
    [
        ({"TILE_TARGET": "interpret"}, (), "interpret"),
        ({"TILELANG_DEFAULT_TARGET": '{"kind": "cuda", "arch": "sm_80"}'}, (), "cuda:sm_80"),
        ({"TILE_TARGET": "cuda:sm_80"}, ("interpret",), "interpret"),
        ({"TILE_FORCE_TARGET": "interpret"}, ("cuda:sm_80",), "interpret"),
        ({"TILE_INTERPRET": "1"}, ("cuda:sm_80",), "interpret"),
    ],
)
def test_which_target_is_meant(run, environment, arguments, target):
    done = run(*arguments, **environment)
    assert (done.stderr, done.stdout) == ("", f"{target}\n")


@pytest.mark.parametrize(
    ("environment", "arguments", "message"),
    [
        ({"TILE_TARGET": "tpu"}, (), "[TL7001] no backend serves target 'tpu'"),
        (
            {"TILE_DISABLE_PLUGINS": "cuda"},
            ("cuda:sm_80",),
            "[TL7001] no backend serves target 'cuda:sm_80'",
        ),
        (
            {"TILE_CUDA_COMPILER": "gcc"},
            ("cuda:sm_80",),
            "[TL5001] the compiler of CUDA is to be 'gcc', which is none",
        ),
        (
            {"TILE_HIP_COMPILER": "gcc"},
            ("hip:gfx942",),
            "[TL5001] the compiler of HIP is to be 'gcc', which is none",
        ),
        (
            {"TILE_NUM_THREADS": "many"},
            ("interpret",),
            "[TL1002] the environment variable TILE_NUM_THREADS is 'many'\n"
            "hint: set it to a number of threads; 0 follows torch or OpenMP",
        ),
        (
            {"TILE_LOGS": "caches"},
            ("interpret",),
            "[TL1002] the environment variable TILE_LOGS is 'caches': there is no 'caches'",
        ),
        (
            {"TILE_CACHE_DIR": "/proc/none", "TILE_KEEP": "ir", "TILE_KEEP_DIR": "/proc/none"},
            ("interpret",),
            "[TL5001] texts of kernels cannot be kept in /proc/none/",
        ),
    ],
)
def test_what_is_wrong_is_said(run, environment, arguments, message):
    assert last_lines(run(*arguments, **environment)).startswith(message)


def test_tracebacks(run):
    short, full = (run("tpu", TILE_FULL_TRACEBACK=flag).stderr for flag in "01")
    assert next(line for line in short.splitlines() if line.startswith("  File ")).endswith(
        'program.py", line 7, in <module>'
    )
    assert short.count("  File ") == 2
    assert full.count("  File ") > 3


def test_what_is_found_again(run, tmp_path):
    told = []
    for environment in ({}, {}, {"TILELANG_DISABLE_CACHE": "1"}, {"TILE_CACHE_SIZE": "0"}):
        done = run("cuda:sm_80", TILE_LOGS="cache", **environment)
        assert done.stdout == "cuda:sm_80\n", done.stderr
        told.append(done.stderr.removeprefix("tile.cache: add_one for cuda:sm_80: ").rstrip())
    assert told == ["compiled", "found on disk", "compiled, as caches are off", "compiled"]
    assert (tmp_path / "cache").is_dir()


def test_what_is_told_and_kept(run, tmp_path):
    done = run("interpret", TILE_VERBOSE="1", TILE_KEEP="ir", TILE_LOGS="target,phases")
    lines = done.stderr.splitlines()
    assert lines[0] == "tile.target: add_one: interpret is interpret, compiled by interpret"
    assert lines[1].startswith("tile.phases: add_one for interpret: verify ")
    assert lines[2].startswith("compiled add_one for interpret: verify ")
    (folder,) = (tmp_path / "tile-kept").iterdir()
    assert {path.name for path in folder.iterdir()} == {
        "tile.txt", "planned.txt", "pipelined.txt", "lowered.txt",
    }  # fmt: skip


def test_variables_of_tilelang_are_accepted(run):
    done = run("interpret", **dict.fromkeys(ACCEPTED, "1"))
    assert (done.stderr, done.stdout) == ("", "interpret\n")
