"""The device header in compiled form: the same code, and never more than read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hip_header import printed
from support.toolchain import clang_for
from tile_hip import clang as compilation
from tile_hip.clang import options_of, precompiled_header

ARCH = "gfx942"
BODY = "F[tid] = tile::exp2(F[tid]) + {n};"


@pytest.fixture
def clang(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compilation, "_made", {})
    return clang_for(ARCH)


def made() -> list[Path]:
    """Return the files of headers that were compiled."""
    return [Path(options[-1]) for options in compilation._made.values() if options]


def test_what_comes_again_is_kept_and_gives_the_same_code(clang):
    texts = [printed(BODY.format(n=n)).text for n in (1, 2, 1)]
    outputs = [clang.build(text, ARCH, ("-Wall",)) for text in texts]
    assert outputs[0].is_accepted
    assert outputs[2] == outputs[0]
    assert outputs[1].assembly != outputs[0].assembly
    (header,) = made()
    assert header.exists()


def test_what_comes_once_is_not_kept(clang):
    for number in range(2):
        assert clang.build(printed("").text, ARCH, (f"-DNUMBER={number}",)).is_accepted
    assert made() == []


def test_what_precedes_the_header_is_read_before_it(clang):
    text = "#define assert(x) static_assert(x)\n" + printed("").text
    outputs = [clang.build(text, ARCH, ()) for _ in range(3)]
    assert outputs[2] == outputs[0]
    assert compilation._made == {}


def test_mistakes_are_told_as_ever(clang):
    told = {clang.build(printed("F[tid] = tile::nothing();").text, ARCH, ()).log for _ in range(3)}
    assert len(told) == 1
    assert "error: no member named 'nothing'" in told.pop()


def test_the_header_is_read_where_its_compiled_form_is_gone(clang):
    text = printed(BODY.format(n=3)).text
    first, _ = (clang.build(text, ARCH, ()) for _ in range(2))
    made()[0].unlink()
    assert clang.build(text, ARCH, ()) == first


def test_a_header_of_which_something_is_said_is_read(clang):
    options = options_of(ARCH, ("-Weverything",))
    assert [precompiled_header(clang.command, options) for _ in range(3)] == [(), (), ()]
    assert [precompiled_header(("/bin/none",), options) for _ in range(2)] == [(), ()]
