"""Every kernel that goes apart for sm_90a is followed: examples, Hopper's tiles, conformance.

None is left out in silence: whoever has ranges of threads, barriers in memory or clusters is
followed for several sizes and contents of tensors, or its test fails with the reason.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from support.example_files import KERNELS, load
from support.followed import NOT_FOLLOWED, Followed, following, run_passes
from support.hopper_examples import CASES, ODD
from support.recording import record
from tile_core.driver import lower
from tile_core.errors import Span
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Kernel
from tile_core.ops.gemm import Gemm
from tile_core.pass_manager.manager import PassManager
from tile_core.plugins.host import installed_plugins
from tile_core.records import replace
from tile_core.testing.conformance.catalogue import all_cases

pytestmark = [
    pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of NumPy, about what nobody computed
]

APART = frozenset(
    """
    attention/backward
    attention/decode_split
    attention/flash_forward
    attention/grouped_query
    attention/paged_decode
    attention/paper_b3_flash_mla
    attention/variable_length
    attention/window_and_sinks
    gemm/batched
    gemm/element_types
    gemm/gemv
    gemm/paper_b1_matmul
    gemm/persistent
    gemm/split_k
    gemm/stream_k
    gemm/swizzled_layouts
    gemm/tile_scheduler
    gemm/transposed_operands
    hopper/attention
    hopper/cluster_multicast
    hopper/cluster_norm
    hopper/producer_consumer
    linear_attention/chunked_linear_attention
    linear_attention/mamba2_chunk_scan
    linear_attention/mamba2_chunk_state
    quantised/fp8_block_scaled
    quantised/int4_weights
    quantised/int8_w8a8
    quantised/nf4_weights
    quantised/paper_b2_fp4_weights
    quantised/two_bit_weights
    reductions/reducers
    sparse_and_grouped/block_sparse_gemm
    sparse_and_grouped/fused_moe_mlp
    sparse_and_grouped/grouped_gemm
    """.split()
)
"""Examples with launches that go apart, if they are compiled for sm_90a."""


def assert_right(followed: Followed) -> None:
    assert not followed.wrong, "\n\n".join(followed.wrong)
    assert followed.runs >= followed.launches


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("name", KERNELS)
def test_of_an_example(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_TARGET", "cuda:sm_90a")
    record(monkeypatch)
    module = load(name)
    with following() as followed:
        try:
            module.check(*module.SIZES[0])
        except AssertionError:  # of its own: nothing was computed
            pass
    assert_right(followed)
    assert (followed.launches > 0) is (name in APART)


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("name", CASES)
def test_of_an_example_with_large_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small problems, one of a size that a GPU is bought for, and one that no tile divides."""
    monkeypatch.setenv("TILE_TARGET", "cuda:sm_90a")
    record(monkeypatch)
    case = CASES[name]
    odd = [ODD[name]] if name in ODD else []
    with following() as followed:
        for arguments in (*case.checks[:1], *odd):
            try:
                case.check(*arguments)
            except AssertionError:  # of its own: nothing was computed
                pass
        lower(case.kernel(), "cuda:sm_90a", installed_plugins())
    assert_right(followed)
    assert followed.launches >= 2


def test_modules_that_are_left_out_are_there() -> None:
    """All others are followed by `conftest.py`, without being named."""
    tests = Path(__file__).parents[1]
    assert all((tests / name).is_file() for name in NOT_FOLLOWED)
    assert PassManager.run is not run_passes, "it is followed here, too"


def with_places(kernel: Kernel) -> Kernel:
    """Return a kernel whose products have lines: what is made of them is told from other loops."""
    lines = count(1)

    def placed(node: Node) -> Node:
        is_product = isinstance(node, Gemm)
        return replace(node, span=Span("case.py", next(lines), 0, 1)) if is_product else node

    return rewrite(kernel, placed)


PARTS = 3
PRODUCTS = [case for case in all_cases() if case.name.startswith("gemm/")]


@pytest.mark.in_turn(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_of_conformance(part: int) -> None:
    with following() as followed:
        for case in PRODUCTS[part::PARTS]:
            lower(with_places(case.build()), "cuda:sm_90a", installed_plugins())
    assert_right(followed)
    assert followed.launches >= 1
