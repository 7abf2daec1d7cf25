"""Kernels come after those whose results they read."""

from __future__ import annotations

from collections.abc import Sequence

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, add, index, load
from tile_api.arrays.planning.tasks import Task, in_order
from tile_core.dtypes import dtype_of

FLOAT32 = dtype_of("float32")
I = index("i", 4)


def result(name: str, *read: str) -> Output:
    """Return what adds what it reads."""
    element: Expr = load("x", (I,), FLOAT32)
    for other in read:
        element = add(element, load(other, (I,), FLOAT32))
    return Output(name, (4,), FLOAT32, (I,), element)


def task(*outputs: Output) -> Task:
    return Task(outputs, None, ("a reason",))


def names(tasks: Sequence[Task]) -> list[list[str]]:
    return [[o.name for o in task.outputs] for task in tasks]


def test_those_in_order_stay() -> None:
    tasks = [task(result("a")), task(result("c")), task(result("b", "a"), result("d", "c"))]
    assert in_order(tasks) == tasks


def test_what_is_read_comes_first() -> None:
    tasks = [task(result("a", "c")), task(result("b", "a")), task(result("c", "d")),
             task(result("d")), task(result("e"))]  # fmt: skip
    assert names(in_order(tasks)) == [["d"], ["c"], ["a"], ["b"], ["e"]]


def test_those_that_read_each_other_are_divided() -> None:
    tasks = [task(result("a", "d"), result("b")), task(result("c", "b"), result("d")),
             task(result("e", "a", "c"), result("f"))]  # fmt: skip
    ordered = in_order(tasks)
    assert names(ordered) == [["b"], ["c"], ["d"], ["a"], ["e", "f"]]
    assert all(task.reasons == ("a reason",) for task in ordered)


def test_a_longer_circle_is_divided() -> None:
    tasks = [task(result("a", "d"), result("b")), task(result("c", "f"), result("d")),
             task(result("e"), result("f", "b"))]  # fmt: skip
    made = names(in_order(tasks))
    assert sorted(name for part in made for name in part) == [*"abcdef"]
    place = {name: k for k, part in enumerate(made) for name in part}
    assert place["d"] < place["a"]
    assert place["b"] < place["f"] < place["c"]
