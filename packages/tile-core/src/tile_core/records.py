"""Data classes that cost nothing until they are used.

`dataclasses.dataclass` writes up to eight functions per class as text and compiles them when the
class is defined: half a millisecond for each of the hundreds of classes that a compiler is made
of, most of which a process never makes an object of. `dataclass` here means the same, and
compiles each function when it is first asked for.

Measured with `dataclasses.dataclass` in its place: ``import tile_api`` and ``tile --help`` take the
CPU time that they take with this (40 and 61 ms); importing the language and the driver takes 17 %
more (405 ms for 345), and a program that runs one kernel out of the cache 13 % (953 ms for 840).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from dataclasses import dataclass as _eager
from functools import cache
from inspect import get_annotations
from itertools import chain
from operator import attrgetter
from types import MemberDescriptorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_origin

from typing_extensions import Self

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # type checkers know that one
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        init: bool = True,
        repr: bool = True,
        eq: bool = True,
        order: bool = False,
        frozen: bool = False,
        kw_only: bool = False,
        slots: bool = False,
    ) -> Any:
        """Return what `dataclasses.dataclass` returns for the same options.

        Objects, signatures, texts, errors and what `dataclasses` tells about the class are the
        same (tests/property/test_records.py). ``InitVar`` and ``KW_ONLY`` are not offered.

        Raises
        ------
        TypeError, ValueError
            Where `dataclasses.dataclass` does.
        """
        options = SimpleNamespace(
            init=init, repr=repr, eq=eq, order=order, unsafe_hash=False, frozen=frozen,
            match_args=True, kw_only=kw_only, slots=slots, weakref_slot=False,
        )  # fmt: skip
        return (lambda made: _record(made, options)) if cls is None else _record(cls, options)


T = TypeVar("T")


def replace(record: T, /, **changes: Any) -> T:
    """Return a record with other values in some fields, as `dataclasses.replace` does.

    Compilers do little else: what fields a class has is found once.
    """
    cls: Any = type(record)
    names, read = _given_fields(cls)
    made: T = cls(**dict(zip(names, read(record), strict=True)) | changes)
    return made


@cache
def _given_fields(cls: Any) -> tuple[tuple[str, ...], Callable[[Any], Iterable[Any]]]:
    """Return the fields of a class that its objects are made of, and what reads them all."""
    names = tuple(f.name for f in fields(cls) if f.init)
    read = attrgetter(*names)
    return names, read if len(names) > 1 else lambda record: (read(record),)


class Uncopied:
    """What never changes, or stands for itself: its copies are it, as those of functions are."""

    __slots__ = ()

    def __copy__(self) -> Self:
        """Return the object itself."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the object itself."""
        return self


@_eager
class _Sample:
    value: int


_REGULAR = fields(_Sample)[0]._field_type  # type: ignore[attr-defined]
"""What `dataclasses.fields` looks for in the fields that it lists."""


class _Factory:
    def __repr__(self) -> str:  # as signatures show it
        return "<factory>"


_FACTORY = _Factory()


def _record(cls: Any, options: SimpleNamespace) -> Any:
    known = _fields_of(cls, options)
    if options.order and not options.eq:
        raise ValueError("eq must be true if order is true")
    own_hash = cls.__dict__.get("__hash__", MISSING)
    hashes = own_hash is MISSING or (own_hash is None and "__eq__" in cls.__dict__)
    positional = tuple(name for name, f in known.items() if f.init and not f.kw_only)
    if options.init:
        _refuse_gaps(known, positional)
    cls.__dataclass_fields__, cls.__dataclass_params__ = known, options
    if "__match_args__" not in cls.__dict__:
        setattr(cls, "__match_args__", positional)  # noqa: B010 (mypy has it for its own)
    if options.slots:
        cls = _slotted(cls, tuple(known))
        if options.frozen:
            for name, function in (("__getstate__", _state), ("__setstate__", _restore)):
                if name not in cls.__dict__:
                    setattr(cls, name, function)
    for name in _late_names(options):
        if name in cls.__dict__:
            if name in _COMPARISONS:
                raise TypeError(
                    f"Cannot overwrite attribute {name} in class {cls.__name__}. "
                    "Consider using functools.total_ordering"
                )
            continue
        setattr(cls, name, _Late(cls, name))
    if options.frozen:
        _seal(cls, frozenset(known))
    if options.eq and hashes:
        cls.__hash__ = _Late(cls, "__hash__") if options.frozen else None
    return cls


