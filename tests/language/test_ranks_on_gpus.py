"""Tiles across ranks as CUDA and HIP text: what it says, and all ranks of it in the emulator."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from language.test_rank_mistakes import MISTAKES, kernel_with
from language.test_ranks import KERNELS, SIZES
from support import ranks_in_one
from tile_core.errors import DataRace, Deadlock
from tile_core.passes.plan_pipelines import PipelineWarning

pytestmark = pytest.mark.in_turn(4)
TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")


def emulated(target):
    def call(kernel, args):
        tile.compile(kernel, target=f"{target}@sim")(*args)

    return call


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_all_ranks_in_the_emulator(name, target):
    for ranks in (2, 3, 4):
        ranks_in_one.run(KERNELS[name], name, ranks, SIZES, emulated(target))


FOUND_BY_THREADS = (
    *("no wait for a put", "signal above the copy", "no signal"),
    *("one expected too many", "no credit waited for", "credit before the row is read"),
    "no barrier before reading",
)


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("name", FOUND_BY_THREADS)
def test_mistakes_in_the_emulator(name, target, tmp_path):
    mistake = next(m for m in MISTAKES if m.name == name)
    kernel = kernel_with(mistake, tmp_path)
    ranks = max(mistake.least, 3)
    with pytest.raises((DataRace, Deadlock)):
        ranks_in_one.run(kernel, mistake.kernel, ranks, SIZES, emulated(target))


@pytest.mark.parametrize("target", TARGETS)
def test_one_thread_signals_behind_all_and_waits_before_all(target):
    text = tile.lower(KERNELS["ring"], target=target).kernel_source
    lines = [line.split("//")[0].strip() for line in text.splitlines()]
    wait = "while (tile::atomic_load(C + (rank * C_stride + (s & 1) * 16), tile::system_acquire)"
    (number,) = (k for k, line in enumerate(lines) if line.startswith(wait))
    assert lines[number - 1] == "if (tx == 0) {"
    assert lines[number + 3] == "tile::sync();"
    signal = "tile::atomic_add(F + (after * F_stride + (s & 1) * 16), 1u, tile::system_release);"
    number = lines.index(signal)
    assert "tile::sync();" in lines[number - 3 : number]
    assert "tile::live_gptr<float> W" in text
    assert "const float>" not in text
    assert "__restrict__" not in text


def test_flags_of_several_dimensions_have_lines_of_their_own():
    @T.prim_func
    def kernel(F: T.Signals((4, 3))):
        with T.Kernel(4, threads=32) as bx:
            T.signal(F.at(0)[bx, 2])

    text = tile.lower(kernel, target="cuda:sm_80").kernel_source
    assert "F + (bx * 48 + 32)" in text


@T.prim_func
def in_a_pipeline(
    A: T.Symmetric((4, 16, 16), "float16"),
    B: T.Tensor((16, 16), "float16"),
    C: T.Tensor((16, 16), "float32"),
    F: T.Signals((4,)),
):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((16, 16), "float16")
        b = T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.copy(B, b)
        T.clear(c)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(B, A.at((T.rank() + 1) % T.ranks())[k, :, :])
            T.signal(F.at((T.rank() + 1) % T.ranks())[k])
            T.wait_signal(F[k])
            T.copy(A[k, :, :], a)
            T.gemm(a, b, c)
        T.copy(c, C)


@pytest.mark.parametrize("target", TARGETS)
def test_pipelined_loops_with_signals_keep_their_order(target):
    rng = np.random.default_rng(0)
    b = rng.integers(-2, 3, (3, 16, 16)).astype("float16")
    a, c = np.zeros((3, 4, 16, 16), "float16"), np.zeros((3, 16, 16), "float32")
    with pytest.warns(PipelineWarning, match="signals or waits"):
        compiled = tile.compile(tile.ranks_as_blocks(in_a_pipeline), target=f"{target}@sim")
    compiled(a, b, c)
    want = 4 * np.roll(b, 1, 0).astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("signals", [False, True])
def test_copy_engines_are_not_ordered_by_signals(signals):
    @T.prim_func
    def kernel(
        A: T.Symmetric((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), F: T.Signals((1,))
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            T.copy(B, a)
            T.copy(a, A.at((T.rank() + 1) % T.ranks()))
            if signals:
                T.signal(F.at((T.rank() + 1) % T.ranks())[0])

    text = tile.lower(kernel, target="cuda:sm_90a").kernel_source
    assert ("tma_store" in text) is not signals
