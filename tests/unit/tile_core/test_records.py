"""Records compile their methods when asked for them, and say what they do not offer."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import FrozenInstanceError, InitVar, field
from threading import Barrier, Thread
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest

from tile_core import records

if TYPE_CHECKING:  # what cannot be written is seen at run time
    from dataclasses import dataclass
else:
    dataclass = records.dataclass


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list, compare=False)


def point() -> Any:
    """Return a class of which nothing was asked yet."""

    @dataclass(frozen=True, slots=True, order=True)
    class Fresh:
        x: int
        y: int = 0

    return Fresh


def compiled(cls: type) -> set[str]:
    """Return the special methods that are functions in the class by now, of those that vary."""
    late = ("__init__", "__repr__", "__eq__", "__hash__", "__lt__")
    return {name for name in late if isinstance(cls.__dict__[name], FunctionType)}


def test_each_method_is_compiled_when_it_is_first_asked_for() -> None:
    cls = point()
    assert compiled(cls) == set()
    one = cls(1)
    assert compiled(cls) == {"__init__"}
    init = cls.__dict__["__init__"]
    assert (one.x, one.y) == (1, 0)
    assert repr(one).endswith("Fresh(x=1, y=0)")
    assert compiled(cls) == {"__init__", "__repr__"}
    assert hash(one) == hash((1, 0))
    assert one == cls(1, 0)
    assert one < cls(2)
    assert compiled(cls) == {"__init__", "__repr__", "__eq__", "__hash__", "__lt__"}
    assert cls.__dict__["__init__"] is init


def test_methods_are_where_tools_look_for_them() -> None:
    cls = point()
    assert cls.__init__.__qualname__.endswith(".Fresh.__init__")
    assert cls.__init__.__annotations__ == {"x": "int", "y": "int", "return": None}
    assert cls.__init__.__globals__ is globals()
    assert cls.__setattr__.__qualname__.endswith(".Fresh.__setattr__")


def test_calls_that_do_not_fit_are_told_by_name() -> None:
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required positional"):
        Point()  # type: ignore[call-arg]


def test_threads_may_ask_at_once() -> None:
    cls, gate, found = point(), Barrier(4), []

    def ask() -> None:
        gate.wait()
        found.append(cls(1) == cls(1, 0))

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_a_subclass_that_is_no_record_uses_the_methods_of_its_base() -> None:
    class Near(Point):  # with a __dict__
        def __init__(self, x: int) -> None:
            super().__init__(x, 5)

    one = Near(3)
    assert (one.x, one.y, repr(one)) == (
        3,
        5,
        f"{Near.__qualname__}(x=3, y=5, tags=[])",
    )
    one.note = "no field"  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 4  # type: ignore[misc]


def test_objects_are_pickled() -> None:
    again = pickle.loads(pickle.dumps(Point(1, 2, ["a"])))
    assert (again, again.tags) == (Point(1, 2), ["a"])


def test_defaults_made_by_a_factory_are_not_shared() -> None:
    assert Point(1).tags is not Point(1).tags


def test_defaults_that_are_no_arguments_stay_in_the_class() -> None:
    @dataclass
    class Counted:
        x: int
        count: int = field(default=3, init=False)

    assert vars(Counted(1)) == {"x": 1}
    assert Counted(1).count == 3


def test_a_class_whose_module_is_gone() -> None:
    space: dict[str, Any] = {"__name__": "gone", "dataclass": records.dataclass}
    exec("@dataclass(slots=True)\nclass Left:\n    x: int = 4", space)
    assert space["Left"]().x == 4


def test_what_is_not_offered() -> None:
    with pytest.raises(TypeError, match=r"records have no InitVar: use dataclasses\.dataclass"):

        @dataclass
        class Started:
            x: InitVar[int]

    with pytest.raises(TypeError, match=r"records have no KW_ONLY: use dataclasses\.dataclass"):

        @dataclass
        class Named:
            _: dataclasses.KW_ONLY
            x: int

    with pytest.raises(TypeError, match="unexpected keyword argument 'unsafe_hash'"):
        dataclass(unsafe_hash=True)


@pytest.mark.parametrize("decorator", [records.dataclass, dataclasses.dataclass])
def test_what_is_refused(decorator: Any) -> None:
    def described(**members: Any) -> type:
        annotations = {name: "int" for name in members if not name.startswith("__")}
        return type("Made", (), {"__module__": __name__, "__annotations__": annotations} | members)

    with pytest.raises(TypeError, match="Made already specifies __slots__"):
        decorator(slots=True)(described(__slots__=()))
    with pytest.raises(TypeError, match="Cannot overwrite attribute __lt__ in class Made"):
        decorator(order=True)(described(__lt__=lambda self, other: True))
    with pytest.raises(TypeError, match="Cannot overwrite attribute __setattr__ in class Made"):
        decorator(frozen=True)(described(__setattr__=object.__setattr__))
    with pytest.raises(ValueError, match="eq must be true if order is true"):
        decorator(order=True, eq=False)(described())
    with pytest.raises(TypeError, match="'x' is a field but has no type annotation"):
        decorator(described(__annotations__={}, x=field(default=1)))
