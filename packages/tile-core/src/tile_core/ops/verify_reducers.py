"""The protocol of reducers: init, updates, finalize, in this order and in one block."""

from __future__ import annotations

from dataclasses import field

from tile_core.errors import Note, ReducerMisuse, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import accesses
from tile_core.ir.expr import Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import Kernel, Seq
from tile_core.ops.reduce import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.records import dataclass


def verify_reducers(kernel: Kernel) -> None:
    """Check every use of a buffer of scope `local.reducer`.

    * `reducer_init` opens an epoch, and `reducer_finalize` in the same block closes it;
    * updates stand between the two, at any depth;
    * nothing else touches a reducer: it has no value before it is finalised.

    Raises
    ------
    ReducerMisuse
        At the first use that breaks one of these.
    """
    _block(kernel.body, _Epochs())


@dataclass(frozen=True, slots=True)
class _Epochs:
    """The reducers that are open here: in this block, and in those around it."""

    own: dict[Buffer, Span | None] = field(default_factory=dict)
    around: frozenset[Buffer] = frozenset()

    def inside(self) -> _Epochs:
        return _Epochs({}, self.around | frozenset(self.own))

    def __contains__(self, reducer: object) -> bool:
        return reducer in self.own or reducer in self.around


def _block(body: Node, epochs: _Epochs) -> None:
    for stmt in body.body if isinstance(body, Seq) else (body,):
        _statement(stmt, epochs)
    for reducer, opened in epochs.own.items():
        raise _misuse(
            f"the reducer {reducer.name!r} is initialised and never finalised in this block",
            opened,
            reducer,
            f"end the block with T.finalize_reducer({reducer.name}, dst)",
        )


def _statement(stmt: Node, epochs: _Epochs) -> None:
    match stmt:
        case ReducerInit(reducer=reducer) if reducer in epochs:
            raise _misuse(
                f"the reducer {reducer.name!r} is initialised again before it is finalised",
                stmt.span,
                reducer,
                f"close it first: T.finalize_reducer({reducer.name}, dst)",
            )
        case ReducerInit(reducer=reducer):
            epochs.own[reducer] = stmt.span
        case ReducerFinalize(reducer=reducer):
            _close(stmt, epochs)
        case ReducerUpdate(reducer=reducer) if reducer.scope is Scope.REDUCER:
            if reducer not in epochs:
                raise _misuse(
                    f"the reducer {reducer.name!r} is updated before it is initialised",
                    stmt.span,
                    reducer,
                    f"open it before the loop: T.reducer_init({reducer.name})",
                )
        case _:
            _other(stmt, epochs)


def _close(stmt: ReducerFinalize, epochs: _Epochs) -> None:
    reducer = stmt.reducer
    if epochs.own.pop(reducer, stmt) is not stmt:
        return
    if reducer in epochs.around:
        raise _misuse(
            f"the reducer {reducer.name!r} is finalised in a block inside the one that "
            "initialised it",
            stmt.span,
            reducer,
            "move T.finalize_reducer out of the loop or branch, next to T.reducer_init",
        )
    raise _misuse(
        f"the reducer {reducer.name!r} is finalised and was never initialised",
        stmt.span,
        reducer,
        f"open it first: T.reducer_init({reducer.name})",
    )


def _other(stmt: Node, epochs: _Epochs) -> None:
    blocks = [child for child in stmt.children() if isinstance(child, Seq)]
    if blocks:
        for child in stmt.children():
            if isinstance(child, Expr):
                _refuse_values(child, stmt.span)
        for block in blocks:
            _block(block, epochs.inside())
        return
    _refuse_values(stmt, stmt.span)


def _refuse_values(node: Node, span: Span | None) -> None:
    for access in accesses(node):
        reducer = access.buffer
        if reducer.scope is Scope.REDUCER:
            raise _misuse(
                f"the reducer {reducer.name!r} is neither read nor written directly",
                access.node.span or span,
                reducer,
                f"add to it with T.reducer_update({reducer.name}[i], x), and read what "
                f"T.finalize_reducer({reducer.name}, dst) writes",
            )


def _misuse(message: str, span: Span | None, reducer: Buffer, hint: str) -> ReducerMisuse:
    note = Note(f"{reducer.name} is declared here", reducer.span)
    return ReducerMisuse(message, span=span, notes=(note,), hint=hint)
