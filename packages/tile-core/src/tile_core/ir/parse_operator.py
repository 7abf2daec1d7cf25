"""Read back a printed tile operator from the types of its dataclass fields."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Expr, Var
from tile_core.ir.lexer import Cursor
from tile_core.ir.parse_expr import NameScope, parse_expr, parse_region
from tile_core.ir.stmt import Leaf


def parse_operator(
    cursor: Cursor,
    scope: NameScope,
    operators: Mapping[str, type[Leaf]],
    parse_layout: Callable[[str], object],
) -> Leaf:
    """Consume ``mnemonic(field=value, …)`` and return the operator."""
    mnemonic = cursor.here.text
    if mnemonic not in operators:
        raise cursor.error(f"there is no operator {mnemonic!r}")
    cursor.next()
    cls = operators[mnemonic]
    hints = typing.get_type_hints(cls)
    known = {f.name for f in fields(cls) if f.name != "span"}

    def field() -> tuple[str, Any]:
        name = cursor.name()
        if name not in known:
            raise cursor.error(f"{mnemonic!r} has no field {name!r}")
        cursor.expect("=")
        return name, _value(cursor, scope, hints[name], parse_layout)

    cursor.expect("(")
    return cls(**dict(cursor.items(")", field)))


def _value(
    cursor: Cursor, scope: NameScope, hint: Any, parse_layout: Callable[[str], object]
) -> Any:
    if cursor.accept("none"):
        return None
    is_union = typing.get_origin(hint) is types.UnionType
    choices = typing.get_args(hint) if is_union else (hint,)
    choices = tuple(c for c in choices if c is not type(None))
    token = cursor.here
    if token.kind == "layout":
        return parse_layout(cursor.next().text[1:-1])
    for choice in choices:
        if typing.get_origin(choice) is tuple:
            item = typing.get_args(choice)[0]
            cursor.expect("[")
            return cursor.items("]", lambda: _value(cursor, scope, item, parse_layout))  # noqa: B023
        if isinstance(choice, type) and issubclass(choice, Enum):
            return choice[cursor.name()]
        if choice is DType:
            return dtype_of(json.loads(cursor.next().text))
        if choice is str and token.kind == "string":
            return json.loads(cursor.next().text)
        if choice is bool:
            return cursor.next().text == "true"
        if choice is Region:
            return parse_region(cursor, scope)
        if choice is Buffer and (len(choices) == 1 or _is_bare_buffer(cursor, scope)):
            return scope.buffer(cursor)
        if choice is Var:  # an operator that binds one
            var = Var(cursor.name(), dtype_of("handle"))
            scope.things[var.name] = var
            return var
        if choice is Expr or (choice is int and _is_expression(cursor)):
            return parse_expr(cursor, scope)
        if choice is int:
            return cursor.integer()
    raise cursor.error(f"cannot read a value of type {hint}")


def _is_bare_buffer(cursor: Cursor, scope: NameScope) -> bool:
    named = isinstance(scope.things.get(cursor.here.text), Buffer)
    return named and cursor.peek().text != "["


def _is_expression(cursor: Cursor) -> bool:
    token = cursor.peek() if cursor.here.text == "-" else cursor.here
    return token.kind != "number"
