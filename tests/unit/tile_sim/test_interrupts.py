"""A kernel that hangs can be interrupted, and the process lives on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_sim import checking


@T.prim_func
def waits(A: T.Tensor((64,), "int32"), n: T.int32):
    with T.Kernel(2, threads=32) as bx:
        tx = T.get_thread_binding()
        i = T.alloc_var("int32", n)
        while i != 0:  # in registers alone: the runtime never hears of it
            i = (i * 5 + 2) | 1
        while A[bx * 32 + tx] == 9:
            T.sync_threads()
        A[bx * 32 + tx] = i + 1


@pytest.fixture(params=[True, False], ids=["interrupts", "resumes"])
def what_signals_do(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let SIGINT interrupt calls of the system, or resume them: some libraries in C see to that."""
    signal.siginterrupt(signal.SIGINT, request.param)
    yield
    signal.siginterrupt(signal.SIGINT, True)


@pytest.mark.in_turn(3)
@pytest.mark.usefixtures("what_signals_do")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("filled", "n"), [(9, 0), (0, 1)], ids=["polls", "computes"])
def test_a_signal_ends_the_launch(filled: int, n: int, threads: int) -> None:
    kernel = tile.compile(waits, target="cuda:sm_80@sim")
    a = np.full(64, filled, np.int32)
    signals = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with checking("none", threads=threads):
        signals.start()
        with pytest.raises(KeyboardInterrupt):
            kernel(a, n)
        np.testing.assert_array_equal(a, filled)
        a[:] = 3
        kernel(a, 0)
    np.testing.assert_array_equal(a, 1)


def test_launches_from_other_threads() -> None:
    kernel, a = tile.compile(waits, target="cuda:sm_80@sim"), np.zeros(64, np.int32)
    other = threading.Thread(target=kernel, args=(a, 0))
    other.start()
    other.join()
    np.testing.assert_array_equal(a, 1)
