"""Both steps on this processor: what is built is checked and timed, what is wrong is found."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from support.gpu_benchmarks import FOLDER

PROBLEMS = ("gemm", "softmax", "copy")


def program(name, *words):
    command = [sys.executable, str(FOLDER / name), *map(str, words), "--rehearse"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    told = program("build.py", folder, "--only", *PROBLEMS)
    assert "4 configurations of 3 problems" in told
    return folder


def measured(folder, out, *words):
    told = program("run.py", folder, "--out", out, "--race", 0.01, "--only", *PROBLEMS, *words)
    return told, json.loads(out.read_text())


def test_everything_that_is_right_is_timed(built, tmp_path):
    told, results = measured(built, tmp_path / "results.json")
    assert set(results["problems"]) == {"gemm-0", "softmax-0", "copy-0"}
    assert not results["skipped"]
    gemm = results["problems"]["gemm-0"]["contestants"]
    for name in ("tile 0", "tile 1", "cuBLAS"):
        assert gemm[name]["status"] == "right"
        assert gemm[name]["sample"]["median"] > 0
    for name in ("tile 0", "tile 1"):
        assert gemm[name]["repeats"]
        assert gemm[name]["relative"] < 1e-3
    assert results["machine"]["peaks"]["copy_gbps"] > 0
    assert results["machine"]["packages"]["torch"]
    assert results["plan"]["gemm-0"][0]["config"].startswith("schedule=one")
    assert "a stand-in" in told
    assert told.count("softmax-0") == 2  # when it is done, and in the table


def test_what_is_wrong_and_what_cannot_be_loaded_is_found(built, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(built, folder)
    shutil.copy(folder / "copy-0-0-main.tile", folder / "softmax-0-0-main.tile")
    (folder / "gemm-0-1-main.tile").write_bytes(b"no bundle")
    told, results = measured(folder, tmp_path / "results.json")
    softmax = results["problems"]["softmax-0"]["contestants"]
    assert softmax["tile 0"]["status"] == "wrong"
    assert "sample" not in softmax["tile 0"]
    assert softmax["torch"]["status"] == "right"
    assert "none of our kernels ran" in told
    gemm = results["problems"]["gemm-0"]["contestants"]
    assert gemm["tile 1"]["status"] == "error"
    assert "InvalidBundle" in gemm["tile 1"]["why"]
    assert gemm["tile 0"]["status"] == "right"
    assert "tile 1: error" in told


def test_without_time_everything_is_skipped(built, tmp_path):
    told, results = measured(built, tmp_path / "results.json", "--budget", 0)
    assert set(results["skipped"]) == {"gemm-0", "softmax-0", "copy-0"}
    assert told.count("skipped: no time left") == 3
