"""Headers in compiled form: used where they can be, and never more than read again."""

from __future__ import annotations

import os
import subprocess

import pytest

from tile_sim import build as module
from tile_sim.build import KEPT, can_precompile, precompiled
from tile_sim.toolchain import Compiler, dialect, find_compiler

FLAGS = ("-O1", "-DTWO=2")


@pytest.fixture
def header(tmp_path, monkeypatch):
    """A folder with a header, and a cache of its own."""
    if not can_precompile(find_compiler()):
        pytest.skip("the compiler of this machine is not g++")
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "few.h").write_text("#pragma once\ninline int two() { return TWO; }\n")
    return tmp_path


def included(folder, *flags):
    """Return what g++ says of the headers it used: ``!`` stands before compiled ones."""
    source = folder / "cache" / "source.cpp"
    source.write_text('#include "few.h"\nint four() { return two() + two(); }\n')
    command = [*find_compiler().command, *dialect(), *flags, "-H", "-c", "-o", "/dev/null"]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=True)
    return [line for line in done.stderr.splitlines() if "few.h" in line]


def test_the_compiled_form_is_used(header):
    made = precompiled(find_compiler(), "few.h", [*FLAGS, f"-I{header}"], "one")
    (line,) = included(header, *FLAGS, f"-I{made}", f"-I{header}")
    assert line.startswith("! ")


def test_the_header_is_read_where_its_compiled_form_is_no_use(header):
    made = precompiled(find_compiler(), "few.h", [*FLAGS, f"-I{header}"], "one")
    assert not included(header, "-O1", "-DTWO=3", f"-I{made}", f"-I{header}")[-1].startswith("!")
    (made / "few.h.gch").unlink()
    assert not included(header, *FLAGS, f"-I{made}", f"-I{header}")[-1].startswith("!")


def test_it_is_compiled_once(header, monkeypatch):
    flags = [*FLAGS, f"-I{header}"]
    made = precompiled(find_compiler(), "few.h", flags, "one")

    def refuse(*arguments):
        raise AssertionError(arguments)

    monkeypatch.setattr(module, "precompile", refuse)
    assert precompiled(find_compiler(), "few.h", flags, "one") == made


def test_those_used_last_are_kept(header):
    folders = []
    for number in range(KEPT + 2):
        made = precompiled(find_compiler(), "few.h", [*FLAGS, f"-I{header}"], str(number))
        os.utime(made / "few.h.gch", (number, number))
        folders.append(made)
    assert [folder.exists() for folder in folders] == [False, False] + [True] * KEPT


def test_other_compilers_read_headers():
    assert can_precompile(Compiler(("/usr/bin/g++-12",), "g++-12"))
    assert not can_precompile(Compiler(("/usr/bin/clang++",), "clang++"))
