"""`tile_core.records.dataclass` means what `dataclasses.dataclass` means: classes made by both."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import operator
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar  # noqa: F401 (dataclasses looks the name up here)

from hypothesis import given
from hypothesis import strategies as st

from tile_core import records

NAMES = ("self", "a", "b", "value", "other")
ARGUMENTS = (1, 2, "x", (1, 2))
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)

DEFAULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "none": dict,
    "value": lambda: {"default": 7},
    "factory": lambda: {"default_factory": list},
    "mutable": lambda: {"default": []},
}

stated_fields = st.fixed_dictionaries(
    {
        "default": st.sampled_from(["none", "none", "value", "factory", "mutable"]),
        "init": st.sampled_from([True, True, False]),
        "repr": st.booleans(),
        "hash": st.sampled_from([None, None, True, False]),
        "compare": st.booleans(),
        "kw_only": st.sampled_from([dataclasses.MISSING, True, False]),
        "bare": st.booleans(),
    }
)
bodies = st.dictionaries(st.sampled_from(NAMES), stated_fields, max_size=4)
options = st.fixed_dictionaries(
    {
        "init": st.sampled_from([True, True, True, False]),
        "repr": st.booleans(),
        "eq": st.sampled_from([True, True, False]),
        "order": st.booleans(),
        "frozen": st.booleans(),
        "kw_only": st.booleans(),
        "slots": st.booleans(),
    }
)
own_methods = st.sets(
    st.sampled_from(
        ["__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__setattr__", "__post_init__"]
    ),
    max_size=2,
)


def _stated(how: dict[str, Any]) -> Any:
    flags = {k: how[k] for k in ("init", "repr", "hash", "compare", "kw_only")}
    return field(**DEFAULTS[how["default"]](), **flags)


def _members(body: dict[str, dict[str, Any]], methods: set[str]) -> dict[str, Any]:
    """Return what stands in a class."""
    members: dict[str, Any] = {"__annotations__": {"kind": "ClassVar[int]"}, "kind": 3}
    members |= {"__module__": __name__, "__doc__": "A class."}
    for name, how in body.items():
        members["__annotations__"][name] = "int"
        if not how["bare"]:
            members[name] = _stated(how)
        elif how["default"] in ("value", "mutable"):
            members[name] = DEFAULTS[how["default"]]()["default"]
    return members | {name: _METHODS[name] for name in methods}


def _written_lt(self: Any, other: object) -> bool:
    return False


def _refuse(self: Any) -> None:
    raise ValueError("no object of this class")


_METHODS: dict[str, Any] = {
    "__init__": lambda self, *args: None,
    "__repr__": lambda self: "mine",
    "__eq__": lambda self, other: True,
    "__hash__": lambda self: 5,
    "__lt__": _written_lt,
    "__setattr__": object.__setattr__,
    "__post_init__": _refuse,
}


def outcome(ask: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return what a call returns, or the kind and text of the error that it raises."""
    try:
        return ask(*args, **named)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


def made(decorator: Any, classes: list[tuple[Any, Any, Any]]) -> Any:
    """Return the last of a chain of classes, each derived from the one before."""
    bases: tuple[type, ...] = ()
    for body, wanted, methods in classes:
        bases = (decorator(**wanted)(type("Made", bases, _members(body, methods))),)
    return bases[0]


def told(cls: Any) -> list[Any]:
    """Return what is told about a class."""
    compared = ("name", "type", "default", "default_factory", "init", "repr", "hash", "compare")
    return [
        [[getattr(f, k) for k in (*compared, "kw_only")] for f in dataclasses.fields(cls)],
        cls.__match_args__,
        sys.version_info < (3, 11) or cls.__dict__.get("__slots__"),  # 3.10 repeats those of bases
        cls.kind,
        outcome(_signature, cls),
        cls.__hash__ is None,
    ]


def _signature(cls: Any) -> str:
    return str(inspect.signature(cls))


