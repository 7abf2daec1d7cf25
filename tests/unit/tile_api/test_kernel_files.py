"""Texts and machine code of kernels, written to files."""

from __future__ import annotations

import copy

import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnknownName, UnsupportedOnTarget
from tile_core.simt.resources import Resources


@T.prim_func
def fill(A: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(16):
            A[i] = 1.0


def test_a_library_of_the_cpu(tmp_path) -> None:
    kernel = tile.compile(fill, target="cpu")
    kernel.export_library(tmp_path / "fill.so")
    assert (tmp_path / "fill.so").read_bytes().startswith(b"\x7fELF")
    assert kernel.adapter is kernel
    with pytest.raises(UnsupportedOnTarget, match="have no ptx"):
        kernel.show_ptx()


def test_interpreted_kernels_are_no_machine_code(tmp_path) -> None:
    kernel = tile.compile(fill, target="interpret")
    with pytest.raises(UnsupportedOnTarget, match="cannot be saved"):
        kernel.export_library(tmp_path / "fill.so")


@pytest.mark.parametrize("kind", ["ptx", "sass"])
def test_texts(
    kind: str, tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = tile.compile(fill, target="interpret")
    monkeypatch.setattr(type(kernel), kind, property(lambda self: f"// {kind}"))
    getattr(kernel, f"export_{kind}")(tmp_path / "text")
    getattr(kernel, f"show_{kind}")()
    assert (tmp_path / "text").read_text() == capsys.readouterr().out == f"// {kind}"


def test_registers_and_spills_of_gpus() -> None:
    kernel = tile.compile(fill, target="cuda:sm_80")
    (needs,) = kernel.resources.values()
    assert kernel.n_regs == needs.registers > 0
    assert kernel.n_spills == 0
    spilling = {"a": Resources(name="a", registers=40, spill_stores=12), "b": Resources(name="b")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(kernel), "resources", property(lambda self: spilling))
        assert (kernel.n_regs, kernel.n_spills) == (40, 3)
    with pytest.raises(UnsupportedOnTarget, match="have no resources"):
        _ = tile.compile(fill, target="cpu").n_regs


def test_names_that_kernels_have_not() -> None:
    kernel = tile.compile(fill, target="cpu")
    with pytest.raises(UnknownName) as caught:
        _ = kernel.libpath
    assert caught.value.message == "a kernel has no 'libpath'"
    assert caught.value.hint == "kernel.export_library(path) writes the machine code"
    with pytest.raises(UnknownName) as caught:
        _ = kernel.show_sources
    assert caught.value.hint == "did you mean show_source?"
    assert not hasattr(kernel, "__array__")
    assert copy.copy(kernel).target == "cpu"


def test_what_an_attribute_raises_itself_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object) -> str:
        raise AttributeError("inside")

    kernel = tile.compile(fill, target="cpu")
    monkeypatch.setattr(type(kernel), "asm", property(broken))
    with pytest.raises(AttributeError, match=r"^inside$"):
        _ = kernel.asm
