"""Fewer cases of the contract that meet the same classes of mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.testing.conformance.case import Case


def operator_of(name: str) -> str:
    """Return the operator in a case's name: ``"copy/cast"``."""
    return "/".join(name.split("/")[:2])


def types_of(name: str) -> set[str]:
    """Return the element types, or scopes, in a case's name."""
    return {*name.split("/")[2].split("-")}


def classes_of(name: str) -> set[str]:
    """Return the operator and the types of a case.

    Examples
    --------
    >>> sorted(classes_of("copy/cast/int8-int32/3x14"))
    ['copy/cast', 'int32', 'int8']
    """
    return {operator_of(name), *types_of(name)}


def covering(
    cases: Sequence[Case],
    share: int,
    turn: int,
    classes: Callable[[str], set[str]] = classes_of,
) -> list[Case]:
    """Return every `share`-th case from `turn` on, and the first one of each class.

    Targets with turns of their own meet most pairs of an operator and a type somewhere, and each
    of them every class.
    """
    met: set[str] = set()
    found = []
    for at, case in enumerate(cases):
        its = classes(case.name)
        if at % share == turn % share or not its <= met:
            met |= its
            found.append(case)
    return found
