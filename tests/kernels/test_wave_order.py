"""Every barrier and every wait of printed kernels for AMD is needed, and missed when it is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api as tile
from support import gpu_kernels
from tile_core.errors import DataRace, MissingWait, TileError, UninitialisedRead
from tile_sim import checking
from tile_sim.executable import Executable

WAIT = re.compile(r"lds_wait<(\d+)>")
SYNC = "tile::sync();"
SCHEDULES = ("forward", "reverse", "random:1")


def changes(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that waits with one copy more in flight, and each barrier left out."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found = WAIT.search(line)
        if found is not None:
            weaker = line.replace(found[0], f"lds_wait<{int(found[1]) + 1}>")
        elif SYNC in line:
            weaker = line.replace(SYNC, "")
        else:
            continue
        yield number + 1, "\n".join([*lines[:number], weaker, *lines[number + 1 :]])


def halves(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes]


KERNELS: dict[str, tuple[Any, list[np.ndarray]]] = {
    **{
        f"product in {stages} stages": (
            gpu_kernels.gemm(128, 128, 160, threads=256, stages=stages),
            halves((128, 160), (160, 128), (128, 128)),
        )
        for stages in (2, 3)
    },
    "attention": (
        gpu_kernels.attention(192, 1, 64, causal=False),
        halves(*[(192, 1, 64)] * 4),
    ),
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", KERNELS)
def test_nothing_can_be_left_out(name: str) -> None:
    function, arguments = KERNELS[name]
    kernel = tile.compile(function, target="hip:gfx942@sim")
    artifact = kernel.artifact
    found = 0
    for number, text in changes(artifact.printed.text):
        changed = replace(artifact, printed=replace(artifact.printed, text=text))
        broken = Executable(changed, artifact.program.kernel)
        for schedule in SCHEDULES:
            with (
                checking("race,wait,uninit", schedule=schedule),
                pytest.raises(TileError) as caught,
            ):
                broken(*arguments)
            error = caught.value
            assert isinstance(error, (DataRace, MissingWait, UninitialisedRead)), (number, error)
            assert error.span is not None
            assert error.span.file == gpu_kernels.__file__
        found += 1
    assert found >= 7
