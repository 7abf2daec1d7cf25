"""Whether a result is right: all of it written, near the reference, the same every time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from problem import Family, Tensors

PIECE = 1 << 26
"""Elements that are compared at a time."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison found.

    Parameters
    ----------
    relative
        The norm of the difference, as a part of that of the reference; of the worst output.
    problem
        What is wrong; empty if nothing is.
    """

    relative: float
    problem: str = ""


def poison(tensors: Tensors) -> None:
    """Fill tensors with NaN, so that what is not written is found."""
    for tensor in tensors:
        tensor.fill_(math.nan)


def judge(found: Tensors, expected: Tensors, family: Family) -> Verdict:
    """Compare results with the reference; outputs without a reference are not looked at."""
    worst = Verdict(0.0)
    for number, (actual, right) in enumerate(zip(found, expected, strict=False)):
        if tuple(actual.shape) != tuple(right.shape):
            return Verdict(math.inf, f"output {number} has shape {tuple(actual.shape)}")
        verdict = _judge_one(actual, right, family)
        if verdict.problem:
            return Verdict(verdict.relative, f"output {number}: {verdict.problem}")
        worst = max(worst, verdict, key=lambda v: v.relative)
    return worst


def _judge_one(actual: Any, right: Any, family: Family) -> Verdict:
    pairs = list(zip(_pieces(actual), _pieces(right), strict=True))
    of_right = math.sqrt(sum(_square(b) for _, b in pairs))
    mean = of_right / math.sqrt(max(right.numel(), 1))
    total, missing, outside = 0.0, 0, 0
    for a, b in pairs:
        difference = a.float() - b
        missing += int((~torch.isfinite(difference)).sum())
        total += _square(difference)
        outside += int((difference.abs_() > family.single * (b.abs() + mean)).sum())
    relative = math.sqrt(total) / of_right if of_right else math.sqrt(total)
    if missing:
        return Verdict(math.inf, f"{missing} of {right.numel()} elements are not finite")
    if not relative <= family.relative:
        return Verdict(relative, f"differs by {relative:.1e}, allowed are {family.relative:.0e}")
    if outside:
        return Verdict(relative, f"{outside} of {right.numel()} elements are far off")
    return Verdict(relative)


def _square(tensor: Any) -> float:
    return float(tensor.double().square().sum())


def _pieces(tensor: Any) -> Sequence[Any]:
    return torch.split(tensor.reshape(-1), PIECE)


def same_bits(one: Tensors, other: Tensors) -> bool:
    """Return whether two results are the same, NaN among them."""
    return all(
        torch.equal(a.view(torch.uint8), b.view(torch.uint8))
        for a, b in zip(one, other, strict=True)
    )
