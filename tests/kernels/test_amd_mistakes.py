"""Mistakes in machine code: none of them stays unnoticed when it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import tile_api as tile
from support.counted_kernels import integers, poison, product
from support.toolchain import amd_compiler_for
from tile_core.errors import DataRace, InstructionHazard, MissingWait, TileError
from tile_sim.gfx9 import run

ARCH, DEPTH = "gfx942", 192


@cache
def assembly() -> tuple[str, ...]:
    """Return the lines of a product of 128 x 128 x 192 with two buffers."""
    amd_compiler_for(ARCH)
    kernel = product(128, 128, DEPTH, 2, block=(128, 128, 32), threads=256)
    made = tile.compile(kernel, target=f"hip:{ARCH}")
    return tuple(made.artifact.asm().splitlines())


def is_right(lines: list[str], seed: int | None) -> bool:
    """Run the product and say whether its result is right."""
    a, b, c = integers(128, DEPTH), integers(128, DEPTH, seed=1), poison(128, 128)
    text = "\n".join(lines)
    run(text, "product", grid=1, block=256, arguments=[a, b, c], shared_bytes=65536, seed=seed)
    return bool(np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T))


def places(pattern: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the lines of the code that match."""
    for position, line in enumerate(assembly()):
        found = re.match(rf"\s+{pattern}", line)
        if found:
            yield position, found


def notice(position: int, line: str, *errors: type[TileError]) -> None:
    """Change a line: the result is wrong, or `errors` are raised, in some order of waves."""
    lines = list(assembly())
    lines[position] = line
    for seed in (None, 5):
        try:
            if not is_right(lines, seed):
                return
        except errors:
            return
    pytest.fail(f"nobody notices that {assembly()[position].strip()} has become {line.strip()!r}")


def test_without_mistakes() -> None:
    assert is_right(list(assembly()), None)
    assert is_right(list(assembly()), 5)


def test_waits_that_are_missing() -> None:
    found = list(places("s_waitcnt .*"))
    assert len(found) >= 8
    for position, _ in found:
        notice(position, "", MissingWait)


def test_waits_for_one_operation_less() -> None:
    found = list(places(r"s_waitcnt (\w+)\((\d+)\)$"))
    assert len(found) >= 8
    for position, match in found:
        notice(position, f"  s_waitcnt {match[1]}({int(match[2]) + 1})", MissingWait)


def test_barriers_that_are_missing() -> None:
    found = list(places("s_barrier"))
    assert len(found) >= 2
    for position, _ in found:
        notice(position, "", MissingWait, DataRace)


def test_pauses_that_are_missing() -> None:
    found = list(places("s_nop .*"))
    assert len(found) >= 8
    for position, _ in found[::4]:
        lines = list(assembly())
        lines[position] = ""
        with pytest.raises(InstructionHazard):
            is_right(lines, None)


def test_swizzles_that_differ() -> None:
    found = list(places(r"v_xor_b32_e32 .*"))
    assert found
    for position, match in found:
        notice(position, match[0].replace("xor", "or"), MissingWait, DataRace)


def test_reads_from_other_places() -> None:
    found = list(places(r"ds_read_b128 (.*) offset:(\d+)"))
    assert found
    for position, match in found[::3]:
        line = f"  ds_read_b128 {match[1]} offset:{int(match[2]) + 16}"
        notice(position, line, MissingWait, DataRace)
