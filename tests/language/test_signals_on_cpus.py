"""Signals between ranks in compiled code: order, sleep, and what happens if they never come."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.rank_processes import run_in_processes
from support.rank_programs import (
    HANDED_ON,
    compiled,
    handed_on,
    in_a_part,
    interrupted,
    killed_inside,
)
from tile_core.errors import (
    ArgumentTypeError,
    DeviceAssertError,
    RankLost,
    RankMismatch,
    RankTimeout,
)
from tile_core.ir.parser import parse_kernel
from tile_core.ops.operator_table import OPERATORS


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_ring_of_threads(size):
    found = tile.ranks.in_threads(size, lambda ranks: handed_on(ranks, 4))
    assert found == [(rank - 4) % size for rank in range(size)]


def test_a_ring_of_processes(tmp_path):
    assert run_in_processes(tmp_path, 3, handed_on, 4) == [2, 0, 1]


def test_a_wait_takes_what_it_waited_for():
    kernel = compiled(HANDED_ON.replace("value=1)\n    @copy", "value=1, takes=true)\n    @copy"))
    left = []

    def main(ranks):
        a, b, f = ranks.zeros(8), np.zeros(8, "float32"), ranks.signals(4)
        watched = f.ranks.launch

        def launch(what, signals):
            left.append(f)
            return watched(what, [])  # and does not set them to zero

        f.ranks.launch = launch
        for _ in range(3):
            kernel(a, b, f)
        return f.local.tolist()

    assert tile.ranks.in_threads(2, main) == [[0, 0, 0, 0]] * 2
    assert len(left) == 6


MISSING = HANDED_ON.replace("value=1)\n    @copy", "value=2)\n    @copy")


def test_a_signal_that_never_comes():
    kernel = compiled(MISSING)

    def main(ranks):
        a, b, f = ranks.zeros(8), np.zeros(8, "float32"), ranks.signals(4)
        with pytest.raises(RankTimeout) as caught:
            kernel(a, b, f)
        with pytest.raises(RankTimeout):
            kernel(a, b, f)
        return caught.value.message

    first, second = tile.ranks.in_threads(2, main, timeout=3)
    assert first == second
    assert first[:6] == "rank 0" or first[:6] == "rank 1"
    assert first[6:] == " has waited 3 s for signal 2 to come to 2"


def test_a_rank_that_is_killed_in_a_kernel(tmp_path):
    names = set(os.listdir("/dev/shm"))
    lost, code = run_in_processes(tmp_path, 2, killed_inside, MISSING, timeout=60)
    assert not [name for name in set(os.listdir("/dev/shm")) - names if "tile" in name]
    assert lost.startswith("[TL6102] rank 1 is lost: process ")
    assert "note: rank 0 waited for signal 2 to come to 2" in lost
    assert code == -signal.SIGKILL


def test_other_kernels_and_other_tensors_are_refused():
    kernel, other = compiled(HANDED_ON), compiled(MISSING)

    def main(ranks, mistake):
        a, c, f = ranks.zeros(8), ranks.zeros(8), ranks.signals(4)
        b, odd = np.zeros(8, "float32"), ranks.rank == 1
        call = other if odd and mistake == "kernel" else kernel
        call(c if odd and mistake == "tensor" else a, b, f)

    for mistake in ("kernel", "tensor"):
        with pytest.raises(
            RankMismatch, match=r"wants: kernel handed_on \(\w{12}\) on float32 \[8"
        ):
            tile.ranks.in_threads(2, lambda ranks, what=mistake: main(ranks, what))


def test_arguments_of_one_rank_that_are_wrong_end_all():
    kernel = compiled(HANDED_ON)

    def main(ranks):
        a, f = ranks.zeros(8), ranks.signals(4)
        b = np.zeros(8, "float32" if ranks.rank else "float64")
        with pytest.raises(RankLost if ranks.rank else RuntimeError) as caught:
            kernel(a, b, f)
        return caught.value.message.partition(":")[0]

    assert tile.ranks.in_threads(2, main) == ["handed_on.B.dtype", "rank 0 stopped"]


def test_tensors_of_two_groups():
    kernel = compiled(HANDED_ON)

    def main(ranks):
        again = tile.ranks.in_threads(1, lambda alone: alone.signals(4))[0]
        kernel(ranks.zeros(8), np.zeros(8, "float32"), again)

    with pytest.raises(ArgumentTypeError, match="two groups of ranks"):
        tile.ranks.in_threads(1, main)


def test_arguments_by_name():
    kernel = compiled(HANDED_ON)

    def main(ranks):
        b = np.full(8, 5, "float32")
        kernel(F=ranks.signals(4), B=b, A=ranks.zeros(8))
        return b[0]

    assert tile.ranks.in_threads(1, main) == [5]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("cpu:haswell", ("sfence", "lock", "pause")),
        ("cpu:neoverse-v2", ("dmb", "ldadd", "yield")),
    ],
)
def test_signals_come_after_stores_past_the_caches(target, words):
    kernel = tile.compile(parse_kernel(HANDED_ON, OPERATORS, str), target=target)
    code = kernel.asm
    places = [re.search(rf"^\s+{word}", code, re.M).start() for word in words]
    assert places[0] < places[1]


def test_an_interrupt_ends_a_wait(tmp_path):
    first, second = run_in_processes(tmp_path, 2, interrupted, MISSING, timeout=60)
    assert first.startswith("[TL6102] rank 1 stopped: KeyboardInterrupt\n")
    assert second == "interrupted"


def test_an_assertion_that_fails_inside_ends_all():
    @T.prim_func
    def kernel(X: T.Tensor((4,), "int32"), F: T.Signals((1,))):
        with T.Kernel(1):
            T.device_assert(X[0] == 0, "no zero")
            T.signal(F.at((T.rank() + 1) % T.ranks())[0])
            T.wait_signal(F[0])

    compiled_kernel = tile.compile(kernel, target="cpu")

    def main(ranks):
        with pytest.raises(RankLost if ranks.rank else DeviceAssertError) as caught:
            compiled_kernel(np.full(4, ranks.rank == 0, "int32"), ranks.signals(1))
        return caught.value.message

    told = "device assertion failed: no zero"
    assert tile.ranks.in_threads(2, main) == [told, f"rank 0 stopped: DeviceAssertError: {told}"]


def test_the_line_of_a_wait_that_was_in_vain():
    @T.prim_func
    def kernel(F: T.Signals((1,))):
        with T.Kernel(3) as bx:
            for _ in T.serial(2):
                if bx == 1:
                    T.wait_signal(F[0])

    compiled_kernel = tile.compile(kernel, target="cpu")

    def main(ranks):
        with pytest.raises(RankTimeout) as caught:
            compiled_kernel(ranks.signals(1))
        return str(caught.value)

    (text,) = tile.ranks.in_threads(1, main, timeout=1)
    assert text.startswith("[TL6103] rank 0 has waited 1 s for signal 0 to come to 1\n")
    assert "T.wait_signal(F[0])\n" in text


def test_a_group_of_some_processes(tmp_path):
    assert run_in_processes(tmp_path, 3, in_a_part, by_torch=True) == [None, [4, 8], [4, 8]]
