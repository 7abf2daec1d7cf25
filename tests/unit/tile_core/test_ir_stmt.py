"""Which nodes are statements."""

from __future__ import annotations

import inspect

from tile_core.ir import stmt
from tile_core.ir.node import Node


def test_statements_are_those_that_the_type_names() -> None:
    named = set(str(stmt.Stmt).split(" | "))
    nodes = {
        name: cls
        for name, cls in vars(stmt).items()
        if inspect.isclass(cls) and issubclass(cls, Node) and cls.__module__ == stmt.__name__
    }
    found = {name for name, cls in nodes.items() if stmt.is_statement(object.__new__(cls))}
    assert found == named
    assert not stmt.is_statement(None)
