"""Texts and machine code of kernels, written to files."""

from __future__ import annotations

import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget


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