# Fields ------------------------------------------------------------------------------------


def _fields_of(cls: Any, options: SimpleNamespace) -> dict[str, Field[Any]]:
    """Return the fields of a class by name: those of its bases, then its own."""
    known: dict[str, Field[Any]] = {}
    frozen = []
    for base in cls.__mro__[-1:0:-1]:
        inherited = getattr(base, "__dataclass_fields__", None)
        if inherited is not None:
            known.update((f.name, f) for f in fields(base))
            frozen.append(base.__dataclass_params__.frozen)
    annotated = get_annotations(cls)
    for name, annotation in annotated.items():
        if not _is_class_variable(annotation):
            known[name] = _own_field(cls, name, annotation, options.kw_only)
    for name, value in cls.__dict__.items():
        if isinstance(value, Field) and name not in annotated:
            raise TypeError(f"{name!r} is a field but has no type annotation")
    if options.frozen and not all(frozen):
        raise TypeError("cannot inherit frozen dataclass from a non-frozen one")
    if not options.frozen and any(frozen):
        raise TypeError("cannot inherit non-frozen dataclass from a frozen one")
    return known


def _is_class_variable(annotation: object) -> bool:
    if isinstance(annotation, str):
        kind = annotation.partition("[")[0].rpartition(".")[2]
        if kind in ("InitVar", "KW_ONLY"):
            raise TypeError(f"records have no {kind}: use dataclasses.dataclass")
        return kind == "ClassVar"
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _own_field(cls: Any, name: str, annotation: object, kw_only: bool) -> Field[Any]:
    """Return the field that a class states, and leave its default as the class attribute."""
    stated = getattr(cls, name, MISSING)
    if isinstance(stated, MemberDescriptorType):  # the slot of a base
        stated = MISSING
    made: Any = stated if isinstance(stated, Field) else field(default=stated)
    made.name, made.type, made._field_type = name, annotation, _REGULAR
    if made.kw_only is MISSING:
        made.kw_only = kw_only
    if made.default is not MISSING and made.default.__class__.__hash__ is None:
        raise ValueError(
            f"mutable default {type(made.default)} for field {name} is not allowed: "
            "use default_factory"
        )
    if isinstance(stated, Field):
        if made.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, made.default)
    return made  # type: ignore[no-any-return]


def _refuse_gaps(known: Mapping[str, Field[Any]], positional: tuple[str, ...]) -> None:
    seen = False
    for name in positional:
        optional = _is_optional(known[name])
        if seen and not optional:
            raise TypeError(f"non-default argument {name!r} follows default argument")
        seen = seen or optional


def _is_optional(f: Field[Any]) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


def _slotted(cls: Any, names: tuple[str, ...]) -> Any:
    """Return the class again, with slots: they cannot be added to one that is there."""
    if "__slots__" in cls.__dict__:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    members = dict(cls.__dict__)
    taken = set(chain.from_iterable(_slots(base) for base in cls.__mro__[1:-1]))
    for name in (*names, "__dict__", "__weakref__"):
        members.pop(name, None)
    members["__slots__"] = tuple(name for name in names if name not in taken)
    again = type(cls)(cls.__name__, cls.__bases__, members)
    again.__qualname__ = cls.__qualname__
    return again


def _slots(cls: type) -> tuple[str, ...]:
    stated: Any = cls.__dict__.get("__slots__", ())
    return (stated,) if isinstance(stated, str) else tuple(stated)


