"""Whether every name and buffer of emitted TIR is defined where it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_core.errors import InternalError
from tile_cpu.tir.nodes import (
    AllocBuffer,
    AttrStmt,
    Bind,
    DeclBuffer,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    While,
    structural_walk,
)


def verify_definitions(function: PrimFunc) -> None:
    """Check that the definition of each value in `function` dominates its uses.

    A definition holds for the statements after it in its own sequence, and inside of them.

    Raises
    ------
    InternalError
        Naming the values that are used outside of that.
    """
    lost = sorted({str(var.name) for var in _undefined(function.body, set(function.params))})
    if lost:
        names = ", ".join(repr(name) for name in lost)
        raise InternalError(f"emitted code uses {names} where no definition reaches")


def _undefined(stmt: Stmt, defined: set[Any]) -> Iterator[Any]:
    """Yield the variables that `stmt` uses without a definition; add to `defined` its own."""
    match stmt:
        case SeqStmt():
            inside = set(defined)
            for part in stmt.seq:
                yield from _undefined(part, inside)
        case For():
            yield from _unknown((stmt.min, stmt.extent), defined)
            yield from _undefined(stmt.body, defined | {stmt.loop_var})
        case While():
            yield from _unknown((stmt.condition,), defined)
            yield from _undefined(stmt.body, set(defined))
        case IfThenElse():
            yield from _unknown((stmt.condition,), defined)
            for side in (stmt.then_case, stmt.else_case):
                if side is not None:
                    yield from _undefined(side, set(defined))
        case AttrStmt():
            yield from _unknown((stmt.value,), defined)
            yield from _undefined(stmt.body, defined)
        case Bind():
            yield from _unknown((stmt.value,), defined)
            defined.add(stmt.var)
        case DeclBuffer():
            yield from _unknown(() if stmt.data is None else (stmt.data,), defined)
            defined.add(stmt.buffer)
        case AllocBuffer():
            defined.add(stmt.buffer)
        case _:
            yield from _unknown((stmt,), defined)


def _unknown(roots: tuple[Any, ...], defined: set[Any]) -> list[Any]:
    used: list[Any] = []
    for root in roots:
        structural_walk(root, ((Var, used.append),))
    return [var for var in used if var not in defined]
