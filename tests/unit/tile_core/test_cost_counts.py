"""Work is counted exactly, without running anything: closed forms, ragged tails, triangles."""

from __future__ import annotations

import tracemalloc

import pytest

import tile_api.language as T
from support.tiled_gemms import tiled_gemm
from tile_core.cost.arithmetic import arithmetic_of
from tile_core.cost.cost_request import bind_sizes, launches
from tile_core.cost.iteration_spaces import ASSUMED_TRIPS, Axis, Space, as_factor
from tile_core.cost.kernel_work import Work, count_launch, total_traffic
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import call, const
from tile_core.ir.expr import Var


def counted(func, **sizes: int) -> Work:
    """The work of the one launch of a traced function."""
    bound = bind_sizes(func.kernel, sizes)
    ((launch, space),) = launches(func.kernel, bound)
    return count_launch(launch, space)


def traffic(work: Work) -> dict[tuple[str, bool], float]:
    found: dict[tuple[str, bool], float] = {}
    for a in work.accesses:
        key = (a.tensor.name, a.is_write)
        found[key] = found.get(key, 0.0) + a.nbytes
    return found


def gemm(m, n, k):
    return tiled_gemm(m, n, k, block=(64, 32, 16), result="float32")


def up(n: int, unit: int) -> int:
    return -(-n // unit)


@pytest.mark.parametrize("mnk", [(128, 64, 64), (100, 70, 50), (1, 1, 1), (1000, 777, 555)])
def test_a_gemm_counts_what_its_closed_form_says(mnk: tuple[int, int, int]) -> None:
    m, n, k = mnk
    work = counted(gemm(m, n, k))
    rows, columns, steps = up(m, 64), up(n, 32), up(k, 16)
    assert work.products == {"float16": 2 * (rows * 64) * (columns * 32) * (steps * 16)}
    assert traffic(work) == {
        ("A", False): m * k * 2 * columns,
        ("B", False): k * n * 2 * rows,
        ("C", True): m * n * 4,
    }


def test_symbols_take_the_values_they_are_given() -> None:
    m, n, k = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")
    work = counted(gemm(m, n, k), m=100, n=70, k=50)
    assert traffic(work) == traffic(counted(gemm(100, 70, 50)))
    assert work.products == counted(gemm(100, 70, 50)).products


def causal(tokens, block):
    @T.prim_func
    def main(X: T.Tensor((tokens, 8), "float32"), Y: T.Tensor((tokens, 8), "float32")):
        with T.Kernel(T.ceildiv(tokens, block), threads=32) as bx:
            x = T.alloc_fragment((block, 8), "float32")
            y = T.alloc_fragment((block, 8), "float32")
            T.clear(y)
            for k in T.serial(bx + 1):
                T.copy(X[k * block, 0], x)
                for i, j in T.Parallel(block, 8):
                    y[i, j] = y[i, j] + T.exp(x[i, j])
            T.copy(y, Y[bx * block, 0])

    return main


def test_loops_that_depend_on_the_block_are_summed_exactly() -> None:
    blocks, block = 9, 4
    work = counted(causal(blocks * block, block))
    rounds = blocks * (blocks + 1) // 2
    assert traffic(work)["X", False] == rounds * block * 8 * 4
    assert (work.operations, work.functions) == (rounds * block * 8, rounds * block * 8)


def test_rows_past_the_end_are_not_read_by_the_last_of_such_loops() -> None:
    work = counted(causal(34, 4))  # the ninth block has two rows
    whole = sum(4 * (b + 1) for b in range(9)) - 2
    assert traffic(work)["X", False] == whole * 8 * 4


def test_a_broadcast_operand_is_read_once_per_tile() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "float32"),
        bias: T.Tensor((128,), "float32"),
        C: T.Tensor((64, 128), "float32"),
    ):
        with T.Kernel(4, threads=32) as bx:
            for i, j in T.Parallel(16, 128):
                C[bx * 16 + i, j] = A[bx * 16 + i, j] * 2.0 + bias[j]

    work = counted(main)
    assert traffic(work) == {
        ("A", False): 64 * 128 * 4,
        ("bias", False): 4 * 128 * 4,
        ("C", True): 64 * 128 * 4,
    }
    assert work.operations == 2 * 64 * 128


def test_guards_and_branches_cut_what_runs() -> None:
    @T.prim_func
    def main(A: T.Tensor((100,), "float32"), C: T.Tensor((100,), "float32")):
        with T.Kernel(4, threads=32) as bx:
            for i in T.Parallel(32):
                if bx * 32 + i < 90:
                    C[bx * 32 + i] = A[bx * 32 + i] + 1.0

    assert traffic(counted(main)) == {("A", False): 360, ("C", True): 360}


def test_reductions_and_scans_cost_an_operation_for_each_element() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            x = T.alloc_fragment((4, 64), "float32")
            s = T.alloc_fragment((4,), "float32")
            T.copy(A[bx * 4, 0], x)
            T.reduce_absmax(x, s, dim=1)
            T.reduce_sum(x, s, dim=1)
            T.copy(s, C[bx * 4])

    assert counted(main).operations == 8 * 64 * (2 + 1)


