"""TL8403: a name of TileLang outside its language has no counterpart."""

from __future__ import annotations

from pathlib import Path

import pytest

import tile_api.tilelang as tilelang
from tile_api.tilelang import install
from tile_core.errors import UnsupportedName


def text_of(error: UnsupportedName) -> str:
    """Return the message without the excerpt of this file."""
    lines = str(error).splitlines()
    return "\n".join(line for line in lines if line.startswith(("[", "hint", "note")))


def test_a_pass() -> None:
    with pytest.raises(UnsupportedName) as caught:
        tilelang.transform.LayoutInference()
    assert text_of(caught.value) == (
        "[TL8403] tilelang.transform.LayoutInference is a pass of another compiler, whose "
        "programs are not the ones of this one\n"
        "hint: look at a kernel between the passes of this one: "
        "tile.lower(func, target).ir('planned')"
    )
    assert caught.value.span is not None
    assert Path(caught.value.span.file).name == Path(__file__).name


def test_a_hook_on_source() -> None:
    with install("cuda:sm_80@sim"), pytest.raises(UnsupportedName) as caught:
        tilelang.register_cuda_postproc(lambda code, target: code)
    assert str(caught.value) == (
        "[TL8403] tilelang.register_cuda_postproc changes the source of kernels, which are kept "
        "by their programs\n"
        "hint: read it with kernel.get_kernel_source(); pass compile_flags=, or call your own "
        "code with T.import_source and T.call_extern"
    )
