"""Random functions of torch: what is written can be run, and what is wrong with it is seen."""

from __future__ import annotations

import pytest
import torch

from fuzz.torch import run
from fuzz.torch.operations import FAMILIES
from fuzz.torch.program import Program, _made, generate

SQUARES = Program(3, ((4, 6),), "def f(v0):\n    return v0 * v0\n")


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert run.one(SQUARES, "interpret") is None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda f: lambda x: f(x) + 1e-3, "the value: off by"),
        (lambda f: lambda x: f(x).float(), "the value: torch.# of (#, #), not torch.# of"),
        (lambda f: lambda x: f(x) * 2 - f(x).detach(), "a gradient: off by"),
        (lambda f: lambda x: f(x.detach()), "a gradient: off by"),
    ],
)
def test_wrong_values_and_gradients_are_seen(wrong, told: str, monkeypatch) -> None:
    monkeypatch.setattr(run, "_on", lambda target, f: wrong(f))
    found = run.one(SQUARES, "interpret")
    assert found is not None
    assert found.what.startswith(told)


def test_a_seed_gives_the_same_functions() -> None:
    texts = [generate(7, number).text for number in range(20)]
    assert texts == [generate(7, number).text for number in range(20)]
    assert len({*texts}) > 15


def test_torch_takes_every_line() -> None:
    torch.manual_seed(0)
    shapes = ((4, 6), (6, 6), (3, 4, 4), (8,))
    values = [(torch.randn(s).double(), torch.randn(s).double()) for s in shapes]
    for line in (text for family in FAMILIES for text in family):
        text = line.replace("DIM", "0").format("v0", "v1")
        assert any(_made(text, pair) is not None for pair in values), line
