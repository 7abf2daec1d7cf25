"""The protocol of reducers: init, updates, finalize, in this order and in one block."""

from __future__ import annotations

from dataclasses import field

from tile_core.errors import Note, ReducerMisuse, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import accesses
from tile_core.ir.node import Node
from tile_core.ir.stmt import If, Kernel, Seq
from tile_core.ir.visitor import expressions_in, statements_in
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.records import dataclass


def verify_reducers(kernel: Kernel) -> None:
    """Check every use of a buffer of scope `local.reducer`.

    * `reducer_init` opens an epoch, and `reducer_finalize` in the same block, or in a branch of
      it, closes it: after a branch that does, the epoch is over whether the branch ran or not;
    * updates stand between the two, at any depth;
    * nothing else touches a reducer: it has no value before it is finalised.

    Raises `ReducerMisuse` at the first use that breaks one of these.
    """
    _block(kernel.body, _Epochs())


@dataclass(frozen=True, slots=True)
class _Epochs:
    """The reducers that are open here: in this block, and in those around it."""

    own: dict[Buffer, Span | None] = field(default_factory=dict)
    around: set[Buffer] = field(default_factory=set)
    # Those of the blocks around it that no loop separates from this one: it runs at most once for
    # each time that they are opened.
    closable: set[Buffer] = field(default_factory=set)
    # Those of the blocks around it that this block closed.
    closed: set[Buffer] = field(default_factory=set)

    def inside(self, *, branch: bool) -> _Epochs:
        """Return what is open at the start of a block of this block: a branch, or else a loop."""
        open_here = self.around | set(self.own)
        return _Epochs({}, open_here, self.closable | set(self.own) if branch else set())

    def close(self, reducer: Buffer) -> bool:
        """Close `reducer`; return whether this block may do that."""
        if reducer in self.own:
            del self.own[reducer]
            return True
        if reducer not in self.closable:
            return False
        self.closable.remove(reducer)
        self.around.remove(reducer)
        self.closed.add(reducer)
        return True

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
    if epochs.close(reducer):
        return
    if reducer in epochs.around:
        raise _misuse(
            f"the reducer {reducer.name!r} is finalised in a loop inside the block that "
            "initialised it",
            stmt.span,
            reducer,
            "move T.finalize_reducer out of the loop, or T.reducer_init into it",
        )
    raise _misuse(
        f"the reducer {reducer.name!r} is finalised and was never initialised",
        stmt.span,
        reducer,
        f"open it first: T.reducer_init({reducer.name})",
    )


def _other(stmt: Node, epochs: _Epochs) -> None:
    blocks = statements_in(stmt)
    if blocks:
        for child in expressions_in(stmt):
            _refuse_values(child, stmt.span)
        closed: set[Buffer] = set()
        for block in blocks:
            inner = epochs.inside(branch=isinstance(stmt, If))
            _block(block, inner)
            closed |= inner.closed
        for reducer in closed:
            epochs.close(reducer)
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
