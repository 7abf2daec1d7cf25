"""How warps share a product: partitions, and the fragments that follow from them."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.layout import Fragment
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.simt.gemm_warp_partition import (
    WarpTiling,
    choose_partition,
    partitions,
    permuted,
    tiling_of,
)
from tile_cuda.atoms import atoms_for
from tile_cuda.machine import machine

SQUARE, ROWS, COLUMNS = GemmWarpPolicy.Square, GemmWarpPolicy.FullRow, GemmWarpPolicy.FullCol


def tiling(
    m: int, n: int, k: int, warps: int, policy: GemmWarpPolicy = SQUARE, arch: str = "sm_80"
) -> WarpTiling | None:
    atoms = atoms_for(machine(arch), "float16", "float16", "float32")
    return tiling_of(atoms, (m, n, k), warps, policy)


@pytest.mark.parametrize(
    ("m", "n", "warps", "policy", "expected"),
    [
        (128, 128, 4, SQUARE, (2, 2)),
        (128, 128, 4, ROWS, (4, 1)),
        (128, 128, 4, COLUMNS, (1, 4)),
        (128, 256, 8, SQUARE, (2, 4)),
        (256, 128, 8, SQUARE, (4, 2)),
        (64, 128, 8, ROWS, (4, 2)),  # four rows of atoms: no more warps fit along M
        (48, 192, 3, SQUARE, (1, 3)),
        (192, 48, 6, SQUARE, (6, 1)),
        (576, 64, 4, COLUMNS, (1, 4)),
        (80, 80, 5, SQUARE, (5, 1)),
        (16, 8, 1, SQUARE, (1, 1)),
    ],
)
def test_partitions(
    m: int, n: int, warps: int, policy: GemmWarpPolicy, expected: tuple[int, int]
) -> None:
    assert choose_partition(m // 16, n // 8, warps, policy, (m, n)) == expected


def test_warps_that_do_not_divide_the_tile_have_no_partition() -> None:
    assert list(partitions(3, 6, 4)) == []
    assert choose_partition(1, 2, 4, SQUARE, (16, 16)) is None
    assert tiling(48, 48, 16, 4) is None


@pytest.mark.parametrize("k", [8, 16, 24, 40, 64])
def test_the_largest_step_that_divides_k_is_taken(k: int) -> None:
    found = tiling(64, 64, k, 4)
    assert found is not None
    assert found.atom.k == (16 if k % 16 == 0 else 8)
    assert found.steps * found.atom.k == k


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80"])
@pytest.mark.parametrize(
    ("m", "n", "k", "warps"), [(64, 64, 32, 4), (48, 96, 16, 3), (192, 80, 24, 6), (32, 16, 8, 1)]
)
def test_fragments_fill_all_registers_of_all_threads(
    arch: str, m: int, n: int, k: int, warps: int
) -> None:
    if arch == "sm_70" and n % 16:
        pytest.skip("no such tile")
    found = tiling(m, n, k, warps, arch=arch)
    if found is None:
        assert arch == "sm_70"
        return
    threads = 32 * warps
    for fragment, shape in (
        (found.c_fragment(), (m, n)),
        (found.a_fragment(), (m, k)),
        (found.b_fragment(), (k, n)),
    ):
        assert fragment.shape == shape
        assert fragment.thread_extent == threads
        assert fragment.is_injective()
        assert fragment.size * fragment.replication == threads * fragment.slots
    assert found.c_fragment().replication == 1


def test_each_warp_holds_the_factors_of_its_own_rectangle() -> None:
    found = tiling(128, 64, 32, 4, SQUARE)
    assert found is not None
    c, a, b = found.c_fragment(), found.a_fragment(), found.b_fragment()
    for i, j in ((0, 0), (17, 40), (64, 31), (127, 63)):
        warp = c.forward_thread(i, j) // 32
        for k in (0, 15, 31):
            assert warp in {t // 32 for t in a.owners(i, k)}
            assert warp in {t // 32 for t in b.owners(k, j)}


def test_warps_own_rectangles_along_m_first() -> None:
    found = tiling(128, 128, 16, 4)
    assert found is not None
    warps = found.c_fragment().thread_table()[..., 0] // 32
    assert (found.rows * found.atom.m, found.columns * found.atom.n) == (64, 64)
    assert [int(warps[i, j]) for i, j in ((0, 0), (64, 0), (0, 64), (64, 64))] == [0, 1, 2, 3]
    assert (warps[:64, :64] == 0).all()


def test_sums_of_one_product_are_the_first_factor_of_the_next() -> None:
    # Attention: scores (64, 64) over rows of warps become the left factor of the next product.
    scores, product = tiling(64, 64, 32, 4, ROWS), tiling(64, 128, 64, 4, ROWS)
    assert scores is not None
    assert product is not None
    assert scores.c_fragment().same_function(product.a_fragment())


def test_permuted_fragments_hold_the_same_elements() -> None:
    found = tiling(32, 64, 16, 2)
    assert found is not None
    b = found.b_fragment()
    turned = permuted(b, (1, 0))
    assert turned.shape == (64, 16)
    assert np.array_equal(turned.thread_table(), np.swapaxes(b.thread_table(), 0, 1))
    assert np.array_equal(turned.slot_table(), b.slot_table().T)
    assert permuted(b, (0, 1)) is b


def test_leading_dimensions_have_registers_of_their_own() -> None:
    base = Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))
    stacked = permuted(base, (0, 1), lead=(2, 3))
    assert stacked.shape == (2, 3, 8, 8)
    assert stacked.slots == 6 * base.slots
    assert stacked.is_injective()
    assert stacked.forward_thread(1, 2, 5, 6) == base.forward_thread(5, 6)
    assert stacked.forward_index(1, 2, 5, 6) == (5 * base.slots + 0,)
