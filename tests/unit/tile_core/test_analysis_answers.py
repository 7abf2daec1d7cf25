"""What is kept with nodes: children, and the answers of analyses."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import as_expr
from tile_core.ir.effects import accesses
from tile_core.ir.expr import Binary, Var
from tile_core.ir.node import Node, analysis, rewrite, walk
from tile_core.testing.conformance.catalogue import all_cases

INT32 = dtype_of("int32")


def counted() -> tuple[list[Node], Callable[[Node], int]]:
    asked: list[Node] = []

    @analysis
    def size(root: Node) -> int:
        """Count nodes."""
        asked.append(root)
        return sum(1 for _ in walk(root))

    return asked, size


def test_each_node_is_asked_once() -> None:
    asked, size = counted()
    x = Var("x", INT32)
    total = x + 1
    assert (size(total), size(total), size(x), size(total)) == (3, 3, 1, 3)
    assert asked == [total, x]
    assert size.__name__ == "size"
    assert size.__doc__ == "Count nodes."


def test_what_is_made_anew_is_asked_anew_and_the_rest_is_not() -> None:
    asked, size = counted()
    left, right = Var("x", INT32) * 3, Var("y", INT32) * 5
    both = left + right
    assert isinstance(right, Binary)
    assert isinstance(both, Binary)
    for node in (left, right, both):
        size(node)
    swapped = replace(both, b=left)
    assert swapped.children() == (left, left)
    changed = rewrite(both, lambda node: as_expr(7) if node is right.a else node)
    assert isinstance(changed, Binary)
    assert changed.a is left
    del asked[:]
    assert (size(changed), size(changed.a), size(changed.b), size(swapped)) == (7, 3, 3, 7)
    assert asked == [changed, changed.b, swapped]


def test_pickles_take_no_answers_along() -> None:
    for case in all_cases()[::40]:
        kernel = case.build()
        fresh = len(pickle.dumps(kernel))
        wanted = [a.mode for a in accesses(kernel.body)]
        assert len(pickle.dumps(kernel)) == fresh
        again = pickle.loads(pickle.dumps(kernel))
        assert [a.mode for a in accesses(again.body)] == wanted