# Methods that are the same for all classes --------------------------------------------------


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _seal(cls: Any, names: frozenset[str]) -> None:
    """Let no field of an object be assigned or deleted."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    for function in (__setattr__, __delattr__):
        if function.__name__ in cls.__dict__:
            raise TypeError(
                f"Cannot overwrite attribute {function.__name__} in class {cls.__name__}"
            )
        function.__qualname__ = f"{cls.__qualname__}.{function.__name__}"
        setattr(cls, function.__name__, function)


# Methods written per class, when first asked for ---------------------------------------------

_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__")


def _late_names(options: SimpleNamespace) -> list[str]:
    names = [f"__{name}__" for name in ("init", "repr", "eq") if getattr(options, name)]
    return [*names, *_COMPARISONS] if options.order else names


class _Late:
    """Stands for a method in a class until it is asked for, then puts it in its own place."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        made: Any = (_written_init if self.name == "__init__" else _taken)(self.owner, self.name)
        setattr(self.owner, self.name, made)
        return made.__get__(instance, kind)


def _taken(cls: Any, name: str) -> Any:
    """Return the method that `dataclasses` gives to a class of the same fields."""
    known = fields(cls)
    members: dict[str, Any] = {f.name: copy(f) for f in known}
    members |= {"__annotations__": {f.name: f.type for f in known}}
    members |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    made: Any = _eager(
        init=False,
        repr=name == "__repr__",
        eq=name != "__repr__",
        order=name in _COMPARISONS,
        unsafe_hash=name == "__hash__",
    )(type(cls.__name__, (), members))
    return made.__dict__[name]


def _written_init(cls: Any, name: str) -> Any:
    """Return the function that fills an object; the text is that of `dataclasses`.

    Nodes are made by the thousands. Frozen objects are filled by way of ``object.__setattr__``, or
    of what sets a slot, which takes half the time.
    """
    known, options = fields(cls), cls.__dataclass_params__
    receiver = "self" if all(f.name != "self" for f in known) else "__record_self__"
    scope: dict[str, Any] = {"__set__": object.__setattr__, "__missing__": _FACTORY}
    body = []
    for f in known:
        value = _value(f, scope, options.slots)
        slot = getattr(cls, f.name, None)
        if value is not None and options.frozen and isinstance(slot, MemberDescriptorType):
            scope[f"__set_{f.name}__"] = slot.__set__
            body.append(f"__set_{f.name}__({receiver}, {value})")
        elif value is not None and options.frozen:
            body.append(f"__set__({receiver}, {f.name!r}, {value})")
        elif value is not None:
            body.append(f"{receiver}.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(f"{receiver}.__post_init__()")
    taken = [f for f in known if f.init]
    parameters = [receiver, *(_parameter(f) for f in taken if not f.kw_only)]
    named = [_parameter(f) for f in taken if f.kw_only]
    header = ", ".join([*parameters, "*", *named] if named else parameters)
    lines = "".join(f"\n  {line}" for line in body or ["pass"])
    text = f"def __make__({', '.join(scope)}):\n def __init__({header}):{lines}\n return __init__"
    made: dict[str, Any] = {}
    exec(text, getattr(sys.modules.get(cls.__module__), "__dict__", {}), made)
    function = made["__make__"](**scope)
    function.__qualname__ = f"{cls.__qualname__}.{name}"
    function.__annotations__ = {f.name: f.type for f in taken} | {"return": None}
    return function


def _value(f: Field[Any], scope: dict[str, Any], slots: bool) -> str | None:
    """Return what a field is set to, as text; None where the class attribute serves."""
    if f.default_factory is not MISSING:
        scope[f"__default_{f.name}__"] = f.default_factory
        made = f"__default_{f.name}__()"
        return f"{made} if {f.name} is __missing__ else {f.name}" if f.init else made
    if f.default is not MISSING:
        scope[f"__default_{f.name}__"] = f.default
    if f.init:
        return f.name
    return f"__default_{f.name}__" if slots and f.default is not MISSING else None


def _parameter(f: Field[Any]) -> str:
    if f.default_factory is not MISSING:
        return f"{f.name}=__missing__"
    return f.name if f.default is MISSING else f"{f.name}=__default_{f.name}__"
