"""The report of kept guards is true: what it names is there, and what it advises removes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_api as tile
import tile_api.language as T

TARGETS = ["cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942"]
M, N, K = T.dynamic("m, n, k")


def gemm(m: Any = M, n: Any = N, k: Any = K) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=2):
                T.copy(A[by * 64, ko * 32], a)
                T.copy(B[ko * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return main


def scaled(m: Any = M, n: Any = N) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 32), threads=128) as (bx, by):
            for i, j in T.Parallel(32, 64):
                B[by * 32 + i, bx * 64 + j] = A[by * 32 + i, bx * 64 + j] * 2.0

    return main


def row_sums(m: Any = M, n: Any = N) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), S: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 16), threads=128) as by:
            tile = T.alloc_fragment((16, 128), "float32")
            part = T.alloc_fragment((16,), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.clear(total)
            for block in T.serial(T.ceildiv(n, 128)):
                T.copy(A[by * 16, block * 128], tile)
                T.reduce_sum(tile, part, dim=1)
                for i in T.Parallel(16):
                    total[i] += part[i]
            T.copy(total, S[by * 16])

    return main


def first_rows(m: Any = M) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, 64), "float32"), B: T.Tensor((256, 64), "float32")):
        with T.Kernel(8, threads=64) as by:
            for i, j in T.Parallel(32, 64):
                B[by * 32 + i, j] = A[by * 32 + i, j]

    return main


def in_turns(m: Any = M) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, 64), "float32"), B: T.Tensor((m, 64), "float32")):
        with T.Kernel(8, threads=64) as bx:
            for turn in T.serial(T.ceildiv(T.ceildiv(m, 32), 8)):
                for i, j in T.Parallel(32, 64):
                    B[(turn * 8 + bx) * 32 + i, j] = -A[(turn * 8 + bx) * 32 + i, j]

    return main


def filled(n: Any = N) -> Any:
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(n):
                A[i] = 1.0

    return main


def whole(**_: Any) -> Any:
    return gemm(256, 128, 64)


def uneven(**_: Any) -> Any:
    return scaled(100, 128)


KERNELS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (gemm, scaled, row_sums, first_rows, in_turns, filled)
}


def report(func: Any, target: str) -> Any:
    return tile.lower(func, target=target).guards()


def where(guard: Any) -> tuple[int, str, int]:
    return guard.span.line, guard.tensor, guard.axis


@pytest.mark.in_turn(10)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_advised_removes_the_guard(name, target):
    make = KERNELS[name]
    found = report(make(), target)
    assert found, "sizes that nobody promises anything of need guards"
    advice = {}
    for spelling in {g.spelling for g in found}:
        assert spelling is not None
        promised = eval(spelling, {"T": T})
        advice[promised.name] = promised
        left = {where(g) for g in report(make(**{promised.name: promised}), target)}
        for guard in found:
            assert (where(guard) in left) == (guard.spelling != spelling)
    if len(advice) > 1:
        assert not report(make(**advice), target)


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_without_guards(target):
    found = report(whole(), target)
    assert not found
    assert str(found) == "no guards: every access is proven inside"


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_are_fixed(target):
    found = report(uneven(), target)
    assert {(g.axis, g.extent, g.fact) for g in found} == {(0, 100, None)}
    assert "100 is fixed: tiles that divide it need none" in str(found)


def test_how_a_guard_reads():
    (guard,) = (g for g in report(scaled(), "cuda:sm_80") if g.axis == 0)
    line = guard.span.line
    assert guard.condition == "by * 32 + i < m"
    assert str(guard) == (
        f"{__file__}:{line}: B, axis 0: by * 32 + i < m, once for each access; m % 32 == 0 "
        'removes it: T.dynamic("m", multiple_of=32)'
    )


def test_tiles_are_told_by_their_last_element():
    found = {(g.tensor, g.axis): g for g in report(gemm(), "cuda:sm_80")}
    assert found["A", 0].condition == "by * 64 + 63 < m"
    assert found["B", 0].condition == "ko * 32 + 31 < k"
    assert found["C", 1].condition == "bx * 64 + 63 < n"


def test_what_to_write_for_all_of_them():
    found = report(gemm(), "cuda:sm_80")
    assert found.together == (
        'T.dynamic("m", multiple_of=64)',
        'T.dynamic("k", multiple_of=32)',
        'T.dynamic("n", multiple_of=64)',
    )
    assert str(found).endswith("\ntogether: " + ", ".join(found.together))
    assert report(in_turns(), "cuda:sm_80").together == ()


def test_how_often():
    found = {(g.tensor, g.axis): g for g in report(gemm(), "hip:gfx942")}
    assert found["B", 1].how_often == "in every iteration of ko"
    assert found["B", 1].in_steady_loop
    assert found["A", 1].how_often == "only at the edge: the steady loop has none"
    assert not found["A", 1].in_steady_loop
    assert found["C", 0].how_often == "once for each access"


def test_what_is_promised_already_stays_promised():
    m = T.dynamic("m", "int64", min=1, max=4096, multiple_of=8)
    spellings = {g.spelling for g in report(scaled(m=m), "cuda:sm_80") if g.axis == 0}
    assert spellings == {'T.dynamic("m", "int64", min=1, max=4096, multiple_of=32)'}


def test_scalars_are_promised_by_assumptions():
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), count: T.int32):
        with T.Kernel(T.ceildiv(count, 128), threads=128) as bx:
            for i in T.Parallel(128):
                A[bx * 128 + i] = 1.0

    (guard,) = report(main, "cuda:sm_80")
    assert guard.fact == "count <= 1024, count % 128 == 0"
    assert guard.spelling == "T.assume(count <= 1024); T.assume(count % 128 == 0)"


def test_indices_out_of_memory_have_no_way_out():
    @T.prim_func
    def gather(A: T.Tensor((N,), "float32"), at: T.Tensor((64,), "int32"), B: T.Tensor((64,))):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = A[at[i]]

    for target in TARGETS:
        found = report(gather, target)
        assert {(g.tensor, g.fact) for g in found} == {("A", None)}
        assert "no fact about one size removes it" in str(found)


def test_kernels_report_too():
    kernel = tile.compile(scaled(), target="cpu")
    assert [str(g) for g in kernel.guards()] == [str(g) for g in report(scaled(), "cpu")]


def test_on_the_command_line(tmp_path, capsys):
    from tile_api.cli import main as command

    path = tmp_path / "kernels.py"
    path.write_text(
        "import tile_api.language as T\n"
        'n = T.dynamic("n")\n'
        "@T.prim_func\n"
        'def fill(A: T.Tensor((n,), "float32")):\n'
        "    with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:\n"
        "        for i in T.Parallel(64):\n"
        "            A[bx * 64 + i] = 1.0\n"
    )
    assert command(["lower", f"{path}:fill", "--target", "cuda:sm_80", "--guards"]) == 0
    assert capsys.readouterr().out == (
        f"{path}:7: A, axis 0: bx * 64 + i < n, once for each access; n % 64 == 0 removes it: "
        'T.dynamic("n", multiple_of=64)\n'
    )
