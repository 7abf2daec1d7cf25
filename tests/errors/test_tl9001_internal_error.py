"""TL9001: a defect of the compiler itself: please report it."""

from __future__ import annotations

import re
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import tile_api as tile
from tile_api.arrays.own_faults import blamed
from tile_core.errors import InternalError, TileWarning, ToolchainError
from tile_core.plugins.backend import Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.plugins.host import PluginHost
from tile_core.target import parse_target_spec

PROGRAM = """
@T.prim_func
def kernel(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        A[0] = 1.0
"""
EXPECTED = """\
[TL9001] the compiler failed to {phase} the kernel 'kernel' for bad: {cause}
 --> program.py:2:1
  |
2 | def kernel(A: T.Tensor((16,), "float32")):
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: the kernel and the traceback are in FOLDER
hint: report it, made small by `tile reduce FILE:NAME`; meanwhile another tile shape may do"""


class Plugin:
    def __init__(self, backend):
        self.backend = backend

    @hookimpl
    def tile_backends(self):
        return [self.backend]


def fail(*_):
    raise ValueError("Check failed: x == y\n\n  it is false")


def give(value):
    return lambda *_: value


def parse(spec):
    target = parse_target_spec(spec)
    return target if target.kind == "bad" else None


WORKS = Backend(
    name="bad",
    parse_target=parse,
    rules=give(()),
    lower=give("module"),
    source=give(""),
    compile=give("artifact"),
    load=give(print),
)


@pytest.mark.parametrize("phase", ["lower", "compile", "load"])
def test_message(phase, program, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    host = PluginHost()
    host.add("bad", Plugin(replace(WORKS, **{phase: fail})))
    with pytest.raises(InternalError) as caught:
        tile.compile(program(PROGRAM)["kernel"], target="bad", host=host)
    text = str(caught.value)
    folder = re.search(r"traceback are in (.*)", text)[1]
    cause = "ValueError: it is false"
    assert text.replace(folder, "FOLDER") == EXPECTED.format(phase=phase, cause=cause)
    assert isinstance(caught.value.__cause__, ValueError)
    assert "in fail" in Path(folder, "error.txt").read_text()
    assert Path(folder, "kernel.tile").read_text().startswith("kernel kernel(")


def test_warnings_that_the_user_made_errors_of_are_none(program):
    def warn(*_):
        warnings.warn("seven registers were spilled", TileWarning, stacklevel=1)

    host = PluginHost()
    host.add("bad", Plugin(replace(WORKS, compile=warn)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TileWarning, match="seven registers"):
            tile.compile(program(PROGRAM)["kernel"], target="bad", host=host)


@pytest.mark.parametrize("doing", ["written", "compiled"])
def test_nor_are_those_of_functions_of_arrays(doing):
    with pytest.raises(TileWarning, match="seven"), blamed("f", doing, str):
        raise TileWarning("seven registers were spilled")


def refuse(*_):
    raise ToolchainError("the compiler does not accept line 7").of_text()


REFUSED = PROGRAM.replace("A[0] = 1.0", "T.import_source('int own;'); A[0] = 1.0")


def test_text_of_ours_that_a_compiler_refuses(program, monkeypatch, tmp_path):
    """The user cannot do anything about it, so it is no TL5001."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    host = PluginHost()
    host.add("bad", Plugin(replace(WORKS, compile=refuse)))
    with pytest.raises(InternalError) as caught:
        tile.compile(program(PROGRAM)["kernel"], target="bad", host=host)
    text = str(caught.value)
    folder = re.search(r"traceback are in (.*)", text)[1]
    assert text.replace(folder, "FOLDER") == EXPECTED.format(
        phase="compile", cause="the compiler does not accept line 7"
    )
    assert Path(folder, "kernel.tile").read_text().startswith("kernel kernel(")


@pytest.mark.parametrize(
    ("text", "flags"), [(REFUSED, []), (PROGRAM, ["-DX"])], ids=["text", "flags"]
)
def test_what_users_bring_may_be_refused(program, text, flags):
    host = PluginHost()
    host.add("bad", Plugin(replace(WORKS, compile=refuse)))
    with pytest.raises(ToolchainError, match="line 7"):
        tile.compile(program(text)["kernel"], target="bad", host=host, compile_flags=flags)


def test_what_tvm_does_not_accept(program, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("tile_cpu.toolchain._passes", fail)
    with pytest.raises(InternalError, match=r"TVM could not compile for .*: it is false"):
        tile.compile(program(PROGRAM)["kernel"], target="cpu")


def test_what_the_host_compiler_does_not_accept(program, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("tile_sim.toolchain._DIALECT", ("-include", "no-such-header.h"))
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    with pytest.raises(InternalError, match="does not accept") as caught:
        tile.compile(program(PROGRAM)["kernel"], target="cuda:sm_80@sim")
    assert caught.value.notes[0].text.startswith("the kernel and the traceback are in ")
