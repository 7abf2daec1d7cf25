"""Which kernels are compiled for which architectures, by tests that run none of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

import pytest

from support import example_files
from support.covering import operator_of, types_of
from support.recording import record
from tile_core.compilation.results import Lowered
from tile_core.testing.conformance.case import Case

FEW = 8
"""Families of fewer cases are compiled for every architecture."""


def family_of(name: str) -> str:
    return name.split("/")[0]


def compilations(
    cases: Sequence[Case], architectures: Sequence[str], turn: int, exceptions: Iterable[str]
) -> list[tuple[Case, str]]:
    """Return the cases with what they are compiled for: it depends on their order alone.

    Small families are compiled for all architectures. Of the others each case and exception is for
    one, in turn, and products are for half of them. Each operator of several cases has some, and
    each element type.

    Parameters
    ----------
    turn
        0 or 1: which half of products, and which quarter of an operator's other cases. The next
        one is for another vendor's compiler, and so are operators of one case in turn.
    exceptions
        Names that may have more words behind them.
    """
    always = {exception.split()[0] for exception in exceptions}
    sizes = Counter(family_of(case.name) for case in cases)
    operators = Counter(operator_of(case.name) for case in cases)
    met: Counter[str] = Counter()
    types: set[str] = set()
    pairs = []
    for case in cases:
        family, operator = family_of(case.name), operator_of(case.name)
        share = 2 if family == "gemm" else min(max(operators[operator], 2), 4)
        is_mine = (met[operator] + crc32(operator.encode())) % share == turn
        met[operator] += 1
        many = 1 if family != "gemm" else len(architectures) // 2
        many = len(architectures) if sizes[family] < FEW else many
        is_mine = is_mine or sizes[family] < FEW or not types_of(case.name) <= types
        if is_mine or case.name in always:
            types |= types_of(case.name)
            pairs += [(case, arch) for arch in in_turn(met[family], architectures)[:many]]
            met[family] += 1
    return pairs


def compiled_examples(
    architectures: Sequence[str], turn: int, exceptions: Iterable[str] = ()
) -> list[tuple[str, str]]:
    """Return half of the examples, each with one architecture, and exceptions with all.

    Parameters
    ----------
    turn
        0 or 1: which half. The other one is for another vendor's compiler.
    exceptions
        Names that may have more words behind them.
    """
    everywhere = {exception.split()[0] for exception in exceptions}
    return [
        (name, arch)
        for at, name in enumerate(example_files.NAMES)
        if at % 2 == turn or name in everywhere
        for arch in in_turn(at // 2, architectures)[: None if name in everywhere else 1]
    ]


def classes_of_row(case: Case, arch: str) -> set[str]:
    """Return what compiling a case for an architecture stands for."""
    return {arch, family_of(case.name), *types_of(case.name)}


def in_turn(first: int, architectures: Sequence[str]) -> list[str]:
    """Return `architectures` from the one on whose turn it is."""
    first %= len(architectures)
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
