"""Examples for Hopper GPUs: what they mean, in the emulator in any order, as machine code."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

import pytest

from support.example_files import EXAMPLES, HOPPER, load
from support.toolchain import need_disassembler, nvrtc_for
from tile_sim import checking

ORDERS = ("forward", "reverse", "random:1", "random:2")
CALLS = {
    "hopper/attention": ("wgmma_ss_set<64, 0, 0, 8>", "wgmma_rs<", "bar_arrive(2, 256)"),
    "hopper/cluster_multicast": ("tma_load_multicast<2>", "mbarrier_free_remote", "wgmma_ss<128"),
    "hopper/cluster_norm": ("tile::remote(", "cluster_sync", "cluster_rank"),
    "hopper/producer_consumer": ("tma_load<2>", "tma_store<2>", "registers_decrease<40>"),
}
"""By example: calls that its text must make."""


@pytest.fixture(autouse=True)
def no_choice_of_target(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TILE_TARGET", "TILELANG_DEFAULT_TARGET", "TILE_INTERPRET", "TILE_CHECK"):
        monkeypatch.delenv(variable, raising=False)


def test_all_are_looked_at() -> None:
    assert sorted(CALLS) == HOPPER


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", HOPPER)
def test_in_the_interpreter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_INTERPRET", "1")
    module = load(name)
    for size in module.SIZES[:2]:
        module.check(*size)


@lru_cache(maxsize=1)
def example(name: str) -> ModuleType:
    """Return an example, which keeps its kernels for another order."""
    return load(name)


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", HOPPER)
def test_in_the_emulator(name: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_TARGET", "cuda:sm_90a@sim")
    module = example(name)
    with checking("all", schedule=order):
        for size in module.SIZES[:2]:
            module.check(*size)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", HOPPER)
def test_as_machine_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc_for("sm_90a")
    monkeypatch.setenv("TILE_TARGET", "cuda:sm_90a")
    module = load(name)
    (made,) = (f for n, f in vars(module).items() if n in ("attention", "matmul", "rms_norm"))
    kernel = made(*module.SIZES[-1])
    (needs,) = kernel.resources.values()
    assert (needs.spill_stores, needs.spill_loads) == (0, 0)
    for call in CALLS[name]:
        assert call in kernel.get_kernel_source()
    if name != "hopper/cluster_norm":  # it multiplies no matrices
        need_disassembler()
        for instruction in ("HGMMA", "UTMALDG", "SYNCS", "USETMAXREG"):
            assert instruction in kernel.sass


@pytest.mark.parametrize("name", HOPPER)
def test_says_in_its_first_line_what_it_is(name: str) -> None:
    first = (EXAMPLES / f"{name}.py").read_text().splitlines()[0].strip('"').rstrip(".")
    assert first in (EXAMPLES / "README.md").read_text()
