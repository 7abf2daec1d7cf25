"""Which products go on beside other work of their threads, and which are waited for at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tile_api as tile
import tile_api.language as T
from support.remarked import remarked
from support.ring_kernels import dequantised, scaled
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import For, If, Kernel, OnThreads, Stmt
from tile_core.ir.verify import verify
from tile_core.machine import SimtMachine
from tile_core.ops.control import Barrier, PingPongOrder
from tile_core.ops.copy import Fill
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import BarrierArrive, SetRegisters
from tile_core.passes import overlap_gemms as overlap
from tile_core.passes.overlap_gemms import overlap_gemms, zero_init_accumulators
from tile_core.passes.specialise_warps import specialise_warps
from tile_cuda.machine import machine

HOPPER = machine("sm_90a")


KEEPS_REGISTERS = replace(HOPPER, features=HOPPER.features - {"register_reallocation"})


def split(function: Any, on: SimtMachine = HOPPER) -> Kernel:
    """Return a kernel with producers, all products waited for where they stand."""
    kernel = specialise_warps(function.kernel, on)
    assert kernel is not function.kernel
    return kernel


def done(function: Any, on: SimtMachine = HOPPER, **limits: int) -> Kernel:
    """Return what becomes of a kernel; its invariants hold."""
    made = overlap_gemms(split(function, on), lambda op: True, **limits)
    verify(made)
    return made


def ends_with_its_round(function: Any, on: SimtMachine = HOPPER, **limits: int) -> bool:
    """Whether a loop is as it was, and all its products are over at the end of each round."""
    kernel = done(function, on, **limits)
    names = {n.name for n in walk(kernel.body) if isinstance(n, Buffer)}
    if len([n for n in walk(kernel.body) if isinstance(n, For) and found(n, Gemm)]) != 1:
        return False
    loop = main_loop(kernel)
    waits = [w.pending for w in found(loop, WaitProducts)]
    waited = all(g.wg_wait == 0 for g in found(loop, Gemm)) or waits[-1:] == [0]
    return waited and not any(name.endswith("_2") for name in names)


def found(stmt: Any, kind: type) -> list[Any]:
    return [n for n in walk(stmt) if isinstance(n, kind)]


def main_loop(kernel: Kernel) -> For:
    """Return the loop that holds the products."""
    (loop,) = (n for n in walk(kernel.body) if isinstance(n, For) and found(n, Gemm))
    return loop


def body_of(loop: For) -> tuple[Stmt, ...]:
    return loop.body.body  # type: ignore[union-attr]


def product(*, stages: int = 3, rounds: int = 8, touches: str = "") -> Any:
    """Return a product of tiles, with something that touches its sums or factors in each round."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64 * rounds), "float16"),
        B: T.Tensor((64, 64 * rounds), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            own = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.clear(sums)
            T.clear(own)
            for k in T.Pipelined(rounds, num_stages=stages):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[0, k * 64], B_s)
                if touches == "sums":
                    for i, j in T.Parallel(64, 64):
                        sums[i, j] *= 2.0
                if touches == "a part of a tile":
                    for i in T.Parallel(64):
                        own[i, 0] = T.cast(k, "float16")
                if touches == "a condition":
                    if k > 2:
                        T.gemm(A_s, B_s, sums, transpose_B=True)
                else:
                    T.gemm(A_s, B_s, sums, transpose_B=True)
                if touches == "a part of a tile":
                    T.gemm(A_s, own, sums, transpose_B=True)
                if touches == "print":
                    T.print(sums[0, 0])
            T.copy(sums, C)

    return kernel


# Left in flight -------------------------------------------------------------------------------


def test_a_product_goes_on_into_the_next_round() -> None:
    """It is waited for once the next one has begun; then its tiles are given back."""
    kernel = done(product())
    loop = main_loop(kernel)
    (gemm,) = found(loop, Gemm)
    assert gemm.wg_wait == -1
    assert [w.pending for w in found(loop, WaitProducts)] == [1]
    assert isinstance(body_of(loop)[-1], If)
    assert len(found(body_of(loop)[-1], BarrierArrive)) == 1
    assert [w.pending for w in found(kernel.body, WaitProducts)] == [1, 0]


