"""Barriers: where hazards between threads are, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tile_api.language as T
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import For, If, Kernel, Launch
from tile_core.ir.verify import verify
from tile_core.machine import SimtMachine
from tile_core.ops.control import Barrier
from tile_core.passes.insert_barriers import insert_barriers
from tile_core.passes.plan_pipelines import plan_pipelines

MACHINE = SimtMachine(
    name="sm_80", family="cuda", shared_bytes=166912, features=frozenset({"async_copy"})
)


def launch_of(kernel: Kernel) -> Launch:
    (launch,) = [n for n in walk(kernel) if isinstance(n, Launch)]
    return launch


def synchronised(kernel: Kernel) -> Kernel:
    made = replace(kernel, body=insert_barriers(launch_of(kernel)))
    verify(made)
    return made


def outline(kernel: Kernel) -> list[str]:
    """Return the statements of the body by their first word, indented."""
    words = []
    for line in print_kernel(synchronised(kernel)).splitlines()[2:]:
        text = line.strip()
        if text and not text.startswith("alloc"):
            depth = (len(line) - len(text)) // 2 - 2
            words.append("  " * depth + text.split("(")[0].split(" ")[0].rstrip(":").lstrip("@"))
    return words


def test_a_tile_used_twice() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "int32")
            T.copy(A[0, 0:64], S)
            T.copy(S, B[0, 0:64])
            T.copy(A[1, 0:64], S)
            T.copy(S, B[1, 0:64])

    copies = ["copy", "barrier"] * 3 + ["copy"]
    assert outline(main.kernel) == copies


def test_halves_that_do_not_meet() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "int32")
            T.copy(A[0:32], S[0:32])
            T.copy(A[32:64], S[32:64])
            T.copy(S, B)

    assert outline(main.kernel) == ["copy", "copy", "barrier", "copy"]


def test_register_tiles_and_other_tensors_need_none() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((64,), "int32")
            T.copy(A, F)
            for i in T.Parallel(64):
                F[i] += 1
            T.copy(F, B)

    assert "barrier" not in outline(main.kernel)


def test_a_tensor_that_the_block_writes_and_reads() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((64,), "int32")
            T.copy(A, F)
            T.copy(F, B)
            for i in T.Parallel(64):
                F[i] += B[63 - i]
            T.copy(F, A)

    assert outline(main.kernel) == [
        "copy", "copy", "barrier", "parallel", "  F[i]", "copy",
    ]  # fmt: skip


def test_what_happened_before_a_loop_waits_before_it() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((8, 64), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "int32")
            T.copy(A, S)
            for k in range(8):
                T.copy(S, B[k, 0:64])

    assert outline(main.kernel) == ["copy", "barrier", "for", "  copy"]


def test_rows_of_a_loop_are_apart() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 64), "int32"), B: T.Tensor((8, 64), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "int32")
            for k in range(8):
                T.copy(A[k, 0:64], S[k, 0:64])
            for k in range(8):
                T.copy(S[7 - k, 0:64], B[k, 0:64])

    assert outline(main.kernel) == ["for", "  copy", "barrier", "for", "  copy"]


def test_a_row_that_the_next_round_reads() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 64), "int32"), B: T.Tensor((8, 64), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((9, 64), "int32")
            for k in range(8):
                T.copy(S[k, 0:64], B[k, 0:64])
                T.copy(A[k, 0:64], S[k + 1, 0:64])

    assert outline(main.kernel) == ["for", "  barrier", "  copy", "  copy"]


def test_names_of_indices_do_not_hide_the_round() -> None:
    """`at` is 64 more in each round: the part written now was read one round ago."""

    @T.prim_func
    def main(A: T.Tensor((1024,), "int32"), B: T.Tensor((1024,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((1024,), "int32")
            for k in range(8):
                at = k * 64
                T.copy(S[at + 64 : at + 128], B[at : at + 64])
                T.copy(A[at : at + 64], S[at : at + 64])

    assert outline(main.kernel).count("  barrier") == 1


def test_branches_that_all_threads_take_together() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(2, threads=64) as bx:
            S = T.alloc_shared((64,), "int32")
            T.copy(A, S)
            if bx < n:
                T.copy(S, B)
            T.clear(S)

    assert outline(main.kernel) == [
        "copy", "if", "  barrier", "  copy", "barrier", "fill",
    ]  # fmt: skip


def test_branches_that_threads_take_apart_hold_none() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            T.copy(A, S)
            if tx < 32:
                B[tx] = S[63 - tx]

    assert outline(main.kernel) == ["copy", "barrier", "if", "  B[tx]"]


def test_conditions_of_loops_wait_too() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "int32")
            T.copy(A, S)
            while S[0] > 0:
                for i in T.Parallel(64):
                    S[i] -= 1
            T.copy(S, B)

    made = outline(main.kernel)
    assert made == [
        "copy", "barrier", "while", "  barrier", "  parallel", "    S[i]", "  barrier",
        "copy",
    ]  # fmt: skip


def test_atomics_do_not_wait_for_each_other() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4,), "int32")
            T.clear(S)
            for i in T.Parallel(64):
                T.atomic_add(S[A[i] % 4], 1)
            for i in T.Parallel(64):
                T.atomic_add(S[A[i] % 2], 1)
            T.copy(S, B)

    kinds = [w for w in outline(main.kernel) if not w.startswith(" ")]
    assert kinds == ["fill", "barrier", "parallel", "parallel", "barrier", "copy"]


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_pipelined_product_has_one_barrier_per_round(stages: int, folded: bool) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 512), "float16"),
        B: T.Tensor((512, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for k in T.Pipelined(16, num_stages=stages):
                T.copy(A[0, k * 32], A_s)
                T.copy(B[k * 32, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    made = synchronised(plan_pipelines(main.kernel, MACHINE, folded=folded))
    (loop,) = [n for n in walk(made) if isinstance(n, For)]
    steady = barriers(loop.body)
    assert steady == 1
    assert barriers(made) == (steady if folded else steady + stages - 1)
    inside = [n for n in walk(loop.body) if isinstance(n, If)]
    assert [barriers(n) for n in inside] == ([0] if folded else [])


def barriers(root: object) -> int:
    return sum(isinstance(n, Barrier) for n in walk(root))  # type: ignore[arg-type]


def test_tiles_that_share_bytes() -> None:
    """Where the plan of memory puts one tile in another's place, a barrier is between them."""
    from tile_core.analysis.memory_access import MemoryAccess

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "int32")
            R = T.alloc_shared((64,), "int32")
            T.copy(A, S)
            T.copy(S, B)
            T.copy(A, R)

    class BufferAddresses:
        """Every tile is its own flat buffer."""

        def flat(self, tile: object) -> object:
            return tile

    tiles = [n.buffer for n in walk(main.kernel) if type(n).__name__ == "Alloc"]
    launch = launch_of(main.kernel)
    apart = insert_barriers(launch, BufferAddresses(), {tiles[0]: 0, tiles[1]: 256})
    above = insert_barriers(launch, BufferAddresses(), {tiles[0]: 0, tiles[1]: 128})
    assert (barriers(apart), barriers(above)) == (1, 2)

    def same(a: MemoryAccess, b: MemoryAccess) -> bool:
        return a.storage.name == "S"

    own = insert_barriers(launch, BufferAddresses(), {tiles[0]: 0, tiles[1]: 128}, same)
    assert barriers(own) == 1


def test_nothing_to_do() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            T.clear(A)

    launch = launch_of(main.kernel)
    assert insert_barriers(launch) is launch
