"""Tiles across ranks: what kernels compute, on all ranks at once and under many orders."""

import runpy

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support import rank_kernels, ranks_in_one
from tile_core.errors import (
    FrontendTypeError,
    FrontendValueError,
    IndexMismatch,
    SignatureError,
    UndefinedOperation,
    UnsupportedForm,
    UnsupportedOnTarget,
)
from tile_core.interp.execution_state import InterpretOptions
from tile_core.interp.launch import interpret
from tile_core.ir.printer import print_kernel
from tile_core.ir.verify import verify

KERNELS = {
    name: getattr(rank_kernels, name)
    for name in (
        *("gather_by_pull", "gather_by_push", "reduced_in_two_shots", "ring", "exchanged"),
        "added_up",
    )
}
SIZES = (rank_kernels.M, rank_kernels.N, rank_kernels.K)


def interpreted(**options):
    def call(kernel, args):
        interpret(kernel.kernel, args, options=InterpretOptions(**options))

    return call


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", KERNELS)
def test_results_in_every_order(name, ranks):
    orders = [("forward", 0), ("reverse", 0), *(("random", seed) for seed in range(6))]
    for order, seed in orders:
        call = interpreted(block_order=order, seed=seed)
        ranks_in_one.run(KERNELS[name], name, ranks, SIZES, call)


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_of_all_ranks_is_an_ordinary_one(name):
    verify(KERNELS[name].kernel)
    made = tile.ranks_as_blocks(KERNELS[name])
    verify(made.kernel)
    assert [p.name for p in KERNELS[name].params[-2:]] == ["rank", "ranks"]
    assert not {"rank", "ranks", "F", "C_"} & {p.name for p in made.params}


@pytest.mark.parametrize("name", KERNELS)
def test_programs_of_tiles_that_are_printed(name, tmp_path):
    """The text is a program of the same kernel."""
    lowered = tile.lower(KERNELS[name], target="cuda:sm_80")
    text = lowered.source(tier="developer")
    (tmp_path / "printed.py").write_text(text)
    again = runpy.run_path(str(tmp_path / "printed.py"))[name]
    assert print_kernel(again.kernel) == print_kernel(KERNELS[name].kernel)
    assert "T.Symmetric(" in text
    assert "ranks: T.int32" not in text


def test_regions_and_elements_that_are_printed():
    @T.prim_func
    def kernel(
        A: T.Symmetric((4, 8), "float32"), N: T.Symmetric((4,), "int32"), F: T.Signals((4,))
    ):
        with T.Kernel(4, threads=32) as bx:
            row = T.alloc_fragment((8,), "float32")
            T.copy(A.at(1)[bx, :], row)
            T.copy(row, A[bx, 0])
            T.atomic_add(N.at(0)[bx], N[bx])
            T.wait_signal(F[bx], 2, takes=True)

    text = tile.lower(kernel, target="cuda:sm_80").source(tier="developer")
    assert "T.copy(A.at(1)[bx : bx + 1, 0:8], row)" in text
    assert "T.copy(row, A[bx, 0])" in text
    assert "T.atomic_add(N.at(0)[bx], N[bx])" in text
    assert "T.wait_signal(F[bx], 2, takes=True)" in text
    with refused(UnsupportedForm, "cannot be written"):
        made = tile.lower(tile.ranks_as_blocks(kernel), target="cuda:sm_80")
        made.source(tier="developer")


def test_blocks_of_a_cluster_know_what_each_of_them_knew():
    @T.prim_func
    def kernel(A: T.Symmetric((2,), "int32"), B: T.Tensor((2,), "int32"), F: T.Signals((1,))):
        with T.Kernel(2, threads=32, cluster_dims=2) as bx:
            after = (T.rank() + 1) % T.ranks()
            A.at(after)[bx] = bx + 10 * T.rank()
            T.cluster_sync()
            if bx == 0:
                T.signal(F.at(after)[0])
                T.wait_signal(F[0])
            T.cluster_sync()
            B[bx] = A[1 - bx]

    a, b = (np.zeros((3, 2), "int32") for _ in range(2))
    tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(a, b)
    np.testing.assert_array_equal(b, [[21, 20], [1, 0], [11, 10]])


