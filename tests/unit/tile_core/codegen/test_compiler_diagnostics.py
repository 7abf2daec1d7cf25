"""Where compilers' complaints belong in the user's program."""

from __future__ import annotations

import pytest

from support.scale_kernel import scale_source
from tile_core.codegen import PrintedSource
from tile_core.codegen.compiler_diagnostics import (
    Complaint,
    line_of_kernel,
    refusal_of,
    span_of,
    with_line_directives,
)
from tile_core.errors import Span


@pytest.fixture
def source() -> PrintedSource:
    return scale_source()


def test_line_directives(source):
    assert with_line_directives(source, "kernel.cu").splitlines() == [
        '#include "tile.h"',
        "",
        '#line 1 "<source 1>"',
        "__device__ float twice(float x) {",
        "  return 2.0f * x;",
        "}",
        '#line 6 "kernel.cu"',
        "",
        "// scale for sm_80",
        '#line 3 "program.py"',
        "TILE_KERNEL(128, 1) void scale(tile::gptr<float> A) {",
        '#line 9 "kernel.cu"',
        "  const int tid = threadIdx.x;",
        '#line 5 "program.py"',
        "  A[tid] = twice(A[tid]);",
        '#line 11 "kernel.cu"',
        "}",
        "TILE_EXPORT(scale)",
    ]


@pytest.mark.parametrize(
    ("file", "line", "span"),
    [
        ("program.py", 5, Span("program.py", 5, 19, 58)),  # the compiler knows the user's line
        ("program.py", 77, None),
        ("kernel.cu", 9, Span("program.py", 3, 9, 33)),  # a line that the printer added
        ("kernel.cu", 6, None),  # behind C text, before the kernel
        ("<source 1>", 2, None),  # C text has no place in the program
    ],
)
def test_spans(source, file, line, span):
    assert span_of(source, "kernel.cu", Complaint("no", (), file, line)) == span


def test_the_first_complaint_gives_place_and_hint(source):
    complaints = [Complaint(f"wrong {n}", (f"  line {n}",), "/at/program.py", n) for n in range(7)]
    complaints[0] = Complaint("wrong", (), "program.py", 3)
    error = refusal_of(source, "kernel.cu", "x refuses:", complaints, lambda c: f"about {c.line}")
    assert error.span == Span("program.py", 3, 9, 33)
    assert error.hint == "about 3"
    lines = error.message.splitlines()
    assert lines[:4] == [
        "x refuses:",
        "program.py:3: error: wrong",
        "program.py:1: error: wrong 1",
        "  line 1",
    ]
    assert lines[-1] == "and 2 more"


@pytest.mark.parametrize(
    ("file", "words"), [("<source 2>", "lines are counted"), ("kernel.cu", "get_kernel_source")]
)
def test_a_hint_there_is_always(source, file, words):
    error = refusal_of(source, "kernel.cu", "no:", [Complaint("", (), file, 1)], lambda c: None)
    assert words in error.hint


def test_where_a_kernel_begins(source):
    assert line_of_kernel(source, "scale") == 8
    assert line_of_kernel(source, "other") == 1
