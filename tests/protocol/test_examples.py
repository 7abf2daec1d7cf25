"""Rings of the kernels in examples/, followed through every order of their parts."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.kernels import BLOCK
from support.example_files import NAMES, load
from support.recording import record
from tile_core.errors import InternalError
from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel, Launch
from tile_core.passes.overlap_products import Overlapped, overlap_products
from tile_core.passes.specialise_warps import Specialised, specialise_warps
from tile_core.simt import prepare
from tile_core.testing.protocol.events import fills_seen, program_of
from tile_core.testing.protocol.explore import explore

pytestmark = [
    pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of NumPy, about what nobody computed
]

FOLLOWED = 20
"""At least so many kernels have rings whose rounds follow from sizes alone."""


class Noted:
    """Remembers kernels before their copies got threads of their own, and after."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Kernel, Kernel]] = []
        self.before: Kernel | None = None

    def specialise(self, kernel: Kernel, *args: Any) -> Specialised:
        made = specialise_warps(kernel, *args)
        self.before = kernel
        return made

    def overlap(self, kernel: Kernel, *args: Any) -> Overlapped:
        made = overlap_products(kernel, *args)
        assert self.before is not None
        self.pairs.append((self.before, made.kernel))
        return made


def test_no_order_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = Noted()
    monkeypatch.setattr(prepare, "specialise_warps", noted.specialise)
    monkeypatch.setattr(prepare, "overlap_products", noted.overlap)
    monkeypatch.setenv("TILE_TARGET", "cuda:sm_90a")
    record(monkeypatch)
    followed = 0
    for name in NAMES:
        noted.pairs.clear()
        module = load(name)
        try:
            module.check(*module.SIZES[0])
        except AssertionError:  # of its own: nothing was computed
            pass
        for before, after in noted.pairs:
            followed += sum(map(follow, launches(before), launches(after)))
    assert followed >= FOLLOWED


def launches(kernel: Kernel) -> list[Launch]:
    return [n for n in walk(kernel.body) if isinstance(n, Launch)]


def follow(before: Launch, after: Launch) -> bool:
    """Explore one launch; return whether it has rings that can be followed."""
    if after is before:
        return False
    values = {**BLOCK, **{var.name: 0 for var in before.block_vars}}
    try:
        program = program_of(after, values, fills_seen(before, values))
    except InternalError:  # what a tensor holds decides how often it goes round
        return False
    explored = explore(program)
    assert explored.violation is None, str(explored.violation)
    return True
