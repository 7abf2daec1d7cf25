"""Which kernels are compiled for which architectures, by tests that run none of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

import pytest

from support import example_files
from support.recording import record
from tile_core.compilation.results import Lowered
from tile_core.testing.conformance.case import Case

FEW = 16
"""Families of fewer cases are compiled for every architecture."""


def family_of(name: str) -> str:
    return name.split("/")[0]


def compilations(
    cases: Sequence[Case], architectures: Sequence[str], turn: int, exceptions: Iterable[str]
) -> list[tuple[Case, str]]:
    """Return the cases with what they are compiled for: it depends on names alone.

    Small families are compiled for all architectures. Of the others each case and exception is for
    one, products are for half of them.

    Parameters
    ----------
    turn
        0 or 1: which half of the cases. The other one is for another vendor's compiler.
    exceptions
        Names that may have more words behind them.
    """
    always = {exception.split()[0] for exception in exceptions}
    sizes = Counter(family_of(case.name) for case in cases)
    pairs = []
    for case in cases:
        family = family_of(case.name)
        is_mine = crc32(case.name.encode()) >> 8 & 1 == turn or case.name in always
        if sizes[family] >= FEW and not is_mine:
            continue
        many = 1 if family != "gemm" else len(architectures) // 2
        many = len(architectures) if sizes[family] < FEW else many
        pairs += [(case, arch) for arch in in_turn(case.name, architectures)[:many]]
    return pairs


def compiled_examples(
    architectures: Sequence[str], exceptions: Iterable[str] = ()
) -> list[tuple[str, str]]:
    """Return the examples with what they are compiled for: one architecture, exceptions for all.

    Parameters
    ----------
    exceptions
        Names that may have more words behind them.
    """
    everywhere = {exception.split()[0] for exception in exceptions}
    return [
        (name, arch)
        for name in example_files.NAMES
        for arch in in_turn(name, architectures)[: None if name in everywhere else 1]
    ]


def in_turn(name: str, architectures: Sequence[str]) -> list[str]:
    """Return `architectures` from the one on that the name tells."""
    first = crc32(name.encode()) % len(architectures)
    return [*architectures[first:], *architectures[:first]]


def families_that_miss_some(
    pairs: Sequence[tuple[Case, str]], architectures: Sequence[str]
) -> dict[str, set[str]]:
    """Return the families that are not compiled for every architecture, with those they are."""
    met: defaultdict[str, set[str]] = defaultdict(set)
    for case, arch in pairs:
        met[family_of(case.name)].add(arch)
    return {family: archs for family, archs in met.items() if len(archs) < len(architectures)}


def kernels_of_example(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> list[Lowered]:
    """Return the kernels that an example compiles for `target`; none is run."""
    recorded = record(monkeypatch)
    monkeypatch.setenv("TILE_TARGET", target)
    module = example_files.load(name)
    try:
        module.check(*module.SIZES[0])
    except AssertionError:  # of its own: nothing was computed
        pass
    text = (example_files.EXAMPLES / f"{name}.py").read_text()
    assert len({each.kernel.span for each in recorded}) >= text.count("\n@tilelang.jit") > 0
    return recorded
