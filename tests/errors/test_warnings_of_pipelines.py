"""Why a pipelined loop does not overlap its iterations: what is told, and at which line."""

from __future__ import annotations

import linecache
import warnings
from dataclasses import replace

import pytest

import tile_api.language as T
from support.mistakes import FILE, names_of_programs
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Break, If, Pipelined, Seq
from tile_core.passes.plan_pipelines import PipelineWarning, plan_pipelines
from tile_cuda.machine import machine

PIPELINE = """\
@T.prim_func
def kernel(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        for k in T.Pipelined(4, num_stages=2):
            {}
tile.lower(kernel, target="cuda:sm_80")
"""
COPY, BACK = "T.copy(A[k * 64 : k * 64 + 64, :], a)", "T.copy(a, B[k * 64 : k * 64 + 64, :])"
WARNINGS = [
    (
        "a loop that waits itself",
        "float16",
        [COPY, "T.ptx_wait_group(0)", BACK],
        7,
        "the loop itself waits for copies",
    ),
    (
        "a loop that starts copies itself",
        "float16",
        ["T.async_copy(A[k * 64 : k * 64 + 64, :], a)", BACK],
        6,
        "the loop itself starts asynchronous copies",
    ),
    (
        "another safe value",
        "float16",
        ["T.annotate_safe_value({A: 1.0})", COPY, BACK],
        6,
        "a safe value is set inside of it",
    ),
    (
        "a loop without copies",
        "float16",
        ["T.clear(a)", BACK],
        5,
        "no T.copy in it brings a tile of shared memory that it uses later",
    ),
    (
        "a copy that converts",
        "float32",
        [COPY, BACK],
        6,
        "this copy cannot run ahead: it converts elements",
    ),
    (
        "a copy that would overtake a store",
        "float16",
        [COPY, BACK, "A[k * 64 + 64, 0] = 1.0"],
        6,
        "this copy cannot run ahead: it would exchange line 8 and line 6, 1 iteration apart: "
        "both touch 'A'",
    ),
]


@pytest.mark.parametrize(
    ("dtype", "lines", "place", "told"), [w[1:] for w in WARNINGS], ids=[w[0] for w in WARNINGS]
)
def test_why_a_pipelined_loop_runs_round_after_round(
    dtype: str, lines: list[str], place: int, told: str
) -> None:
    text = PIPELINE.format(("\n" + " " * 12).join(lines)).replace(
        '64), "float16"), B', f'64), "{dtype}"), B'
    )
    linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        exec(compile(text, FILE, "exec", dont_inherit=True), names_of_programs())
    assert [(w.filename, w.lineno, str(w.message)) for w in found] == [
        (FILE, place, f"a pipelined loop does not overlap its iterations: {told}")
    ]


def test_a_loop_that_is_left_in_the_middle() -> None:
    """The language refuses `break` there; kernels that were read from text may have it."""

    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 64 : k * 64 + 64, :], a)
                T.copy(a, B[k * 64 : k * 64 + 64, :])

    def broken(node: Node) -> Node:
        if not isinstance(node, Pipelined):
            return node
        return replace(node, body=Seq((node.body, If(node.var > 2, Break(), None))))

    with pytest.warns(PipelineWarning) as found:
        plan_pipelines(rewrite(kernel.kernel, broken), machine("sm_80"))
    assert [str(w.message) for w in found] == [
        "a pipelined loop does not overlap its iterations: its iterations can be left in the middle"
    ]