def behaviour(cls: Any) -> list[Any]:
    """Return what objects of a class do."""
    own = dataclasses.fields(cls)
    named = [f.name for f in own if f.init and f.kw_only]
    placed = [f.name for f in own if f.init and not f.kw_only]
    found = [outcome(_new, cls), outcome(_new, cls, *range(9))]
    found.append(outcome(_new, cls, *placed, **dict.fromkeys(named, 4), unknown=1))
    objects = []
    for values in itertools.product(ARGUMENTS, repeat=min(len(own), 2)):
        take = itertools.cycle(values or (1,))
        positional = [next(take) for _ in placed]
        one = outcome(cls, *positional, **{name: next(take) for name in named})
        found.append(one if isinstance(one, tuple) else _shown(one))
        objects += [] if isinstance(one, tuple) else [one]
    for one in objects[:6]:
        found += [outcome(act, one) for act in (_hash, _assigned, _copies, dataclasses.asdict)]
        for other, does in itertools.product((*objects[:6], 3), COMPARISONS):
            found.append(outcome(does, one, other))
    return found


def _new(cls: Any, *args: Any, **named: Any) -> Any:
    return _shown(cls(*args, **named))


def _shown(one: Any) -> Any:
    text = outcome(repr, one)
    values = [getattr(one, f.name, "nothing") for f in dataclasses.fields(one)]
    own = sorted(getattr(one, "__dict__", ()))
    return "an object" if " at 0x" in text else text, values, own


def _hash(one: Any) -> Any:
    own: Any = type(one).__hash__
    return "identity" if own is object.__hash__ else hash(one)


def _assigned(one: Any) -> list[Any]:
    one = copy.copy(one)
    names = [f.name for f in dataclasses.fields(one)]
    changes = [outcome(setattr, one, name, 9) for name in names]
    return changes + [outcome(delattr, one, name) for name in names]


def _copies(one: Any) -> list[Any]:
    ways = (copy.copy, copy.deepcopy, dataclasses.replace)
    return [outcome(_shown, way(one)) for way in ways]


@given(st.lists(st.tuples(bodies, options, own_methods), min_size=1, max_size=2))
def test_classes_are_those_of_dataclasses(classes: list[tuple[Any, Any, Any]]) -> None:
    """Two chains of classes of one text, by this decorator and Python's, cannot be told apart."""
    expected = outcome(made, dataclasses.dataclass, classes)
    found = outcome(made, records.dataclass, classes)
    if isinstance(expected, tuple) or isinstance(found, tuple):
        assert found[0] is expected[0]  # versions of Python word it differently
        return
    assert told(found) == told(expected)
    assert behaviour(found) == behaviour(expected)


@given(bodies, options, bodies, options, st.booleans())
def test_the_two_kinds_derive_from_each_other(
    base: Any, base_options: Any, body: Any, own_options: Any, ours_first: bool
) -> None:
    """A class of one kind is a base for the other, as it is for its own."""
    pair = (records.dataclass, dataclasses.dataclass)
    first, second = pair if ours_first else reversed(pair)

    def derived(first: Any, second: Any) -> Any:
        parent = first(**base_options)(type("Made", (), _members(base, set())))
        return second(**own_options)(type("Made", (parent,), _members(body, set())))

    expected = outcome(derived, dataclasses.dataclass, dataclasses.dataclass)
    found = outcome(derived, first, second)
    if isinstance(expected, tuple) or isinstance(found, tuple):
        assert found[0] is expected[0]  # versions of Python word it differently
        return
    assert told(found) == told(expected)
    assert behaviour(found) == behaviour(expected)


@given(bodies, options)
def test_objects_of_frozen_classes_take_nothing(body: Any, wanted: Any) -> None:
    """An attribute that is no field is refused as well."""
    cls = outcome(made, records.dataclass, [(body, wanted | {"frozen": True}, set())])
    one = None if isinstance(cls, tuple) else outcome(cls, *cls.__match_args__)
    if one is None or isinstance(one, tuple):
        return
    assert outcome(setattr, one, "unheard_of", 1)[0] is FrozenInstanceError
    assert outcome(delattr, one, "unheard_of")[0] is FrozenInstanceError
