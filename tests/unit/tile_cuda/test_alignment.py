"""Tensors must begin where the kernel's vectors may: what is asked, and what is told."""

import ctypes

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import ArgumentLayoutError
from tile_core.plugins.gpu_launch import callable_of, launch_manifest
from tile_core.simt.alignment import alignments, required_alignment
from tile_launch.cuda_driver import CudaDriver as Driver
from tile_launch.launch_text import launcher_source


@T.prim_func
def accesses(
    ones: T.Tensor((256,), "float32"),
    single: T.Tensor((64,), "float32"),
    seen_wider: T.Tensor((256,), "float16"),
    copied: T.Tensor((256,), "float16"),
    wide_itself: T.Tensor((32,), "int64"),
    turned: T.Tensor((256,), "float16"),
):
    with T.Kernel(1, threads=32):
        t = T.get_thread_binding()
        wide = T.view(seen_wider, (64,), "int64")
        tile_of_it = T.alloc_shared((256,), "float16")
        for v in T.vectorized(4):
            ones[t * 4 + v] = 1.0
        single[t] = 2.0
        wide[t] = wide[t] + 1
        wide_itself[t] = 3
        T.copy(copied, tile_of_it)
        turned[t] = tile_of_it[255 - t]


@T.prim_func
def streamed(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
    with T.Kernel(1, threads=64):
        tile_of_a = T.alloc_shared((1, 128), "float32")
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[k, 0], tile_of_a)
            for i in T.Parallel(128):
                B[k, 127 - i] = tile_of_a[0, i]


def test_vectors_and_views_of_wider_elements_ask_for_more_than_their_elements():
    program = tile.lower(accesses, target="cuda:sm_80").device_mod
    found = {param.name: size for param, size in alignments(program).items()}
    assert found == {"ones": 16, "seen_wider": 8, "copied": 16}


def test_asynchronous_copies_ask_for_their_bytes():
    program = tile.lower(streamed, target="cuda:sm_80").device_mod
    (function,) = program.functions
    assert {b.name: size for b, size in required_alignment(function).items()} == {"A": 8}


def test_one_test_per_tensor_and_call(driver: Driver):
    program = tile.lower(accesses, target="cuda:sm_80").device_mod
    text = launcher_source(launch_manifest(program), driver)
    assert [line.strip() for line in text.splitlines() if "&" in line] == [
        "if at_a0 & 15 or at_a2 & 7 or at_a3 & 15: misaligned(at_a0, at_a2, at_a3)"
    ]


EXPECTED = """\
[TL6006] double.A.data: expected an address that is a multiple of 16 bytes, got one that lies 4 \
behind
note: the parameter is declared here
 --> program.py:2:12
  |
2 | def double(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pass x.clone() or numpy.copy(x): views may begin anywhere, tensors of their own are aligned"""

PROGRAM = """
@T.prim_func
def double(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(128):
            B[i] = A[i] * 2.0
"""


@pytest.fixture
def double(monkeypatch):
    """The kernel of `PROGRAM`, whose file is called ``program.py``."""
    import linecache

    text = PROGRAM.lstrip("\n")
    entry = (len(text), None, text.splitlines(True), "program.py")
    monkeypatch.setitem(linecache.cache, "program.py", entry)
    scope = {"T": T}
    exec(compile(text, "program.py", "exec", dont_inherit=True), scope)
    return scope["double"]


def test_the_emulator_refuses_what_a_gpu_would_fault_on(double):
    kernel = tile.compile(double, target="cuda:sm_80@sim")
    whole, out = np.arange(132, dtype=np.float32), np.full(128, np.nan, np.float32)
    with pytest.raises(ArgumentLayoutError) as caught:
        kernel(whole[1:129], out)
    assert str(caught.value) == EXPECTED
    assert np.isnan(out).all()
    kernel(whole[4:], out)
    np.testing.assert_array_equal(out, 2 * whole[4:])


def test_the_launcher_refuses_before_anything_runs(double, driver: Driver):
    program = tile.lower(double, target="cuda:sm_80").device_mod
    driver.library.stub_widths((ctypes.c_int * 2)(8, 8), 2)
    run = callable_of(program, b"", driver, lambda d: 0, lambda *args: 0, lambda *args: None)
    whole, out = np.zeros(132, np.float32), np.zeros(128, np.float32)
    run(whole[4:], out)
    before = driver.library.stub_launches()
    with pytest.raises(ArgumentLayoutError) as caught:
        run(whole[1:129], out)
    assert str(caught.value) == EXPECTED
    assert driver.library.stub_launches() == before
