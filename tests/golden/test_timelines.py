"""Pictures of pipelines as text: each bar's place, and what it stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.pipelined_kernels import by_hand, gemm_of, in_step, picture
from tile_api.report.model import Bar

Golden = Callable[..., None]

KERNELS: dict[str, Callable[[], Any]] = {
    "gemm": lambda: gemm_of(5, 3),
    "by_hand": lambda: by_hand(3, 2),
    "in_step": lambda: in_step(3),
}


def name_of(bar: Bar) -> str:
    """Return the operator of a statement."""
    return bar.text.partition("(")[0].removeprefix("@")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("gemm", "cuda:sm_75"),
        ("gemm", "cuda:sm_80"),
        ("gemm", "cuda:sm_90a"),
        ("gemm", "hip:gfx942"),
        ("by_hand", "cuda:sm_90a"),
        ("in_step", "cuda:sm_90a"),
    ],
)
def test_picture(name: str, target: str, golden: Golden) -> None:
    found = picture(KERNELS[name](), target)
    assert found is not None
    lines = [*found.notes]
    for number, lane in enumerate(found.lanes):
        lines.append(f"{lane.name} ({lane.kind})")
        for bar in (b for b in found.bars if b.lane == number):
            lines.append(
                f"  {bar.start:g} to {bar.end:g} {bar.activity} #{bar.number}: {name_of(bar)}"
            )
    golden("\n".join(lines))
