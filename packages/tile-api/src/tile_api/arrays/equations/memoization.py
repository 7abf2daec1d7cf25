"""Functions that remember their answers for as long as what they were asked about exists."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

K = TypeVar("K")
R = TypeVar("R")


def memoized(question: Callable[[K], R]) -> Callable[[K], R]:
    """Let a function remember its answers: of an expression that is read twice it is asked once."""
    answers: WeakKeyDictionary[K, R] = WeakKeyDictionary()

    @wraps(question)
    def answer(x: K) -> R:
        if x not in answers:
            answers[x] = question(x)
        return answers[x]

    return answer