def test_waits_that_take_what_they_waited_for():
    @T.prim_func
    def kernel(F: T.Signals((2,)), A: T.Symmetric((1,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            after = (T.rank() + 1) % T.ranks()
            before = (T.rank() + T.ranks() - 1) % T.ranks()
            for k in T.serial(4):
                A.at(after)[0] = T.rank() * 10 + k
                T.signal(F.at(after)[0])
                T.wait_signal(F[0], takes=True)
                B[k] = A[0]
                T.signal(F.at(before)[1])
                T.wait_signal(F[1], takes=True)

    a, b = np.zeros((3, 1), "int32"), np.zeros((3, 4), "int32")
    tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(a, b)
    np.testing.assert_array_equal(b, np.array([[20], [0], [10]]) + np.arange(4))


def test_grids_of_three_dimensions_and_two_launches():
    @T.prim_func
    def kernel(A: T.Symmetric((2, 3, 4), "int32"), B: T.Tensor((2, 3, 4), "int32")):
        with T.Kernel(2, 3, 4, threads=32) as (x, y, z):
            A[x, y, z] = x * 100 + y * 10 + z + T.rank() * 1000
        with T.Kernel(2, 3, 4, threads=32) as (x, y, z):
            B[x, y, z] = A[x, y, z] + T.ranks()

    a, b = (np.zeros((3, 2, 3, 4), "int32") for _ in range(2))
    tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(a, b)
    r, x, y, z = np.indices(b.shape)
    np.testing.assert_array_equal(b, x * 100 + y * 10 + z + r * 1000 + 3)


def test_programs_of_threads_signal_as_blocks():
    @T.prim_func
    def kernel(A: T.Symmetric((64,), "int32"), B: T.Tensor((64,), "int32"), F: T.Signals((1,))):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            A[tx] = tx + T.rank() * 100
            T.signal(F.at((T.rank() + 1) % T.ranks())[0])
            T.wait_signal(F[0], 1)
            B[tx] = A.at((T.rank() + T.ranks() - 1) % T.ranks())[63 - tx]

    a, b = (np.zeros((3, 64), "int32") for _ in range(2))
    tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(a, b)
    np.testing.assert_array_equal(b, (63 - np.arange(64)) + np.array([[200], [0], [100]]))


def test_what_the_frontend_says_of_symmetric_tensors():
    seen = {}

    @T.prim_func
    def kernel(A: T.Symmetric((4, 8), "float16"), F: T.Signals((2, 3))):
        with T.Kernel(1, threads=32):
            seen["A"] = (A.shape, A.ndim, str(A.dtype), A.strides, A.scope(), A.name)
            seen["F"] = (F.shape, F.strides, repr(F.at(0)))
            T.fill(A, 1)

    assert seen["A"] == ((4, 8), 2, "float16", (8, 1), "global", "A")
    assert seen["F"] == ((2, 3), (48, 16), "<symmetric tensor F: uint32[2, 3]>")
    text = kernel.script()
    assert "A: global float16[ranks, 4, 8] strides [A_stride, 8, 1]" in text
    assert "F: global.signals uint32[ranks, 2, 3] strides [F_stride, 48, 16]" in text
    assert "assume rank < ranks" in text


# What is refused -----------------------------------------------------------------------------


def refused(error, match):
    return pytest.raises(error, match=match)


def test_waiting_for_the_flag_of_another_rank():
    with refused(FrontendValueError, "waits for its own flags") as told:

        @T.prim_func
        def kernel(F: T.Signals((1,))):
            with T.Kernel(1, threads=32):
                T.wait_signal(F.at(0)[0], 1)

    assert "T.wait_signal(F.at(0)[0], 1)" in str(told.value)


@pytest.mark.parametrize("where", ["if", "while", "for"])
def test_signals_where_only_some_threads_come(where):
    with refused(UndefinedOperation, "whole block signals") as told:

        @T.prim_func
        def kernel(F: T.Signals((1,)), A: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32):
                tx = T.get_thread_binding()
                if where == "if":
                    if tx == 0:
                        T.signal(F[0])
                elif where == "while":
                    while A[tx] > 0:
                        T.signal(F[0])
                else:
                    for _ in T.serial(tx):
                        T.wait_signal(F[0])

    assert "(F[0])" in str(told.value)


def test_conditions_of_the_block_and_the_rank_are_fine():
    @T.prim_func
    def kernel(F: T.Signals((1,)), A: T.Tensor((32,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            if bx == 0 and T.rank() < T.ranks() - 1:
                T.signal(F.at(T.rank() + 1)[0])
            if bx == 0 and T.rank() > 0:
                T.wait_signal(F[0])

    tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(np.zeros((3, 32), "int32"))


@pytest.mark.parametrize(
    "rank", [lambda: T.rank() + 1, lambda: -1, lambda: T.ranks(), lambda: T.rank() - T.ranks()]
)
def test_ranks_that_there_are_not(rank):
    with refused(IndexMismatch, "there is no rank"):

        @T.prim_func
        def kernel(A: T.Symmetric((4,), "float32"), B: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                T.copy(A.at(rank()), B)


def test_a_rank_that_only_data_show_to_be_wrong_stops_the_kernel():
    @T.prim_func
    def kernel(A: T.Symmetric((4,), "int32"), N: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            row = T.alloc_fragment((4,), "int32")
            T.clear(row)
            T.copy(row, A.at(N[0]))

    n = np.array([[1], [2]], "int32")
    with pytest.raises(Exception, match="there is no rank"):
        tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(np.zeros((2, 4), "int32"), n)


@pytest.mark.parametrize(
    ("body", "error", "match"),
    [
        (lambda A, F: T.copy(F, A), FrontendTypeError, "holds signals, which are not read"),
        (lambda A, F: A.__setitem__(0, F[0]), FrontendTypeError, "holds signals"),
        (lambda A, F: T.signal(A[0]), FrontendTypeError, "one flag of a parameter"),
        (lambda A, F: T.signal(F), FrontendTypeError, "one flag of a parameter"),
        (lambda A, F: T.barrier_ranks(A[0]), FrontendTypeError, "takes signals"),
        (lambda A, F: T.signal(F[7]), IndexMismatch, "outside dimension 0"),
        (lambda A, F: T.signal(F[0], 0), FrontendValueError, "at least 1"),
        (lambda A, F: A.at(1.5), FrontendTypeError, "a rank is an integer"),
    ],
)
def test_signals_are_no_numbers_and_numbers_no_signals(body, error, match):
    with refused(error, match):

        @T.prim_func
        def kernel(A: T.Symmetric((4,), "uint32"), F: T.Signals((4,))):
            with T.Kernel(1, threads=32):
                body(A, F)


@pytest.mark.parametrize("form", ["if", "name", "loop"])
def test_a_barrier_that_only_some_ranks_reach(form):
    with refused(UndefinedOperation, "where not all of them come equally often") as told:

        @T.prim_func
        def kernel(F: T.Signals((1,))):
            with T.Kernel(1, threads=32):
                if form == "loop":
                    for _ in T.serial(T.rank()):
                        T.barrier_ranks(F)
                else:
                    last = T.rank() == T.ranks() - 1 if form == "name" else T.rank() > 1
                    if last:
                        T.clear(T.alloc_fragment((4,), "int32"))
                    else:
                        T.barrier_ranks(F)

    assert "T.barrier_ranks(F)" in str(told.value)


def test_barriers_in_branches_of_blocks_and_data():
    @T.prim_func
    def kernel(F: T.Signals((4,)), A: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            if bx < 2 and A[bx] > 0:
                T.barrier_ranks(F)

    tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(np.ones((3, 4), "int32"))


def test_names_of_what_kernels_are_given():
    with refused(SignatureError, "name of what kernels across ranks are given"):

        @T.prim_func
        def kernel(A: T.Symmetric((4,), "float32"), rank: T.int32):
            with T.Kernel(1, threads=32):
                A[0] = rank

    with refused(SignatureError, "name of what kernels across ranks are given"):

        @T.prim_func
        def other(A: T.Tensor((4,), "int32"), rank: T.int32, ranks: T.int32):
            with T.Kernel(1, threads=32):
                A[0] = rank + ranks


def test_declarations_of_vectors():
    with refused(FrontendTypeError, "not vectors"):
        T.Symmetric((4,), "float32x2")


def test_kernels_of_which_there_is_none_for_all_ranks():
    @T.prim_func
    def plain(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            T.clear(A)

    with refused(FrontendTypeError, "asks for no rank"):
        tile.ranks_as_blocks(plain)
    with refused(FrontendTypeError, "a kernel is needed"):
        tile.ranks_as_blocks(lambda: None)

    @T.prim_func
    def together(A: T.Symmetric((4,), "float32")):
        with T.Kernel(2, threads=32):
            T.sync_grid()
            T.clear(A)

    with refused(UnsupportedForm, "wait for each other"):
        tile.ranks_as_blocks(together)

    @T.prim_func
    def ragged(A: T.Symmetric((4,), "float32")):
        with T.Kernel(T.rank() + 1, threads=32):
            T.clear(A)

    with refused(UnsupportedForm, "number of blocks depends"):
        tile.ranks_as_blocks(ragged)


def test_cpus_run_no_blocks_of_several_ranks():
    with refused(UnsupportedOnTarget, "blocks of the CPU run one after the other"):
        tile.compile(tile.ranks_as_blocks(KERNELS["ring"]), target="cpu")


def test_the_interpreter_runs_no_rank_alone():
    @T.prim_func
    def kernel(F: T.Signals((1,)), A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            T.signal(F[0])
            T.clear(A)

    flags, a = np.zeros((1, 16), "uint32")[:, :1], np.zeros(4, "int32")
    with refused(UnsupportedOnTarget, "runs all ranks of a kernel at a time"):
        interpret(kernel.kernel, [flags, a, 0, 1])
