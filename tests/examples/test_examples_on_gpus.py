"""Examples on GPUs: every kernel in the emulator with all checks, the important ones at length."""

from __future__ import annotations

import warnings

import pytest

from support.example_files import NAMES, load
from tile_core.errors import TileWarning
from tile_sim import checking

IMPORTANT = (
    "attention/flash_forward",
    "gemm/paper_b1_matmul",
    "gemm/split_k",
    "norms/layer_norm",
    "norms/softmax",
    "quantised/int4_weights",
)
"""Run on every generation with all sizes, the last one in random order."""

WIDE_WAVES = (
    "attention/decode_split",
    "attention/paper_b3_flash_mla",
    "gemm/element_types",
    "norms/rms_norm",
    "quantised/fp8_block_scaled",
    "quantised/int8_w8a8",
    "quantised/paper_b2_fp4_weights",
)
"""Beside the important ones, run with all sizes in waves of 64 threads."""

PAIRS = (("cuda:sm_80", "hip:gfx942"), ("cuda:sm_90a", "hip:gfx90a"))
"""Run on in turn: copies beside threads or by engines, and waves of 64 threads of both kinds."""

TARGETS = (*PAIRS[0], *PAIRS[1])

GENERATIONS = ("sm_70", "sm_75", "sm_80", "sm_89", "sm_90a", "gfx90a", "gfx942")


@pytest.fixture(autouse=True)
def no_choice_of_target(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TILE_TARGET", "TILELANG_DEFAULT_TARGET", "TILE_INTERPRET", "TILE_CHECK"):
        monkeypatch.delenv(variable, raising=False)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let the run that writes the page on conformance be one of all examples on all targets."""
    if metafunc.function is test_in_the_emulator:
        is_page = metafunc.config.pluginmanager.hasplugin("support.conformance_table")
        targets = [TARGETS if is_page else PAIRS[at % 2] for at in range(len(NAMES))]
        runs = [(n, t) for n, several in zip(NAMES, targets, strict=True) for t in several]
        metafunc.parametrize(("name", "target"), runs)


@pytest.mark.in_turn(12)
def test_in_the_emulator(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_TARGET", f"{target}@sim")
    module = load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileWarning)  # of loops that could not be overlapped
        module.check(*module.SIZES[0])


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("arch", GENERATIONS)
@pytest.mark.parametrize("name", IMPORTANT)
def test_on_every_generation_in_any_order(
    name: str, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "hip" if arch.startswith("gfx") else "cuda"
    monkeypatch.setenv("TILE_TARGET", f"{kind}:{arch}@sim")
    module = load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileWarning)
        for size in module.SIZES[:-1]:
            module.check(*size)
        with checking("all", schedule="random:1"):
            module.check(*module.SIZES[-1])


@pytest.mark.in_turn(12)
@pytest.mark.parametrize(("arch", "order"), [("gfx90a", "random:1"), ("gfx942", "forward")])
@pytest.mark.parametrize("name", WIDE_WAVES)
def test_all_sizes_in_wide_waves(
    name: str, arch: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE_TARGET", f"hip:{arch}@sim")
    module = load(name)
    with warnings.catch_warnings(), checking("all", schedule=order):
        warnings.simplefilter("ignore", TileWarning)
        for size in module.SIZES[1:]:
            module.check(*size)
