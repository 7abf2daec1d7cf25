"""Calls like earlier ones: they find their kernels without being bound to parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_api.arrays.given import fact_of, is_array

Found = tuple[Callable[[Any], Any], Sequence[int] | None]
"""Kernels, and which of the given values they take: None for all, in their order."""
Told = Callable[[Callable[[str, int], str]], str]
"""Returns an expression of Python: the class of shapes, false for those that kernels are not for.

It takes what returns the text of a size: of a parameter, and of one of its dimensions.
"""

MOST_CALLS = 128
"""Kinds of calls that are remembered; the oldest goes first."""
MOST_SIZED = 16
"""Kernels for several sizes that a call is compared with, and classes of sizes of each that are
remembered; the oldest goes first."""

_MET: set[type] = set()
"""Types of arrays that functions were called with."""


class CallCache:
    """What is known of the calls of a function."""

    def __init__(self) -> None:
        self._known: dict[Any, Found] = {}
        self._sized: dict[Any, list[tuple[Told, Callable[..., Any], dict[Any, Found]]]] = {}

    def find(self, given: Sequence[Any], keywords: Mapping[str, Any]) -> Found | None:
        """Return the kernels of a call, if they are known.

        Parameters
        ----------
        given
            All that it is given, `keywords` last.
        """
        if self._sized:
            for _, class_of, classes in self._sized.get((len(given), *keywords), ()):
                if (found := classes.get(class_of(*given))) is not None:
                    return found
        key: Any = [(x.shape, x.dtype) if type(x) in _MET else fact_of(x) for x in given]
        try:
            return self._known.get((*key, *keywords) if keywords else tuple(key))
        except TypeError:  # an array of a type that was not met yet, or no argument for kernels
            return None

    def remember(
        self, kernels: Callable[[Any], Any], given: Sequence[Any], keywords: Mapping[str, Any],
        arrays: Mapping[str, Any], told: Told | None,
    ) -> None:  # fmt: skip
        """Let calls like this one find their kernels.

        Parameters
        ----------
        arrays
            Those that the kernels take, by their parameters.
        told
            Which shapes the kernels are for; None for those of `arrays` alone.
        """
        place = {id(x): n for n, x in enumerate(given) if is_array(x)}
        if len(place) != sum(map(is_array, given)) or len(place) != len(arrays):
            return  # one array twice, or an array that is a default
        _MET.update(map(type, arrays.values()))
        numbers = [place[id(x)] for x in arrays.values()]
        is_plain = numbers == [*range(len(given))] and not keywords
        found = (kernels, None if is_plain else numbers)
        if told is None:
            facts = [(x.shape, x.dtype) if type(x) in _MET else fact_of(x) for x in given]
            key: Any = (*facts, *keywords)
            if len(self._known) >= MOST_CALLS:
                self._known.pop(next(iter(self._known)), None)
            self._known[key] = found
        else:
            kind = (len(given), *keywords)
            sized = self._sized.get(kind, [])
            mine = next((s for s in sized if s[0] == told and s[1](*given)), None)
            if mine is None:
                position = dict(zip(arrays, numbers, strict=True))
                mine = (told, _class_of(given, position, told), {})
                self._sized[kind] = [*sized[1 - MOST_SIZED :], mine]
            _, class_of, classes = mine
            if len(classes) >= MOST_SIZED:
                classes.pop(next(iter(classes)), None)
            classes[class_of(*given)] = found


def _class_of(given: Sequence[Any], position: Mapping[str, int], told: Told) -> Callable[..., Any]:
    """Return what tells the class of the shapes of values like given ones; false for others."""
    names: dict[str, Any] = {"fact_of": fact_of}
    tests = []
    for n, x in enumerate(given):
        if n in position.values():
            names |= {f"type{n}": type(x), f"dtype{n}": x.dtype}
            tests.append(f"type(x{n}) is type{n} and x{n}.dtype == dtype{n}")
            tests.append(f"len(shape{n} := x{n}.shape) == {len(x.shape)}")
        else:
            names[f"fact{n}"] = fact_of(x)
            tests.append(f"fact_of(x{n}) == fact{n}")
    tests.append(told(lambda name, k: f"shape{position[name]}[{k}]"))
    parameters = ", ".join(f"x{n}" for n in range(len(given)))
    made: Callable[..., Any] = eval(f"lambda {parameters}: {' and '.join(tests)}", names)
    return made
