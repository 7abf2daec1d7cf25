"""Loops, launches and allocations as they appear in tile IR."""

from __future__ import annotations

import pytest

import tile_api.language as T
from support.printed import body
from tile_core.errors import FrontendTypeError, FrontendValueError, ParallelBodyError, ScopeError
from tile_core.ir.node import walk
from tile_core.ir.stmt import Parallel, Pipelined


def test_parallel_pipelined_and_grid():
    n = T.dynamic("n")

    @T.prim_func
    def f(A: T.Tensor((8, 8), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1) as bx:
            for i, j in T.Parallel(8, n, coalesced_width=4):
                A[i, j] = 1
            for k in T.Pipelined(n, num_stages=3):
                B[k] = 0
            for k in T.Pipelined(2, 6, order=[0, 1], stage=[0, 0]):
                B[k] = 0
                B[k] = 1
            for i, j in T.grid(8, 4):
                A[i, j] = 2

    assert body(f) == [
        "parallel i: int32, j: int32 in (8, n) width 4:",
        "  A[i, j] = 1",
        "pipelined k: int32 in range(0, n) stages 3:",
        "  B[k] = 0",
        "pipelined k_1: int32 in range(2, 6) stages 0 order [0, 1] stage [0, 0]:",
        "  B[k_1] = 0",
        "  B[k_1] = 1",
        "for i_1: int32 in range(0, 8, 1) serial:",
        "  for j_1: int32 in range(0, 4, 1) serial:",
        "    A[i_1, j_1] = 2",
    ]


def test_directly_nested_parallel_loops_are_one():
    @T.prim_func
    def f(A: T.Tensor((8, 8, 8), "int32")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(8):
                for j in T.Parallel(4):
                    for k in T.Parallel(2):
                        A[i, j, k] = 1

    (loop,) = [node for node in walk(f.kernel) if isinstance(node, Parallel)]
    assert [v.name for v in loop.vars] == ["i", "j", "k"]


@pytest.mark.parametrize(
    ("statements", "text"),
    [
        (["T.clear(S)"], "the tile operator 'fill'"),
        (["T.copy(A, S)"], "the tile operator 'copy'"),
        (["A[i] = 0", "for j in T.Parallel(4):", "    A[j] = 1"], "nested directly"),
        (["for k in T.Pipelined(4):", "    A[k] = 1"], "T.Pipelined cannot stand inside"),
        (["Q = T.alloc_shared((4,), 'int32')"], "the tile 'Q' cannot be allocated"),
        (["for k in T.serial(4):", "    if A[k] > 0:", "        T.clear(S)"], "'fill'"),
    ],
)
def test_what_a_parallel_body_may_not_contain(statements, text, kernel_from):
    lines = "\n                        ".join(statements)
    with pytest.raises(ParallelBodyError, match=text) as caught:
        kernel_from(f"""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                with T.Kernel(1) as bx:
                    S = T.alloc_shared((8,), "int32")
                    for i in T.Parallel(8):
                        {lines}
        """)
    assert caught.value.span.line >= 7
    assert caught.value.notes[0].span.line == 6


def test_scalar_copies_in_parallel_loops_are_stores():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(8):
                T.copy(A[i], B[i])
                for k in T.serial(2):
                    B[i] += k

    assert body(f)[1] == "  B[i] = cast[float32](A[i])"


def test_reducers_are_updated_element_by_element():
    @T.prim_func
    def f(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            acc = T.alloc_reducer((8,), "float32", "max")
            T.reducer_init(acc)
            for i, j in T.Parallel(8, 8):
                T.reducer_update(acc[i], A[i, j])
            T.finalize_reducer(acc, B)

    assert body(f)[3].strip().startswith("@reducer_update(reducer=acc, kind=MAX")


def test_persistent_loops_visit_their_tiles_once():
    """Evaluate the coordinates of every tile: together they cover the domain exactly."""
    seen = {}

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(3) as bx:
            for m, n in T.Persistent([3, 5], 3, bx, group_size=2):
                seen.update(m=m, n=n)
                A[0] = m + n

    lines = body(f)
    assert lines[0] == "for wave: int32 in range(0, 5, 1) serial:"
    assert lines[1] == "  let tile: int32 = bx + wave * 3"
    assert lines[2] == "  if tile < 15:"
    text = {line.split()[1][:-1]: line.split(" = ")[1] for line in lines[3:5]}
    points = [tuple(eval(text[v], {"tile": t, "min": min}) for v in ("m", "n")) for t in range(15)]
    assert sorted(points) == [(m, n) for m in range(3) for n in range(5)]


def test_scheduler_objects():
    @T.prim_func
    def f(A: T.Tensor((8, 8), "int32")):
        with T.Kernel(2) as bx:
            tiles = T.PersistentTileScheduler(4, 4, swizzle_size=3)
            tiles.init(bx)
            while tiles.valid():
                A[tiles.m_idx, tiles.n_idx] = tiles.current_iter
                tiles.next_tile()

    text = f.script()
    assert "while linear_idx[0] < 16:" in text
    assert "linear_idx[0] = linear_idx[0] + 2" in text
    assert "A[m_idx[0], n_idx[0]] = current_iter[0]" in text


def test_introspection_of_a_launch():
    seen = {}

    @T.prim_func
    def f(A: T.Tensor((8, 8), "int32")):
        with T.Kernel(4, 2, threads=(32, 2)) as (bx, by):
            seen["threads"] = T.get_thread_extents()
            seen["blocks"] = T.get_block_extents()
            seen["same"] = T.get_block_binding(1) is by
            launch = T.KernelLaunchFrame.Current()
            seen["frame"] = launch.threads
            A[bx, by] = T.get_thread_binding(1)

    assert seen == {"threads": [32, 2, 1], "blocks": [4, 2], "same": True, "frame": (32, 2, 1)}
    assert body(f) == ["A[bx, by] = ty"]
    assert T.KernelLaunchFrame.Current() is None


def test_allocations():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        work = T.alloc_global((4, 4), "float32")
        with T.Kernel(1) as bx:
            s = T.alloc_shared((4, 8), T.float16)
            b = T.alloc_shared(32, bool)
            r = T.alloc_fragment(1, "float")
            p = T.alloc_local([2, 3], "int8")
            v = T.alloc_var(T.int32, "local.var")
            w = T.alloc_var("float32", 1, "local.var")
            d = T.alloc_reducer((4,), "float32", "max")
            mbar = T.alloc_barrier([128, 1])

    assert "alloc work: global float32[4, 4] workspace" in f.script()
    assert body(f) == [
        "alloc mbar: shared.barrier uint64[2]",
        "@barrier_init(barriers=mbar, counts=[128, 1])",
        "@barrier()",
        "alloc s: shared float16[4, 8]",
        "alloc b: shared bool[32]",
        "alloc r: local.fragment float32[1]",
        "alloc p: local int8[2, 3]",
        "alloc v: local.var int32[1]",
        "alloc w: local.var float32[1]",
        "w[0] = 1.0",
        "alloc d: local.reducer float32[4]",
    ]


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("T.alloc_shared((n, 4), 'float32')", FrontendTypeError, "known only at run time"),
        ("T.alloc_shared((4.5,), 'float32')", FrontendTypeError, "must be an integer"),
        ("T.alloc_shared((-4,), 'float32')", FrontendValueError, "negative"),
        ("T.alloc_shared((4,), 'floaty')", FrontendTypeError, "not an element type"),
        ("T.alloc_shared((4,), 'float32', 'sharde')", FrontendValueError, "no memory scope"),
        ("T.alloc_var('float32', 1e40)", FrontendValueError, "cannot be represented in float32"),
        ("T.alloc_var('int8', 200)", FrontendValueError, "cannot be represented in int8"),
        ("T.alloc_reducer((4,), 'float32', 'bitor')", FrontendValueError, "works on integers"),
        ("T.alloc_reducer((4,), 'float32', 'mean')", FrontendValueError, "cannot compute"),
        ("T.alloc_barrier(0)", FrontendValueError, "arrival count"),
    ],
)
def test_refused_allocations(statement, error, text, kernel_from):
    with pytest.raises(error, match=text) as caught:
        kernel_from(f"""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32"), n: T.int32):
                with T.Kernel(1) as bx:
                    x = {statement}
        """)
    assert (caught.value.span.line, caught.value.span.col) == (5, 12)


def test_tiles_are_allocated_in_the_launch_where_there_is_one(kernel_from):
    with pytest.raises(ScopeError, match=r"T\.alloc_shared can only be used inside"):
        kernel_from("""
            @T.prim_func
            def f(A: T.Tensor((8,), "int32")):
                S = T.alloc_shared((8,), "int32")
                with T.Kernel(1):
                    T.copy(A, S)
        """)


def test_two_launches_in_order():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(8) as bx:
            A[bx] = 1
        with T.Kernel(4) as bx:
            A[bx] = 2

    assert [line.split(" threads")[0] for line in f.script().splitlines() if "launch" in line] == [
        "  launch bx: int32 in (8)",
        "  launch bx_1: int32 in (4)",
    ]


def test_manual_schedules_reach_the_ir():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            for k in T.Pipelined(8, order=[1, 0], stage=[0, 1]):
                A[k] = 0
                A[k] = 1

    (loop,) = [node for node in walk(f.kernel) if isinstance(node, Pipelined)]
    assert (loop.order, loop.stage) == ((1, 0), (0, 1))


@pytest.mark.parametrize(("asked", "found"), [(0, 2), (3, 3)])
def test_schedules_of_groups_are_found_anew(asked: int, found: int):
    """The form of older TileLang programs: an entry for each group of statements."""

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            for k in T.Pipelined(
                8, num_stages=asked, order=[-1, 0], stage=[-1, 1], group=[[0], [1, 2]]
            ):
                A[k] = 0
                A[k] = 1
                A[k] = 2

    (loop,) = [node for node in walk(f.kernel) if isinstance(node, Pipelined)]
    assert (loop.num_stages, loop.order, loop.stage) == (found, (), ())