@pytest.mark.parametrize("touches", ["sums", "a part of a tile", "a condition", "print"])
def test_products_whose_registers_or_tiles_are_touched_are_waited_for(touches: str) -> None:
    """Nothing proves that another round does not see what is touched."""
    assert ends_with_its_round(product(touches=touches))


def test_products_that_block_their_threads_are_left_alone() -> None:
    made = remarked(overlap_gemms, split(product()), lambda op: False)
    assert made.notes == ()
    kernel = made.kernel
    assert [g.wg_wait for g in found(kernel.body, Gemm)] == [0]
    assert not found(kernel.body, WaitProducts)


# One round late -------------------------------------------------------------------------------


def attention(*, threads: int = 256) -> Any:
    """Return attention of 128 queries, the sums of one product a factor of the other."""

    @T.prim_func
    def kernel(
        Q: T.Tensor((128, 64), "float16"),
        K: T.Tensor((512, 64), "float16"),
        V: T.Tensor((512, 64), "float16"),
        O: T.Tensor((128, 64), "float16"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            Q_s = T.alloc_shared((128, 64), "float16")
            K_s = T.alloc_shared((64, 64), "float16")
            V_s = T.alloc_shared((64, 64), "float16")
            scores = T.alloc_fragment((128, 64), "float32")
            weights = T.alloc_fragment((128, 64), "float16")
            out = T.alloc_fragment((128, 64), "float32")
            T.copy(Q, Q_s)
            T.clear(out)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(K[k * 64, 0], K_s)
                T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
                T.copy(V[k * 64, 0], V_s)
                for i, j in T.Parallel(128, 64):
                    scores[i, j] = T.exp2(scores[i, j])
                T.copy(scores, weights)
                T.gemm(weights, V_s, out)
            T.copy(out, O)

    return kernel


def test_the_second_product_starts_a_round_late() -> None:
    """In the steady state both products begin before anything is computed."""
    loop = main_loop(done(attention()))
    gemms = found(loop, Gemm)
    assert [g.c.buffer.name for g in gemms] == ["scores", "out"]
    assert [g.wg_wait for g in gemms] == [-1, -1]
    order = [type(s) for s in body_of(loop) if isinstance(s, (Gemm, WaitProducts))]
    assert order == [Gemm, Gemm, WaitProducts, WaitProducts]
    assert [w.pending for w in found(loop, WaitProducts)] == [1, 0]


@pytest.mark.parametrize(("threads", "steps"), [(256, 3), (128, 0)])
def test_two_groups_take_turns(threads: int, steps: int) -> None:
    kernel = done(attention(threads=threads))
    assert len(found(kernel.body, PingPongOrder)) == steps


# Two versions ---------------------------------------------------------------------------------


def test_factors_made_anew_have_two_versions() -> None:
    """The loop goes two rounds at a time, each on a version of its own."""
    kernel = done(dequantised(9).function)
    loop = next(n for n in walk(kernel.body) if isinstance(n, For) and found(n, Gemm))
    assert [g.a.buffer.name for g in found(loop, Gemm)] == ["W_f", "W_f_2"]
    assert (loop.start.value, loop.stop.value, loop.step.value) == (0, 8, 2)  # type: ignore[attr-defined]
    assert [w.pending for w in found(loop, WaitProducts)] == [1, 1]
    assert not found(loop, Barrier)
    assert [g.a.buffer.name for g in found(kernel.body, Gemm)] == ["W_f", "W_f_2", "W_f"]


def test_tiles_made_anew_are_read_by_all_before_they_are_written() -> None:
    """Threads write what products of other threads read: all wait for all of these."""
    loop = main_loop(done(dequantised(8, scope="shared").function))
    assert [g.a.buffer.name for g in found(loop, Gemm)] == ["W_f", "W_f_2"]
    behind = [
        body_of(loop)[k + 1] for k, s in enumerate(body_of(loop)) if isinstance(s, WaitProducts)
    ]
    assert [type(s) for s in behind] == [Barrier, Barrier]


def test_sums_begun_anew_have_two_versions() -> None:
    """What uses them stands behind the next round's product."""
    kernel = done(scaled(9, stages=2).function)
    loop = main_loop_of_two(kernel)
    assert [g.c.buffer.name for g in found(loop, Gemm)] == ["step_2", "step"]
    assert (loop.start.value, loop.stop.value, loop.step.value) == (1, 9, 2)  # type: ignore[attr-defined]
    first = next(k for k, s in enumerate(body_of(loop)) if isinstance(s, Gemm))
    used = [
        {b.name for b in walk(s) if getattr(b, "name", "") in ("step", "step_2")}
        for s in body_of(loop)[first + 1 :]
        if not isinstance(s, Gemm)
    ]
    assert [names for names in used if names] == [{"step"}, {"step_2"}]


def main_loop_of_two(kernel: Kernel) -> For:
    return next(n for n in walk(kernel.body) if isinstance(n, For) and len(found(n, Gemm)) == 2)


@pytest.mark.parametrize("begun", ["before", "behind"])
def test_sums_that_are_cleared_apart(begun: str) -> None:
    """Cleared before the product, or behind their use for the next round's: begun anew."""
    kernel = done(scaled(9, stages=2, begun=begun).function)
    gemms = found(main_loop_of_two(kernel), Gemm)
    assert [g.c.buffer.name for g in gemms] == ["step_2", "step"]
    assert [bool(g.clear.value) for g in gemms] == [begun == "behind"] * 2
    cleared = [f.dst.buffer.name for f in found(kernel.body, Fill)]
    assert ("step" in cleared) is (begun == "before")


def cleared_behind(*, value: float = 0, first: float = 0, mistake: str = "") -> Any:
    """Return a product of steps that are cleared behind their use, or nearly so."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 512), "float16"),
        B: T.Tensor((64, 512), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            step = T.alloc_fragment((64, 64), "float32")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            T.fill(step, first)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[0, k * 64], B_s)
                if mistake == "used before":
                    for i, j in T.Parallel(64, 64):
                        total[i, j] += step[i, j]
                T.gemm(A_s, B_s, step, transpose_B=True)
                if mistake == "changed":
                    for i, j in T.Parallel(64, 64):
                        step[i, j] *= 2.0
                for i, j in T.Parallel(64, 64):
                    total[i, j] += step[i, j] * 3.0
                if mistake == "in some rounds":
                    if k > 2:
                        T.fill(step, value)
                else:
                    T.fill(step, value)
            if mistake == "used later":
                for i, j in T.Parallel(64, 64):
                    total[i, j] += step[i, j]
            T.copy(total, C)

    return kernel


def products_set_their_sums(function: Any) -> bool:
    made = zero_init_accumulators(split(function), lambda op: True)
    verify(made)
    return any(bool(g.clear.value) for g in found(made.body, Gemm))


def test_products_begin_sums_that_are_zero() -> None:
    assert products_set_their_sums(cleared_behind())


@pytest.mark.parametrize(
    "function",
    [
        cleared_behind(value=0.5),
        cleared_behind(first=0.5),
        *(
            cleared_behind(mistake=mistake)
            for mistake in ("used before", "changed", "in some rounds", "used later")
        ),
    ],
)
def test_sums_that_may_be_something_else_are_added_to(function: Any) -> None:
    assert not products_set_their_sums(function)


def test_products_of_threads_are_not_changed() -> None:
    kernel = split(cleared_behind())
    assert zero_init_accumulators(kernel, lambda op: False) is kernel


def test_versions_must_fit_into_registers() -> None:
    """64 x 64 float32 sums of 128 threads are 32 registers, twice that with the total."""
    function = scaled(8).function
    threads = 256
    enough = (3 * 32 + 32 + 7) // 8 * 8 * threads
    assert not ends_with_its_round(function, KEEPS_REGISTERS, registers=enough)
    assert ends_with_its_round(function, KEEPS_REGISTERS, registers=enough - 8 * threads)


@pytest.mark.parametrize("taken", [120, 128])
def test_versions_must_fit_into_what_consumers_take(taken: int) -> None:
    kernel = split(scaled(8).function)

    def rule(node: Node) -> Node:
        is_taken = isinstance(node, SetRegisters) and node.is_increase
        return replace(node, count=taken) if is_taken else node

    made = overlap_gemms(rewrite(kernel, rule), lambda op: True, registers=65536)
    names = {n.name for n in walk(made.body) if isinstance(n, Buffer)}
    assert any(name.endswith("_2") for name in names) == (taken == 128)


def test_versions_must_fit_into_shared_memory() -> None:
    function = dequantised(8, scope="shared").function
    enough = 2 * (64 * 64 * 2 + 64 * 32) + 2 * 64 * 64 * 2 + 1024
    assert not ends_with_its_round(function, shared_bytes=enough)
    assert ends_with_its_round(function, shared_bytes=enough - 1)


def used_later(where: str) -> Any:
    """Return a product with a factor that is made in each round, and looked at elsewhere."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 512), "float16"),
        W: T.Tensor((64, 512), "uint8"),
        C: T.Tensor((64, 64), "float32"),
        D: T.Tensor((64, 64), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            W_s = T.alloc_shared((64, 64), "uint8")
            W_f = T.alloc_fragment((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.clear(sums)
            if where == "in a part":
                T.clear(W_f)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                T.copy(W[0, k * 64], W_s)
                if where == "in a part":
                    for i, j in T.Parallel(64, 32):
                        W_f[i, j] = T.cast(W_s[i, j], "float16")
                else:
                    for i, j in T.Parallel(64, 64):
                        W_f[i, j] = T.cast(W_s[i, j], "float16")
                T.gemm(W_f, A_s, sums, transpose_B=True)
                if where == "behind the product":
                    for i, j in T.Parallel(64, 64):
                        W_f[i, j] = W_f[i, j] + T.float16(1)
            T.copy(sums, C)
            if where == "behind the loop":
                T.copy(W_f, D)

    return kernel


@pytest.mark.parametrize("where", ["in a part", "behind the loop"])
def test_factors_that_last_are_not_versioned(where: str) -> None:
    """A version would lack what another round, or the last one, left in it."""
    assert ends_with_its_round(used_later(where))


def test_what_changes_a_factor_behind_its_product_comes_later() -> None:
    """The next round's product has begun by then, on the other version."""
    kernel = done(used_later("behind the product"))
    assert [g.wg_wait for g in found(kernel.body, Gemm)] == [-1] * 4


def test_producers_run_no_products() -> None:
    kernel = done(dequantised(9).function)
    producer = next(n for n in walk(kernel.body) if isinstance(n, OnThreads) and n.first)
    assert not found(producer, (Gemm, WaitProducts))  # type: ignore[arg-type]


# What was chosen ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "chosen"),
    [
        (product(), overlap.GOES_ON),
        (attention(threads=128), overlap.STARTS_LATE),
        (attention(threads=256), overlap.PING_PONG),
        (dequantised(9).function, overlap.ALTERNATES),
        (product(touches="sums"), overlap.ENDS),
    ],
    ids=["goes on", "late", "in turns", "alternates", "ends"],
)
def test_a_remark_tells_which_schedule_a_loop_has_got(function: Any, chosen: str) -> None:
    kernel = split(function)
    (note,) = remarked(overlap_gemms, kernel, lambda op: True).notes
    assert note.message == chosen
    loops = [n.span for n in walk(kernel.body) if isinstance(n, For) and found(n, Gemm)]
    assert loops == [note.span]


def test_the_remarks_of_a_kernel_tell_how_its_products_overlap() -> None:
    notes = tile.lower(attention(), target="cuda:sm_90a").remarks("analysis", "overlap_gemms")
    assert [note.message for note in notes].count(overlap.PING_PONG) == 1
