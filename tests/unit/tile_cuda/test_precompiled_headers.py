"""Headers that NVRTC keeps in compiled form: the same code, and never more than read again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.cuda_header import printed
from tile_core.toolchains import runtime_compiler
from tile_cuda.compiler import header_texts
from tile_cuda.nvrtc_library import PRECOMPILES, Nvrtc, installed, nvrtc_options

NVRTCS = [n for n in installed() if n.version >= PRECOMPILES] or [
    pytest.param(None, marks=pytest.mark.skip("no NVRTC keeps headers"))
]
LEFT_BEHIND = "F[tid] = tile::exp2(F[tid]) + {n};"


@pytest.fixture(params=NVRTCS, ids=lambda n: ".".join(map(str, n.version)) if n else "none")
def nvrtc(request: pytest.FixtureRequest) -> Nvrtc:
    """Every NVRTC that can, in a process that has compiled nothing."""
    for process in runtime_compiler._waiting.get(request.param.library, []):
        process.end()
    return request.param


def compile_for(nvrtc: Nvrtc, body: str, *flags: str, **headers: str):
    options = nvrtc_options("sm_80", nvrtc.toolkit.include, flags)
    return nvrtc.compile(printed(body).text, "kernel.cu", options, {**header_texts(), **headers})


def folders(nvrtc: Nvrtc) -> list[Path]:
    """Return where the process that compiles keeps headers."""
    (process,) = [p for p in runtime_compiler._waiting[nvrtc.library] if p.is_alive()]
    return [Path(folder) for folder in process._folders.values() if folder]


def test_what_comes_again_is_kept_and_gives_the_same_code(nvrtc):
    bodies = [LEFT_BEHIND.format(n=n) for n in (1, 2, 1)]
    first, _, third = (compile_for(nvrtc, body) for body in bodies)
    assert any(folders(nvrtc)[0].iterdir())
    assert (third.code, third.assembly) == (first.code, first.assembly)
    assert "pch" not in third.log.lower()


def test_what_comes_once_is_not_kept(nvrtc):
    for number in range(3):
        compile_for(nvrtc, "", f"-DNUMBER={number}")
    assert folders(nvrtc) == []


def test_other_headers_are_others(nvrtc):
    more = {"tile.h": header_texts()["tile.h"] + "\n#define MORE 5\n"}
    for _ in range(3):
        assert compile_for(nvrtc, "I[tid] = MORE;", **more).is_accepted
        assert not compile_for(nvrtc, "I[tid] = MORE;").is_accepted
    assert len(folders(nvrtc)) == 2


def test_mistakes_are_told_as_ever(nvrtc):
    told = {compile_for(nvrtc, "I[tid] = tile::nothing();").log for _ in range(3)}
    assert len(told) == 1
    assert "kernel.cu(5): error" in told.pop()


def test_headers_are_read_where_the_folder_is_gone(nvrtc):
    for _ in range(2):
        compile_for(nvrtc, "")
    shutil.rmtree(folders(nvrtc)[0])
    assert compile_for(nvrtc, "").is_accepted


def test_few_are_kept_and_none_at_the_end(nvrtc, monkeypatch):
    monkeypatch.setattr(runtime_compiler, "_FORMS", 2)
    seen = set()
    for number in range(3):
        for _ in range(2):
            compile_for(nvrtc, "", f"-DNUMBER={number}")
        seen |= set(folders(nvrtc))
    assert len(seen) == 3
    assert sorted(folder.exists() for folder in seen) == [False, True, True]
    runtime_compiler._waiting[nvrtc.library][0].end()
    assert not any(folder.exists() for folder in seen)
