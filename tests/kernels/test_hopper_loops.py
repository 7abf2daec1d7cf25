"""Main loops on Hopper: as short as written by hand, with work beside products in its place."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest

from support.gpu_benchmarks import load
from support.hopper_examples import machine_code
from support.machine_loops import cycle_with, loops
from support.nvrtcs import NVRTCS

BY_HAND = {"gemm": 52, "attention": 465, "attention_causal": 465}
"""Instructions of the loops of consumers in kernels written by hand, with the same tiles."""

_BRANCH = re.compile(r"BRA\S* .*?(0x[0-9a-f]+)")
_PREDICATE = re.compile(r"^@!?U?P\w+ ")


@lru_cache
def instructions(name: str, nvrtc: Any) -> tuple[tuple[int, str], ...]:
    """Return the machine code of a kernel, with addresses."""
    return tuple(load("machine_loops").instructions_of(machine_code(name, nvrtc).text))


def main_loop(name: str, nvrtc: Any) -> list[str]:
    """Return what a round of the loop of products runs, if no branch leads elsewhere.

    The loops that wait for a barrier stand behind the end of the program. A block of many
    instructions that a branch can leave out is left out: a mask that hides nothing.
    """
    code = instructions(name, nvrtc)
    end = next(at for at, text in code if text.startswith("EXIT"))
    found = [(at, text) for at, text in cycle_with("GMMA", code) if at < end]
    return [_PREDICATE.sub("", text) for _, text in _without_masks(found)]


def _without_masks(loop: list[tuple[int, str]]) -> list[tuple[int, str]]:
    last = loop[-1][0]
    for at, line in loop:
        target = _BRANCH.search(line)
        if target is None or not at < (end := int(target[1], 16)) <= last:
            continue
        inside = [text for a, text in loop if at < a < end]
        if len(inside) > 64 and not any("GMMA" in t or "BAR" in t for t in inside):
            return [(a, text) for a, text in loop if not at < a < end]
    return loop


def opcodes(loop: list[str]) -> Counter[str]:
    """Count instructions by the first part of their names."""
    return Counter(re.split(r"[\s.]", text)[0] for text in loop)


def beside(loop: list[str]) -> Counter[str]:
    """Count what stands between the wait for the first products and that for all of them."""
    waits = [k for k, text in enumerate(loop) if text.startswith("WARPGROUP.DEPBAR")]
    first, last = waits
    assert loop[first].endswith("0x1")
    assert loop[last].endswith("0x0")
    return opcodes(loop[first:last])


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
@pytest.mark.parametrize("name", BY_HAND)
def test_loops_are_as_short_as_written_by_hand(name: str, nvrtc: Any) -> None:
    assert len(main_loop(name, nvrtc)) <= 1.1 * BY_HAND[name]


@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
def test_the_products_of_a_gemm_go_on_into_the_next_round(nvrtc: Any) -> None:
    found = opcodes(main_loop("gemm", nvrtc))
    assert found["HGMMA"] == 4  # 64 deep, 16 at a time
    assert found["SYNCS"] == 2  # one wait, one release
    waits = [t for t in main_loop("gemm", nvrtc) if t.startswith("WARPGROUP.DEPBAR")]
    assert [wait[-3:] for wait in waits] == ["0x1"]


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
@pytest.mark.parametrize("name", ["persistent", "persistent_grouped", "stream_k"])
def test_blocks_that_stay_find_operands_in_registers_that_lanes_share(
    name: str, nvrtc: Any
) -> None:
    """The assembler must believe that lanes are together again where the next tile begins."""
    text = machine_code(name, nvrtc).text
    inner = min((c for c in loops(text) if c["HGMMA"]), key=Counter.total)
    assert inner["HGMMA"] == 4
    assert inner["R2UR"] == 0


@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
@pytest.mark.parametrize("name", ["attention", "attention_causal"])
def test_exponentials_run_beside_the_product_of_the_round_before(name: str, nvrtc: Any) -> None:
    """A thread has 64 scores of two rows, and a factor for each row."""
    loop = main_loop(name, nvrtc)
    assert opcodes(loop)["HGMMA"] == 8 + 8
    assert opcodes(loop)["MUFU"] == 64 + 2
    assert beside(loop)["MUFU"] == 64 + 2
    assert opcodes(loop)["FSEL"] == 0


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
def test_steps_are_scaled_beside_the_product_of_the_next_one(nvrtc: Any) -> None:
    """The loop has two rounds; of 64 sums at least half are in front of the wait."""
    loop = main_loop("fp8", nvrtc)
    assert opcodes(loop)["QGMMA"] == 2 * 4
    assert opcodes(loop)["FFMA"] == 2 * 64
    begun, counted = False, []
    for text in loop:
        if "GMMA" in text and not begun:
            begun = True
            counted.append(0)
        elif text.startswith("WARPGROUP.DEPBAR"):
            begun = False
        elif begun and text.startswith("FFMA"):
            counted[-1] += 1
    assert len(counted) == 2
    assert min(counted) >= 32


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("attention_backward", [8 + 8, 4, 8 + 4, 0]),
        ("attention_backward_64", [4 + 4, 4, 8 + 4, 0]),
    ],
)
def test_products_of_a_round_are_waited_for_where_they_are_needed(
    name: str, products: list[int], nvrtc: Any
) -> None:
    """Of the five of the backward pass: exponentials beside the second, then the third, …

    The gradient of queries is waited for alone, and added to memory beside that of keys.
    """
    loop = main_loop(name, nvrtc)
    waits = [k for k, text in enumerate(loop) if text.startswith("WARPGROUP.DEPBAR")]
    assert [loop[k][-3:] for k in waits] == ["0x1", "0x1", "0x1", "0x0"]
    begun = [opcodes(loop[a:b])["HGMMA"] for a, b in pairwise([0, *waits])]
    assert begun == products
    assert opcodes(loop)["HMMA"] == 0
    assert opcodes(loop[waits[0] : waits[1]])["MUFU"] == 32
    added = [opcodes(loop[a:b])["REDG"] for a, b in pairwise([0, *waits])]
    assert added[:3] == [0, 0, 0]
    assert added[3] > 0