def test_loops_that_reduce_read_what_they_add_up() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            s = T.alloc_reducer((4,), "float32")
            T.reducer_init(s)
            for i, j in T.Parallel(4, 64):
                T.reducer_update(s[i], A[bx * 4 + i, j])
            d = T.alloc_fragment((4,), "float32")
            T.finalize_reducer(s, d)
            T.copy(d, C[bx * 4])

    found = counted(main)
    assert traffic(found)["A", False] == 8 * 64 * 4
    assert found.operations >= 8 * 64


def test_what_only_data_tell_is_assumed_and_said() -> None:
    @T.prim_func
    def main(
        N: T.Tensor((4,), "int32"), A: T.Tensor((4, 64), "float32"), C: T.Tensor((4,), "float32")
    ):
        with T.Kernel(4, threads=32) as bx:
            total = T.alloc_fragment((1,), "float32")
            T.clear(total)
            for k in T.serial(N[bx]):
                total[0] = total[0] + A[bx, k]
            C[bx] = total[0]

    work = counted(main)
    assert work.operations == 4 * ASSUMED_TRIPS
    assert [*work.notes] == ["iterations of a loop that depend on data: 16 assumed"]


def test_total_traffic_names_both_directions() -> None:
    assert total_traffic([counted(gemm(64, 32, 16))]) == {
        "global reads": 64 * 16 * 2 + 16 * 32 * 2,
        "global writes": 64 * 32 * 4,
    }


INT32 = dtype_of("int32")


def axis(name: str, count, start=0, step: int = 1, **kind: bool) -> Axis:
    return Axis(Var(name, INT32), start, count, step, **kind)


def test_spaces_multiply_what_is_independent_and_join_what_is_not() -> None:
    i, j = axis("i", 1000), axis("j", 7)
    space = Space({}, (i, j))
    assert space.total() == 7000
    assert space.given(i.var < 10).total() == 70
    assert space.given(i.var < 10, holds=False).total() == 990 * 7
    assert space.total(as_factor(i.var), as_factor(j.var)) == 499500 * 21
    assert space.most(i.var * 2) == 1998


def test_loops_may_begin_at_the_number_of_a_thread() -> None:
    thread = axis("t", 64, is_thread=True)
    loop = axis("k", 128 - thread.var, start=thread.var)
    space = Space({}, (thread, loop))
    assert space.total() == sum(128 - t for t in range(64))
    assert space.given(loop.var < 64).total() == sum(64 - t for t in range(64))
    assert space.total(warp=32) == 128 + 96


def test_triangles_are_exact_and_large_ones_nearly() -> None:
    for n, close in ((200, 0), (3000, 1e-4)):
        i = axis("i", n)
        triangle = Space({}, (i, axis("k", i.var)))
        assert triangle.total() == pytest.approx(n * (n - 1) // 2, rel=close, abs=0)


def test_warps_are_counted_where_one_of_their_threads_is() -> None:
    block, thread = axis("b", 10, is_block=True), axis("t", 100, is_thread=True)
    space = Space({}, (block, thread))
    assert (space.total(), space.total(warp=32)) == (1000, 40)
    some = space.given(thread.var % 64 == 0)
    assert (some.total(), some.total(warp=32)) == (20, 20)
    assert space.given(thread.var >= 32).total(warp=32) == 30
    assert space.given(block.var < 5).total(warp=32) == 20


def test_huge_boxes_are_sampled_evenly() -> None:
    axes = tuple(axis(name, 3000) for name in "ijk")
    space = Space({}, axes).given(axes[0].var + axes[1].var + axes[2].var < 4500)
    assert space.total() == pytest.approx(3000**3 / 2, rel=0.03)


@pytest.mark.parametrize("threads", [1, 1024])
def test_conditions_of_many_variables_take_little_memory(threads: int) -> None:
    axes = (axis("t", threads, is_thread=True), *(axis(f"a{k}", 40) for k in range(6)))
    ahead = sum((a.var for a in axes[1:]), start=axes[0].var)
    space = Space({}, axes).given(ahead < (threads - 1) // 2 + 6 * 20)
    tracemalloc.start()
    try:
        assert space.total() == pytest.approx(threads * 40**6 / 2, rel=0.2)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


def test_backward_loops_and_steps() -> None:
    down = axis("d", 5, start=9, step=-2)  # 9, 7, 5, 3, 1
    assert Space({}, (down,)).total(as_factor(down.var)) == 25


def test_arithmetic_fuses_multiplications_into_additions() -> None:
    x = Var("x", dtype_of("float32"))
    fused = arithmetic_of(x * 2.0 + 1.0)
    assert (fused.operations, fused.instructions) == (2, 1)
    apart = arithmetic_of((x + 1.0) * 2.0)
    assert (apart.operations, apart.instructions) == (2, 2)
    assert arithmetic_of(call("exp2", x)).functions == 1
    assert arithmetic_of(x / 3.0).divisions == 1
    assert arithmetic_of(const(1.0)).operations == 0
