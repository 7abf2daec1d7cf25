"""The host's C++ compiler: which one, with which flags, and what happens without one."""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path

import pytest

from tile_core.errors import ToolchainError
from tile_sim.toolchain import Compiler, find_compiler, machine_flags, run_compiler


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with programs called g++, clang++ and mine."""
    for name in ("g++", "clang++", "mine"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'x.cpp:1: error: no' >&2; exit 3\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_the_order_of_compilers(folder):
    path = {"PATH": str(folder)}
    assert find_compiler(path) == Compiler((f"{folder}/g++",), "g++")
    chosen = find_compiler(path | {"CXX": "mine -m64"})
    assert chosen == Compiler((f"{folder}/mine", "-m64"), "mine")
    (folder / "g++").unlink()
    assert find_compiler(path) == Compiler((f"{folder}/clang++",), "clang++")


def test_the_compiler_of_ziglang(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "ziglang" or None)
    found = find_compiler({"PATH": ""})
    assert found == Compiler((sys.executable, "-m", "ziglang", "c++"), "zig")


def test_no_compiler(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError) as caught:
        find_compiler({"PATH": ""})
    assert str(caught.value) == (
        "[TL5001] the emulator compiles kernels for this machine, and there is no C++ compiler\n"
        "hint: install g++ or clang++, point CXX at a compiler, or pip install ziglang"
    )


def test_a_compiler_that_does_not_exist(folder):
    with pytest.raises(ToolchainError) as caught:
        find_compiler({"PATH": str(folder), "CXX": "yours"})
    assert str(caught.value) == (
        "[TL5001] CXX names the compiler 'yours', which does not exist\n"
        "hint: unset CXX, or point it at a C++ compiler"
    )


def test_the_words_of_the_compiler_are_attached(folder):
    compiler = find_compiler({"PATH": str(folder)})
    with pytest.raises(ToolchainError) as caught:
        run_compiler(compiler, ["-c"], what="the kernel 'k'", hint="try another")
    assert str(caught.value) == (
        "[TL5001] g++ does not accept the kernel 'k':\nx.cpp:1: error: no\nhint: try another"
    )


def test_a_compiler_that_cannot_be_started(tmp_path):
    compiler = Compiler((str(tmp_path / "gone"),), "gone")
    with pytest.raises(ToolchainError) as caught:
        run_compiler(compiler, [], what="a kernel")
    assert str(caught.value) == (
        f"[TL5001] {tmp_path}/gone cannot be run: No such file or directory\n"
        "hint: point CXX at a C++ compiler that works"
    )


def test_another_version_is_another_compiler(folder):
    compiler = find_compiler({"PATH": str(folder)})
    before = compiler.identity
    assert before == compiler.identity
    (folder / "g++").write_text("#!/bin/sh\n# newer\nexit 3\n")
    assert compiler.identity != before


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86")
def test_flags_of_the_machine():
    modern = "processor: 0\nflags\t\t: fpu avx2 bmi2 f16c fma movbe sse4_2\n"
    assert machine_flags(modern) == ("-march=x86-64-v3",)
    assert machine_flags(modern.replace("f16c", "")) == ()
    assert machine_flags("") == ()
