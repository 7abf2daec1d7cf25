"""The compiler speaks of what machines can do; whose instruction that is, backends know."""

from __future__ import annotations

import pytest

from tools.vendor_words import ALLOWED, CORE, SPEAKS, lines_with_vendors, words_of


def test_the_compiler_names_no_vendor() -> None:
    assert lines_with_vendors() == {}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_is_needed(name: str) -> None:
    assert words_of(CORE / name)


@pytest.mark.parametrize(
    "line",
    [
        *("if machine.has('tma'):", "_lower_wgmma(op)", "PTX ISA", "sm_90a", "ptx_cp_async"),
        *("TMA_BOX", "by_warpgroups(op)", "two Warpgroups"),
    ],
)
def test_a_vendor_is_found(line: str) -> None:
    assert SPEAKS.search(line)


@pytest.mark.parametrize(
    "line", ["contextmanager", "SimtMachine", "a ship", "small", "AnyLayoutMap"]
)
def test_other_words_are_not(line: str) -> None:
    assert not SPEAKS.search(line)
